//! The order of grids where there is no `griddepcontrol`, and in the emulator: one starts after the end of the one before.

/// Nothing: no grid starts early, and the grids before are complete.
#[inline(always)]
pub fn order(_programmatic: u32) {}
