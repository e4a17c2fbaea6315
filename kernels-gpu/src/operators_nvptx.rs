//! Plain f32 operators: libNVVM's flags decide what they become.

use ptq_spec::fp8::E4M3_MAX;

/// The larger one; where one is NaN, the other.
#[inline(always)]
pub(super) fn max(a: f32, b: f32) -> f32 {
    a.max(b)
}

/// The smaller one; where one is NaN, the other.
#[inline(always)]
pub(super) fn min(a: f32, b: f32) -> f32 {
    a.min(b)
}

#[inline(always)]
pub(super) fn product(a: f32, b: f32) -> f32 {
    a * b
}

#[inline(always)]
pub(super) fn over_e4m3_max(a: f32) -> f32 {
    a / E4M3_MAX
}

#[inline(always)]
pub(super) fn reciprocal(a: f32) -> f32 {
    1.0 / a
}

#[inline(always)]
pub(super) fn is_zero(a: f32) -> bool {
    a == 0.0
}
