//! The rust-cuda device API (`cuda_std`) on stock rustc.
//!
//! Kernel sources written against it are valid rust-cuda sources: `#[kernel]`, [`thread`], [`warp`], [`shared_array!`].
//! They compile with any rustc whose `nvptx64-nvidia-cuda` target has a `core`, through `cuda_builder`.
//!
//! On other targets the [`emulator`] runs the same kernel functions on the CPU and reports what they do wrong; outside one
//! of its launches a device function panics.
#![no_std]
#![cfg_attr(target_arch = "nvptx64", feature(link_llvm_intrinsics, stdarch_nvptx))]
#![cfg_attr(target_arch = "nvptx64", allow(internal_features))]

#[cfg(not(target_arch = "nvptx64"))]
#[path = "intrinsics_host.rs"]
mod intrinsics;
#[cfg(target_arch = "nvptx64")]
#[path = "intrinsics_nvptx.rs"]
mod intrinsics;

#[cfg(not(target_arch = "nvptx64"))]
extern crate std;

#[cfg(not(target_arch = "nvptx64"))]
pub mod emulator;
pub mod shared;
pub mod thread;
pub mod warp;

pub use cuda_std_macros::kernel;

/// What a kernel file imports.
pub mod prelude {
    pub use crate::{kernel, shared_array, thread, warp};
}

#[cfg(target_arch = "nvptx64")]
#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    // SAFETY: `trap` ends the grid with an error; it has no precondition.
    unsafe { core::arch::nvptx::trap() }
}
