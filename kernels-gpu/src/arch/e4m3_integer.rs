//! f32 to E4M3 without the instruction: compute capability 8.0 and the host.

use ptq_spec::fp8::{E4M3_BIAS, E4M3_MANTISSA_BITS, E4M3_SIGN};

/// Codes of two values in [-448, 448], round to nearest even; `low` in the low byte.
#[inline(always)]
pub fn e4m3x2(low: f32, high: f32) -> u16 {
    e4m3(low) as u16 | (e4m3(high) as u16) << 8
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

/// Both roundings, then a choice: without branches the rows' loops unroll, and their vectors stay in registers.
#[inline(always)]
fn e4m3(value: f32) -> u32 {
    let magnitude = value.abs();
    let sign = value.to_bits() >> 24 & E4M3_SIGN as u32;

    let subnormal = (magnitude + SUBNORMAL_STEPS).to_bits() - SUBNORMAL_STEPS.to_bits();
    let bits = magnitude.to_bits();
    let half_minus_odd = (1 << (DROPPED - 1)) - 1 + (bits >> DROPPED & 1);
    // Below the normal range this wraps, and is not chosen.
    let rebias = ((F32_BIAS - E4M3_BIAS) as u32) << E4M3_MANTISSA_BITS;
    let normal = ((bits + half_minus_odd) >> DROPPED).wrapping_sub(rebias);

    sign | if magnitude < MIN_NORMAL { subnormal } else { normal }
}
