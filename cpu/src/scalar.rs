//! The contract, one row and one element at a time: what every other implementation is judged by.

use crate::{Input, Params, e4m3};
use ptq_spec::fp8::{E4M3_MAX, RCP_E4M3_MAX_BITS};
use ptq_spec::{MathMode, Shape, ShapeError, rcp};

/// Quantizes the first `shape.rows()` rows, on the calling thread.
///
/// - `x`: `[rows, hidden]`
/// - `q`: `[rows_out, hidden]`, E4M3 codes
/// - `s`: `[rows_out]`; `q * s` dequantizes
///
/// Rows of `q` and `s` from `shape.rows()` on keep what they hold.
///
/// # Errors
/// [`ShapeError::Len`] where a slice has another length; nothing is written then.
pub fn quantize<T: Input>(
    x: &[T],
    q: &mut [u8],
    s: &mut [f32],
    shape: Shape,
    params: Params,
) -> Result<(), ShapeError> {
    shape.check_lens(x.len() as u64, q.len() as u64, s.len() as u64)?;
    if shape.rows() == 0 {
        return Ok(());
    }
    let hidden = shape.hidden() as usize;
    let guard = params.options.guard(shape.rows(), params.sm_count);
    for ((x, q), s) in x.chunks_exact(hidden).zip(q.chunks_exact_mut(hidden)).zip(s) {
        *s = quantize_row(x, q, params.math, guard);
    }
    Ok(())
}

/// Quantizes one row and returns its scale.
fn quantize_row<T: Input>(x: &[T], q: &mut [u8], math: MathMode, guard: bool) -> f32 {
    let mut absmax = 0.0f32;
    for &x in x {
        // f32::max returns the other operand where one is NaN.
        absmax = absmax.max(widen(x, math).abs());
    }
    let (s, inv) = scale_and_inverse(absmax, math, guard);
    for (&x, q) in x.iter().zip(q) {
        let v = clamp(product(widen(x, math), inv, math));
        *q = e4m3::encode(v);
    }
    s
}

/// `x` as f32; in fast mode without subnormals.
pub(crate) fn widen<T: Input>(x: T, math: MathMode) -> f32 {
    match math {
        MathMode::Precise => x.widen(),
        MathMode::Fast => flush(x.widen()),
    }
}

/// The scale of a row and what its elements are multiplied by. `guard`: a scale of 0 has the inverse 0.
pub(crate) fn scale_and_inverse(absmax: f32, math: MathMode, guard: bool) -> (f32, f32) {
    let s = scale(absmax, math);
    (s, inverse(s, math, guard))
}

/// The scale of that absmax.
pub(crate) fn scale(absmax: f32, math: MathMode) -> f32 {
    match math {
        MathMode::Precise => absmax / E4M3_MAX,
        MathMode::Fast => flush(absmax * f32::from_bits(RCP_E4M3_MAX_BITS)),
    }
}

/// What elements under the scale `s`, any number, are multiplied by. `guard`: a scale of 0 has the inverse 0.
pub(crate) fn inverse(s: f32, math: MathMode, guard: bool) -> f32 {
    match math {
        MathMode::Precise if guard && s == 0.0 => 0.0,
        MathMode::Precise => 1.0 / s,
        MathMode::Fast if guard && flush(s) == 0.0 => 0.0,
        MathMode::Fast => f32::from_bits(rcp::rcp_approx_ftz(s.to_bits())),
    }
}

/// `x * inv`, rounded once.
pub(crate) fn product(x: f32, inv: f32, math: MathMode) -> f32 {
    match math {
        MathMode::Precise => x * inv,
        MathMode::Fast => flush(x * inv),
    }
}

/// `v` between -448 and 448; NaN becomes 448.
pub(crate) fn clamp(v: f32) -> f32 {
    if v.is_nan() { E4M3_MAX } else { v.clamp(-E4M3_MAX, E4M3_MAX) }
}

/// A subnormal becomes zero of the same sign, as `.ftz` instructions make it.
pub(crate) fn flush(v: f32) -> f32 {
    if v.is_subnormal() { 0.0f32.copysign(v) } else { v }
}
