//! A kernel whose barrier rustc's JumpThreading would copy. Compiled by `jump_threading.rs` alone.
#![no_std]
#![cfg_attr(target_arch = "nvptx64", feature(abi_ptx))]
#![feature(link_llvm_intrinsics)]
#![allow(internal_features)]

unsafe extern "C" {
    #[link_name = "llvm.nvvm.barrier0"]
    fn barrier();
    #[link_name = "llvm.nvvm.read.ptx.sreg.tid.x"]
    fn thread() -> u32;
}

/// # Safety
/// `p` has as many elements as the CTA has threads, at least `some`.
#[cfg(target_arch = "nvptx64")]
#[unsafe(no_mangle)]
pub unsafe extern "ptx-kernel" fn planted(p: *mut f32, some: u32) {
    // SAFETY: the caller's duties.
    unsafe { body(p, some) }
}

/// # Safety
/// As `planted`.
#[inline(always)]
pub unsafe fn body(p: *mut f32, some: u32) {
    // SAFETY: reads a register.
    let index = unsafe { thread() };
    // SAFETY: index < some, within p.
    let x = if index < some { unsafe { p.add(index as usize).read_volatile() } } else { 0.0 };
    // SAFETY: every thread is here.
    unsafe { barrier() };
    if index < some {
        // SAFETY: index < some, within p.
        unsafe { p.add(index as usize).write_volatile(-x) };
    }
}

#[cfg(target_arch = "nvptx64")]
#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    loop {}
}
