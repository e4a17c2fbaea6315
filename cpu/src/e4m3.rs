//! f32 to E4M3FN, the obvious way.

use ptq_spec::fp8::{E4M3_BIAS, E4M3_MANTISSA_BITS, E4M3_MAX, E4M3_SIGN};

/// Bits of the f32 mantissa that are stored.
pub(crate) const F32_MANTISSA_BITS: u32 = f32::MANTISSA_DIGITS - 1;

/// Exponent bias of f32.
pub(crate) const F32_BIAS: i32 = f32::MAX_EXP - 1;

/// Exponent of the smallest normal E4M3 value, and of all subnormal ones.
pub(crate) const MIN_EXPONENT: i32 = 1 - E4M3_BIAS;

/// The E4M3 code nearest to `v`, ties to even. Beyond ±448 it saturates; NaN becomes ±448 by its sign.
///
/// The kernels' conversion (`cvt.rn.satfinite.e4m3x2.f32`) gives the same codes for everything but NaN, which never
/// reaches it.
pub fn encode(v: f32) -> u8 {
    let sign = if v.is_sign_negative() { E4M3_SIGN } else { 0 };
    let magnitude = v.abs().min(E4M3_MAX);
    let exponent = ((magnitude.to_bits() >> F32_MANTISSA_BITS) as i32 - F32_BIAS).max(MIN_EXPONENT);
    // Codes of one exponent are this far apart. A division by a power of two is exact, so one rounding happens.
    let step = power_of_two(exponent - E4M3_MANTISSA_BITS as i32);
    let steps = (magnitude / step).round_ties_even() as u8;
    // 0 to 7 steps: subnormal. 8 to 15: normal, 8 being the hidden bit. 16 carries into the exponent by itself.
    let first = ((exponent - MIN_EXPONENT) as u8) << E4M3_MANTISSA_BITS;
    sign | (first + steps)
}

/// 2^`exponent` of a normal f32.
const fn power_of_two(exponent: i32) -> f32 {
    f32::from_bits(((exponent + F32_BIAS) as u32) << F32_MANTISSA_BITS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use float8::F8E4M3;
    use ptq_spec::fp8::E4M3_MAX_CODE;

    fn value(code: u8) -> f32 {
        F8E4M3::from_bits(code).to_f32()
    }

    /// Finite codes and their negatives.
    fn codes() -> impl Iterator<Item = u8> {
        (0..=E4M3_MAX_CODE).chain(E4M3_SIGN..=E4M3_SIGN | E4M3_MAX_CODE)
    }

    #[test]
    fn every_code_encodes_to_itself() {
        assert_eq!(codes().count(), 254);
        for code in codes() {
            assert_eq!(encode(value(code)), code, "{}", value(code));
        }
    }

    #[test]
    fn midpoints_go_to_even_and_their_neighbours_to_the_nearest() {
        for lower in 0..E4M3_MAX_CODE {
            let midpoint = (value(lower) + value(lower + 1)) / 2.0;
            let even = if lower % 2 == 0 { lower } else { lower + 1 };
            for sign in [0, E4M3_SIGN] {
                let signed = |v: f32| if sign == 0 { v } else { -v };
                assert_eq!(encode(signed(midpoint.next_down())), sign | lower, "below {midpoint}");
                assert_eq!(encode(signed(midpoint)), sign | even, "{midpoint}");
                assert_eq!(encode(signed(midpoint.next_up())), sign | (lower + 1), "above {midpoint}");
            }
        }
    }

    #[test]
    fn beyond_the_largest_saturates() {
        for v in [448.0f32.next_up(), 464.0, 480.0, f32::MAX, f32::INFINITY] {
            assert_eq!(encode(v), E4M3_MAX_CODE, "{v}");
            assert_eq!(encode(-v), E4M3_SIGN | E4M3_MAX_CODE, "-{v}");
        }
        assert_eq!(encode(f32::NAN), E4M3_MAX_CODE);
        assert_eq!(encode(-f32::NAN), E4M3_SIGN | E4M3_MAX_CODE);
    }

    /// Everything but NaN, whose code `float8` keeps.
    #[test]
    fn agrees_with_float8_on_every_f16_and_bf16() {
        for bits in 0..=u16::MAX {
            for v in [half::f16::from_bits(bits).to_f32(), half::bf16::from_bits(bits).to_f32()] {
                if !v.is_nan() {
                    assert_eq!(encode(v), F8E4M3::from_f32(v).to_bits(), "{v:e} ({:#010x})", v.to_bits());
                }
            }
        }
    }
}
