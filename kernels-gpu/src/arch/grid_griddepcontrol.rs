//! The order of grids by `griddepcontrol`: PTX ISA, "Parallel Synchronization and Communication Instructions", since PTX 7.8
//! and compute capability 9.0.

use core::arch::asm;

/// Tells the GPU that this CTA keeps no dependent grid from starting. Only a dependent grid that was launched for it starts
/// early, once every CTA of this one said so or ended, and has to wait before it relies on anything of this grid.
#[inline(always)]
pub fn launch_dependents() {
    // SAFETY: touches neither memory nor registers. The compiler may think that it does, and keeps the order.
    unsafe { asm!("griddepcontrol.launch_dependents;", options(nostack, preserves_flags)) };
}

/// Waits until the grids before this one are complete and what they wrote is visible here; at once where this grid was
/// launched after their end.
#[inline(always)]
pub fn wait() {
    // SAFETY: as above. The compiler takes it to read and write memory, so that no access moves from behind it to before it.
    unsafe { asm!("griddepcontrol.wait;", options(nostack, preserves_flags)) };
}
