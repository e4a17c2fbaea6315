//! The arithmetic of one row, in either math mode.
//!
//! On a GPU the operators are plain ones, and libNVVM's flags give them their mode: `-ftz=1 -prec-div=0` turns the division
//! by a constant into a product with its rounded reciprocal and `1 / s` into `rcp.approx.ftz.f32`; `-prec-div=1` gives
//! `div.rn` and `rcp.rn`. Contraction to `fma` is off in both. On the host they do what those flags would.

#[cfg(not(target_arch = "nvptx64"))]
#[path = "operators_host.rs"]
mod operators;
#[cfg(target_arch = "nvptx64")]
#[path = "operators_nvptx.rs"]
mod operators;

use ptq_spec::fp8::E4M3_MAX;

/// `absmax` and `|x|`, whichever is larger; a NaN never raises `absmax`.
#[inline(always)]
pub fn absmax(absmax: f32, x: f32) -> f32 {
    operators::max(absmax, x.abs())
}

/// Scale of a row.
#[inline(always)]
pub fn scale(absmax: f32) -> f32 {
    operators::over_e4m3_max(absmax)
}

/// Scale of a row whose absmax counts for `upper` at most, and not below `min_scale`.
#[inline(always)]
pub fn bounded_scale(absmax: f32, upper: f32, min_scale: f32) -> f32 {
    operators::max(scale(operators::min(absmax, upper)), min_scale)
}

/// What a row is multiplied by: the reciprocal of its scale, and with `guard` 0 where the scale is 0.
#[inline(always)]
pub fn inverse(scale: f32, guard: bool) -> f32 {
    if guard && operators::is_zero(scale) { 0.0 } else { operators::reciprocal(scale) }
}

/// A scaled element, at most the largest value of E4M3. NaN becomes that value: the minimum is the other operand. What is
/// below the range the conversion takes to its end.
#[inline(always)]
pub fn scaled(x: f32, inverse: f32) -> f32 {
    operators::min(operators::product(x, inverse), E4M3_MAX)
}
