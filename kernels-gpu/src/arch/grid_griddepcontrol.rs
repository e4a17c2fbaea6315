//! The order of grids by `griddepcontrol`: PTX ISA, "Parallel Synchronization and Communication Instructions", since PTX 7.8
//! and compute capability 9.0.

use core::arch::asm;

/// With a number that is not 0: tells the GPU that this CTA keeps no dependent grid from starting, then waits until the grids
/// before this one are complete and what they wrote is visible here.
///
/// Only a dependent grid that was launched for it starts early, once every CTA of this one said so or ended, and has to wait
/// before it relies on anything of this grid. The wait is over at once where this grid was launched after the others' end.
#[inline(always)]
pub fn order(programmatic: u32) {
    // SAFETY: touches neither memory nor registers but a predicate of its own. The compiler takes it to read and write memory,
    // so that no access moves from behind it to before it.
    unsafe {
        // Indented: what splits PTX into entries takes a brace at the start of a line for an entry's end.
        asm!(
            "{{",
            "\t.reg .pred programmatic;",
            "\tsetp.ne.u32 programmatic, {}, 0;",
            "\t@programmatic griddepcontrol.launch_dependents;",
            "\t@programmatic griddepcontrol.wait;",
            "\t}}",
            in(reg32) programmatic,
            options(nostack, preserves_flags),
        );
    }
}
