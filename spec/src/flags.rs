//! Bits of the argument `flags: u32` that every kernel entry takes.

/// A zero scale gives a zero inverse; without it an infinite one.
pub const GUARD: u32 = 1;

/// The grid was launched to start early ("programmatic dependent launch"): it waits for the grids before it, and lets the
/// next one start. From compute capability 9.0 on; elsewhere it means nothing.
///
/// Without it a grid spends nothing on the order of grids, which the launch then guarantees.
pub const PROGRAMMATIC: u32 = 2;
