//! The order of grids where there is no `griddepcontrol`, and in the emulator: one starts after the end of the one before.

/// Nothing: no grid starts early.
#[inline(always)]
pub fn launch_dependents() {}

/// Nothing: the grids before are complete.
#[inline(always)]
pub fn wait() {}
