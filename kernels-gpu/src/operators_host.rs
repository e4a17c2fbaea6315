//! What libNVVM makes of the operators, by the math flags of the emulator's launch.

use cuda_std::emulator::math_flags;
use ptq_spec::fp8::{E4M3_MAX, RCP_E4M3_MAX_BITS};
use ptq_spec::rcp::rcp_approx_ftz;

/// `-ftz`: a subnormal becomes a zero of its sign.
fn flush(a: f32) -> f32 {
    if math_flags().ftz && a.is_subnormal() { 0.0_f32.copysign(a) } else { a }
}

/// The larger one; where one is NaN, the other.
pub(super) fn max(a: f32, b: f32) -> f32 {
    flush(a).max(flush(b))
}

/// The smaller one; where one is NaN, the other.
pub(super) fn min(a: f32, b: f32) -> f32 {
    flush(a).min(flush(b))
}

pub(super) fn product(a: f32, b: f32) -> f32 {
    flush(flush(a) * flush(b))
}

/// `-prec-div=0` multiplies by the rounded reciprocal.
pub(super) fn over_e4m3_max(a: f32) -> f32 {
    if math_flags().fast_div { product(a, f32::from_bits(RCP_E4M3_MAX_BITS)) } else { flush(flush(a) / E4M3_MAX) }
}

/// `-prec-div=0` with `-ftz=1`: `rcp.approx.ftz.f32`, as compute capability 9.0 has it.
pub(super) fn reciprocal(a: f32) -> f32 {
    let flags = math_flags();
    if flags.ftz && flags.fast_div { f32::from_bits(rcp_approx_ftz(a.to_bits())) } else { flush(1.0 / flush(a)) }
}

pub(super) fn is_zero(a: f32) -> bool {
    flush(a) == 0.0
}
