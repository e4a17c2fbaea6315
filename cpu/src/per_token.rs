//! The fast path: rows in parallel, and loops that compile to SIMD.
//!
//! Departures from [`scalar`](crate::scalar), none of which changes a bit:
//! - The maximum is taken on the elements' bits, which order as their magnitudes do.
//! - Fast mode does not flush elements before the maximum: flushing keeps the order, and a subnormal maximum has the
//!   scale 0 as a flushed one has.
//! - Fast mode flushes elements before the product only in rows of a tiny scale: see [`TINY`].
//! - Fast mode does not flush the product: a subnormal one becomes a zero of its sign in E4M3 anyway.
//! - The conversion to E4M3 rounds by a floating-point addition.

use crate::e4m3::{F32_BIAS, F32_MANTISSA_BITS, MIN_EXPONENT};
use crate::scalar::scale_and_inverse;
use crate::{Input, Params};
use ptq_spec::fp8::{E4M3_MANTISSA_BITS, E4M3_MAX, E4M3_SIGN};
use ptq_spec::{MathMode, Shape, ShapeError};
use rayon::prelude::*;

/// Elements below which a task is not split: some ten microseconds of work, well above what handing it over costs.
const ELEMENTS_PER_TASK: usize = 1 << 15;

/// Quantizes the first `shape.rows()` rows, on the threads of the current rayon pool.
///
/// - `x`: `[rows, hidden]`
/// - `q`: `[rows_out, hidden]`, E4M3 codes
/// - `s`: `[rows_out]`; `q * s` dequantizes
///
/// Rows of `q` and `s` from `shape.rows()` on keep what they hold. The bits are those of [`crate::scalar::quantize`].
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
    x.par_chunks_exact(hidden)
        .zip(q.par_chunks_exact_mut(hidden))
        .zip(s)
        .with_min_len(ELEMENTS_PER_TASK.div_ceil(hidden))
        .for_each(|((x, q), s)| *s = quantize_row(x, q, params.math, guard));
    Ok(())
}

/// Quantizes one row and returns its scale.
fn quantize_row<T: Input>(x: &[T], q: &mut [u8], math: MathMode, guard: bool) -> f32 {
    let absmax = T::from_order(x.iter().map(|x| x.order()).fold(T::ZERO_ORDER, Ord::max)).widen_bits();
    let (s, inv) = scale_and_inverse(absmax, math, guard);
    if math == MathMode::Fast && s < TINY {
        encode_row(x, q, inv, flush_bits);
    } else {
        encode_row(x, q, inv, |x| x);
    }
    s
}

/// 2^-100: from this scale up a subnormal element, flushed or not, becomes a zero of its sign. It is below 2^-126 and the
/// inverse about 2^100 at most, so their product is below 2^-25, and E4M3 rounds to zero up to 2^-10.
const TINY: f32 = f32::from_bits(((F32_BIAS - 100) as u32) << F32_MANTISSA_BITS);

/// Codes of one row; `prepare` is applied to the widened elements.
#[inline(always)]
fn encode_row<T: Input>(x: &[T], q: &mut [u8], inv: f32, prepare: impl Fn(f32) -> f32) {
    for (x, q) in x.iter().zip(q) {
        *q = clamp_and_encode(prepare(x.widen_bits()) * inv);
    }
}

/// [`flush`](crate::scalar::flush) without a branch.
#[inline(always)]
fn flush_bits(v: f32) -> f32 {
    const SIGN: u32 = 1 << 31;
    let bits = v.to_bits();
    f32::from_bits(if bits & f32::INFINITY.to_bits() == 0 { bits & SIGN } else { bits })
}

/// The contract's clamp, then [`encode`](crate::e4m3::encode), without a branch.
#[inline(always)]
fn clamp_and_encode(v: f32) -> u8 {
    /// 2^-6, below which E4M3 values are equally spaced.
    const MIN_NORMAL: f32 = f32::from_bits(((MIN_EXPONENT + F32_BIAS) as u32) << F32_MANTISSA_BITS);
    /// Mantissa bits that E4M3 lacks.
    const DROPPED: u32 = F32_MANTISSA_BITS - E4M3_MANTISSA_BITS;
    const POWER_OF_DROPPED: f32 = (1u32 << DROPPED) as f32;

    // Comparisons with NaN are false: NaN becomes 448.
    let v = if v < E4M3_MAX { v } else { E4M3_MAX };
    let v = if v > -E4M3_MAX { v } else { -E4M3_MAX };
    let magnitude = v.abs();
    let power = f32::from_bits(magnitude.to_bits() & f32::INFINITY.to_bits());
    let power = if power > MIN_NORMAL { power } else { MIN_NORMAL };
    // One unit in the last place of `magic` is one step of E4M3 at this exponent, so the addition rounds to E4M3, ties
    // to even, and the sum's bits count the steps.
    let magic = power * POWER_OF_DROPPED;
    let steps = (magic + magnitude).to_bits() - magic.to_bits();
    let exponent = (power.to_bits() - MIN_NORMAL.to_bits()) >> DROPPED;
    ((v.to_bits() >> 24) & u32::from(E4M3_SIGN) | (exponent + steps)) as u8
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::e4m3::encode;
    use crate::scalar::flush;
    use ptq_spec::fp8::E4M3_MAX_CODE;

    fn check(v: f32) {
        let expected = if v.is_nan() { E4M3_MAX_CODE } else { encode(v) };
        assert_eq!(clamp_and_encode(v), expected, "{v:e} ({:#010x})", v.to_bits());
        assert_eq!(flush_bits(v).to_bits(), flush(v).to_bits(), "{v:e} ({:#010x})", v.to_bits());
    }

    /// A tie has all its bits in the upper half, which keeps seven mantissa bits; the lower half says on which side of one
    /// a value is.
    #[test]
    fn encodes_as_the_obvious_way_does() {
        for upper in 0..1u32 << 16 {
            for lower in [0, 1, 0xFFFF] {
                check(f32::from_bits(upper << 16 | lower));
            }
        }
    }
}
