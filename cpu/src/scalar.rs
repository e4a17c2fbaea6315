//! The contract, one row and one element at a time: what every other implementation is judged by.

use crate::{Input, Params, e4m3};
use ptq_spec::fp8::{E4M3_MAX, RCP_E4M3_MAX_BITS};
use ptq_spec::per_token_extended::Bounds;
use ptq_spec::{Extended, MathMode, Shape, ShapeError, rcp};

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
    quantize_extended(x, q, s, shape, params, Extended::default())
}

/// [`quantize`] with strides and bounds ([`ptq_spec::per_token_extended`]).
///
/// - `x`: `[rows, hidden]`, rows `x_stride` elements apart
/// - `q`: `[rows_out, hidden]`, E4M3 codes, rows `q_stride` elements apart
/// - `s`: `[rows_out]`
///
/// `x` and `q` may be longer than that. Whatever of `q` is not in the first `shape.rows()` rows keeps what it holds.
///
/// # Errors
/// Those of [`Extended::layout`]; [`ShapeError::TooShort`], [`ShapeError::Len`]. Nothing is written then.
pub fn quantize_extended<T: Input>(
    x: &[T],
    q: &mut [u8],
    s: &mut [f32],
    shape: Shape,
    params: Params,
    extended: Extended,
) -> Result<(), ShapeError> {
    let layout = extended.layout(shape)?;
    layout.check_lens(x.len() as u64, q.len() as u64, s.len() as u64)?;
    let (rows, hidden) = (shape.rows() as usize, shape.hidden() as usize);
    let guard = params.options.guard(shape.rows(), params.sm_count);
    let rule = Rule { math: params.math, guard, bounds: layout.bounds() };
    for row in 0..rows {
        let x = &x[row * layout.x_stride() as usize..][..hidden];
        let q = &mut q[row * layout.q_stride() as usize..][..hidden];
        s[row] = quantize_row(x, q, rule);
    }
    Ok(())
}

/// What a row's scale, inverse and codes depend on besides its elements.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rule {
    /// How they are rounded.
    pub math: MathMode,
    /// A scale of 0 has the inverse 0.
    pub guard: bool,
    /// Bounds of the scale.
    pub bounds: Bounds,
}

/// Quantizes one row and returns its scale.
fn quantize_row<T: Input>(x: &[T], q: &mut [u8], rule: Rule) -> f32 {
    let math = rule.math;
    let mut absmax = 0.0f32;
    for &x in x {
        // f32::max returns the other operand where one is NaN.
        absmax = absmax.max(widen(x, math).abs());
    }
    let (s, inv) = scale_and_inverse(absmax, rule);
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

/// The scale of a row and what its elements are multiplied by.
pub(crate) fn scale_and_inverse(absmax: f32, rule: Rule) -> (f32, f32) {
    let s = scale(absmax, rule.math, rule.bounds);
    (s, inverse(s, rule.math, rule.guard))
}

/// The scale of that absmax.
pub(crate) fn scale(absmax: f32, math: MathMode, Bounds { upper, min_scale }: Bounds) -> f32 {
    match math {
        MathMode::Precise => (absmax.min(upper) / E4M3_MAX).max(min_scale),
        MathMode::Fast => {
            let capped = flush(absmax).min(flush(upper));
            flush(capped * f32::from_bits(RCP_E4M3_MAX_BITS)).max(flush(min_scale))
        }
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
