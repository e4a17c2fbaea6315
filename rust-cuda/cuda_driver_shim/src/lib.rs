//! The CUDA driver's symbols as lazy trampolines into `libcuda.so.1`.
//!
//! `cust` and `cust_raw` declare the driver's functions as plain symbols and ask the linker for `-lcuda`, so a program
//! that uses them neither links without a CUDA installation nor starts without a driver. This crate defines those
//! symbols. Each is a few instructions that jump to the driver's function; the driver is opened at the first call of
//! any. One program then builds everywhere, starts everywhere, and sees a missing driver as the ordinary error 100 ("no
//! device") from `cuInit`.
//!
//! Two things are needed:
//! - depend on this crate and call [`driver_available`] somewhere: the call keeps the trampolines in the link;
//! - let the build scripts of `cust` find a folder with a `lib64` inside: `CUDA_LIBRARY_PATH` set to this crate's `cuda`
//!   folder, whose `lib64/libcuda.a` is an empty archive.
//!
//! The symbols have hidden visibility: a shared library that contains them never exports them, so it cannot stand in
//! front of the real driver for anyone else in the process.
#![deny(unsafe_op_in_unsafe_fn)]

#[cfg(not(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64"))))]
compile_error!(
    "cuda_driver_shim has trampolines for x86_64 and aarch64 Linux alone; on another target link the CUDA installation's \
     libcuda and leave this crate out, or build without the feature `cuda`"
);

mod loader;
mod symbols;
mod trampoline;

/// Whether the CUDA driver `libcuda.so.1` could be opened. Opens it at the first call.
///
/// True says nothing about devices: ask `cuInit`.
pub fn driver_available() -> bool {
    trampoline::keep();
    load_error().is_none()
}

/// What the dynamic linker said when `libcuda.so.1` could not be opened; `None` where it could.
pub fn load_error() -> Option<&'static str> {
    loader::driver().as_ref().err().map(String::as_str)
}
