//! The fast algorithm of one row: loops without branches, which compile to the SIMD of whoever inlines them.
//!
//! Departures from [`scalar`](crate::scalar), none of which changes a bit:
//! - The maximum is taken on the elements' bits, which order as their magnitudes do.
//! - Fast mode does not flush elements before the maximum: flushing keeps the order, and a subnormal maximum has the
//!   scale 0 as a flushed one has.
//! - Fast mode does not flush the product: a subnormal one becomes a zero of its sign in E4M3 anyway.
//! - Rows of finite elements whose scale is not [`TINY`], and whose absmax is not above a bound, take a shorter way:
//!   - Nothing is clamped. A floor only makes products smaller. Scale and inverse are normal and off by some 2^-22 of
//!     themselves at most, and no element is above the maximum, so no product reaches the 464 up to which E4M3 rounds
//!     to 448. No product is NaN.
//!   - Fast mode does not flush elements. A subnormal one is below 2^-126 and the inverse about 2^100 at most, so their
//!     product, flushed or not, is below 2^-25, and E4M3 rounds to a zero of its sign up to 2^-10.
//! - The conversion to E4M3 rounds by a floating-point addition.

use crate::Input;
use crate::e4m3::{F32_BIAS, F32_MANTISSA_BITS, MIN_EXPONENT};
use crate::scalar::{Rule, scale_and_inverse};
use ptq_spec::MathMode;
use ptq_spec::fp8::{E4M3_MANTISSA_BITS, E4M3_MAX, E4M3_SIGN};

/// The scale from which on a row may take the shorter way: 2^-100.
const TINY: f32 = f32::from_bits(((F32_BIAS - 100) as u32) << F32_MANTISSA_BITS);

/// Quantizes one row and returns its scale.
#[inline(always)]
pub(crate) fn quantize<T: Input>(x: &[T], q: &mut [u8], rule: Rule) -> f32 {
    let largest = max(x, T::magnitude);
    let absmax = if largest <= T::INFINITE_MAGNITUDE { largest } else { max(x, magnitude_of_number) };
    let absmax = T::from_magnitude(absmax).widen();
    let (s, inv) = scale_and_inverse(absmax, rule);
    if largest < T::INFINITE_MAGNITUDE && s >= TINY && absmax <= rule.bounds.upper {
        encode(x, q, |x| x.widen_finite() * inv);
    } else {
        encode_by(x, q, inv, rule.math);
    }
    s
}

/// The absmax of part of a tensor; a NaN never raises it.
#[inline(always)]
pub(crate) fn absmax<T: Input>(x: &[T]) -> f32 {
    T::from_magnitude(max(x, magnitude_of_number)).widen()
}

/// Quantizes part of a tensor by an inverse of its scale, any number.
#[inline(always)]
pub(crate) fn encode_by<T: Input>(x: &[T], q: &mut [u8], inv: f32, math: MathMode) {
    match math {
        MathMode::Precise => encode(x, q, |x| clamp(x.widen_bits() * inv)),
        MathMode::Fast => encode(x, q, |x| clamp(flush(x.widen_bits()) * inv)),
    }
}

/// The largest magnitude in one row; a loop, for a call of `fold` may stay one and lose the instruction set.
#[inline(always)]
fn max<T: Input>(x: &[T], magnitude: impl Fn(T) -> T::Magnitude) -> T::Magnitude {
    let mut largest = T::ZERO_MAGNITUDE;
    for &x in x {
        largest = largest.max(magnitude(x));
    }
    largest
}

/// The magnitude, zero for NaN.
#[inline(always)]
fn magnitude_of_number<T: Input>(x: T) -> T::Magnitude {
    let magnitude = x.magnitude();
    if magnitude <= T::INFINITE_MAGNITUDE { magnitude } else { T::ZERO_MAGNITUDE }
}

/// Codes of the values of one row.
#[inline(always)]
fn encode<T: Input>(x: &[T], q: &mut [u8], value: impl Fn(T) -> f32) {
    for (&x, q) in x.iter().zip(q) {
        *q = encode_clamped(value(x));
    }
}

/// [`flush`](crate::scalar::flush) without a branch.
#[inline(always)]
fn flush(v: f32) -> f32 {
    const SIGN: u32 = 1 << 31;
    let bits = v.to_bits();
    f32::from_bits(if bits & f32::INFINITY.to_bits() == 0 { bits & SIGN } else { bits })
}

/// The contract's clamp without a branch.
#[inline(always)]
fn clamp(v: f32) -> f32 {
    // Comparisons with NaN are false: NaN becomes 448.
    let v = if v < E4M3_MAX { v } else { E4M3_MAX };
    if v > -E4M3_MAX { v } else { -E4M3_MAX }
}

/// [`encode`](crate::e4m3::encode) without a branch, of values between -464 and 464.
#[inline(always)]
fn encode_clamped(v: f32) -> u8 {
    /// 2^-6, below which E4M3 values are equally spaced.
    const MIN_NORMAL: f32 = f32::from_bits(((MIN_EXPONENT + F32_BIAS) as u32) << F32_MANTISSA_BITS);
    /// Mantissa bits that E4M3 lacks.
    const DROPPED: u32 = F32_MANTISSA_BITS - E4M3_MANTISSA_BITS;
    /// The exponent of [`MIN_NORMAL`] where a code has its own, negated.
    const REBIAS: u8 = ((MIN_NORMAL.to_bits() >> DROPPED) as u8).wrapping_neg();
    const REBIASED: u32 = (DROPPED << F32_MANTISSA_BITS) + REBIAS as u32;
    const _: () = assert!(REBIAS.is_multiple_of(2), "an odd number of steps would turn ties to odd");

    let magnitude = v.abs();
    let power = f32::from_bits(magnitude.to_bits() & f32::INFINITY.to_bits());
    let power = if power > MIN_NORMAL { power } else { MIN_NORMAL };
    // 2^DROPPED times that power, and REBIAS units in the last place, each of which is one step of E4M3 at this exponent.
    // So the addition rounds to E4M3, ties to even, and the sum's lowest byte counts the steps, REBIAS more.
    let magic = f32::from_bits(power.to_bits().wrapping_add(REBIASED));
    let steps = (magic + magnitude).to_bits();
    let code = steps.wrapping_add(power.to_bits() >> DROPPED) as u8;
    (v.to_bits() >> 24) as u8 & E4M3_SIGN | code
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{e4m3, scalar};
    use ptq_spec::fp8::E4M3_MAX_CODE;

    fn check(v: f32) {
        let expected = if v.is_nan() { E4M3_MAX_CODE } else { e4m3::encode(v) };
        assert_eq!(encode_clamped(clamp(v)), expected, "{v:e} ({:#010x})", v.to_bits());
        if v.abs() <= 464.0 {
            assert_eq!(encode_clamped(v), expected, "{v:e} ({:#010x})", v.to_bits());
        }
        assert_eq!(flush(v).to_bits(), scalar::flush(v).to_bits(), "{v:e} ({:#010x})", v.to_bits());
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
