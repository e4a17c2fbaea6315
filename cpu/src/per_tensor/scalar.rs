//! The contract of [`ptq_spec::per_tensor`], one element at a time: what every other implementation is judged by.

use crate::scalar::{clamp, inverse, product, scale, widen};
use crate::{Input, e4m3};
use ptq_spec::per_token_extended::Bounds;
use ptq_spec::{MathMode, ShapeError, ZeroRows, per_tensor};

/// As [`super::quantize_static`], on the calling thread.
///
/// # Errors
/// Those of [`super::quantize_static`].
pub fn quantize_static<T: Input>(
    x: &[T],
    q: &mut [u8],
    s: f32,
    math: MathMode,
    zero_scale: ZeroRows,
) -> Result<(), ShapeError> {
    per_tensor::check_lens(x.len() as u64, q.len() as u64, 1)?;
    let inv = inverse(s, math, zero_scale == ZeroRows::Guarded);
    for (&x, q) in x.iter().zip(q) {
        *q = e4m3::encode(clamp(product(widen(x, math), inv, math)));
    }
    Ok(())
}

/// As [`super::quantize_dynamic`], on the calling thread.
///
/// # Errors
/// Those of [`super::quantize_dynamic`].
pub fn quantize_dynamic<T: Input>(
    x: &[T],
    q: &mut [u8],
    s: &mut f32,
    math: MathMode,
    zero_scale: ZeroRows,
) -> Result<(), ShapeError> {
    per_tensor::check_lens(x.len() as u64, q.len() as u64, 1)?;
    if x.is_empty() {
        return Ok(());
    }
    let mut absmax = 0.0f32;
    for &x in x {
        // f32::max returns the other operand where one is NaN.
        absmax = absmax.max(widen(x, math).abs());
    }
    *s = scale(absmax, math, Bounds::NONE);
    quantize_static(x, q, *s, math, zero_scale)
}
