//! The symbols themselves: assembly that jumps to the driver without touching an argument.
//!
//! A trampoline loads its slot of [`TABLE`](crate::loader::TABLE) and jumps there. While the slot is null it takes the
//! slow path once: save every register that may hold an argument, call [`resolve`](crate::loader::resolve), restore
//! them, jump to the answer. Arguments on the stack stay where they are because the trampoline leaves by a jump.

#[cfg(target_arch = "aarch64")]
mod aarch64;
#[cfg(target_arch = "x86_64")]
mod x86_64;

unsafe extern "C" {
    /// A symbol of the same assembly as the trampolines that nobody calls.
    fn cuda_driver_shim_anchor();
}

/// Keeps the trampolines in the link. A linker takes an object out of an archive only for a symbol that is missing at
/// that moment, which `cuInit` and the others are not yet when this crate's archive is read before that of `cust_raw`.
pub(crate) fn keep() {
    std::hint::black_box(cuda_driver_shim_anchor as *const ());
}
