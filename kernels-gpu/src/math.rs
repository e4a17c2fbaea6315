//! The arithmetic of one row, in either math mode.
//!
//! On a GPU these are plain operators, and libNVVM's flags give them their mode: `-ftz=1 -prec-div=0` turns the division
//! by a constant into a product with its rounded reciprocal and `1 / s` into `rcp.approx.ftz.f32`; `-prec-div=1` gives
//! `div.rn` and `rcp.rn`. Contraction to `fma` is off in both.

use ptq_spec::fp8::E4M3_MAX;

/// `absmax` and `|x|`, whichever is larger; a NaN never raises `absmax`.
#[inline(always)]
pub fn absmax(absmax: f32, x: f32) -> f32 {
    absmax.max(x.abs())
}

/// Scale of a row.
#[inline(always)]
pub fn scale(absmax: f32) -> f32 {
    absmax / E4M3_MAX
}

/// What a row is multiplied by: the reciprocal of its scale, and with `guard` 0 where the scale is 0.
#[inline(always)]
pub fn inverse(scale: f32, guard: bool) -> f32 {
    if guard && scale == 0.0 { 0.0 } else { 1.0 / scale }
}

/// A scaled element within the range of E4M3. NaN becomes the largest value: `min` returns its other operand.
#[inline(always)]
#[allow(clippy::manual_clamp, reason = "clamp keeps NaN")]
pub fn scaled(x: f32, inverse: f32) -> f32 {
    (x * inverse).min(E4M3_MAX).max(-E4M3_MAX)
}
