//! f32 to E4M3 without the instruction: compute capability 8.0 and the host.

use ptq_spec::fp8::{E4M3_BIAS, E4M3_MANTISSA_BITS, E4M3_MAX, E4M3_SIGN};

/// Codes of four values up to 448, round to nearest even; the first in the lowest byte.
#[inline(always)]
pub fn e4m3x4(values: [f32; 4]) -> u32 {
    u32::from_le_bytes(values.map(e4m3))
}

/// f32 exponent bias and mantissa bits.
const F32_BIAS: i32 = 127;
const F32_MANTISSA_BITS: u32 = f32::MANTISSA_DIGITS - 1;

/// Mantissa bits that E4M3 does not have.
const DROPPED: u32 = F32_MANTISSA_BITS - E4M3_MANTISSA_BITS;

/// Smallest normal E4M3 value.
const MIN_NORMAL: f32 = power_of_two(1 - E4M3_BIAS);

/// Number whose neighbours lie one subnormal E4M3 step apart: adding it rounds to that step.
const SUBNORMAL_STEPS: f32 = power_of_two(1 - E4M3_BIAS - E4M3_MANTISSA_BITS as i32 + F32_MANTISSA_BITS as i32);

const fn power_of_two(exponent: i32) -> f32 {
    f32::from_bits(((F32_BIAS + exponent) as u32) << F32_MANTISSA_BITS)
}

/// Code of a value up to 448, round to nearest even; below -448 that of -448.
///
/// Both roundings, then a choice: without branches the rows' loops unroll, and their vectors stay in registers.
#[inline(always)]
pub fn e4m3(value: f32) -> u8 {
    let value = value.max(-E4M3_MAX);
    let magnitude = value.abs();
    let sign = value.to_bits() >> 24 & E4M3_SIGN as u32;

    let subnormal = (magnitude + SUBNORMAL_STEPS).to_bits() - SUBNORMAL_STEPS.to_bits();
    let bits = magnitude.to_bits();
    let half_minus_odd = (1 << (DROPPED - 1)) - 1 + (bits >> DROPPED & 1);
    // Below the normal range this wraps, and is not chosen.
    let rebias = ((F32_BIAS - E4M3_BIAS) as u32) << E4M3_MANTISSA_BITS;
    let normal = ((bits + half_minus_odd) >> DROPPED).wrapping_sub(rebias);

    (sign | if magnitude < MIN_NORMAL { subnormal } else { normal }) as u8
}
