//! f32 to E4M3 codes.

use crate::arch;
use crate::math;

/// Codes of four elements times `inverse`, the first in the lowest byte.
#[inline(always)]
pub fn codes4(x: [f32; 4], inverse: f32) -> u32 {
    arch::e4m3x4(x.map(|x| math::scaled(x, inverse)))
}

/// Code of an element times `inverse`.
#[inline(always)]
pub fn code(x: f32, inverse: f32) -> u8 {
    arch::e4m3(math::scaled(x, inverse))
}
