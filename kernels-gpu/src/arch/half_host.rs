//! 16-bit elements on the host.

/// Maximum of both halves; where one operand is NaN, the other.
pub fn max_bf16x2(a: u32, b: u32) -> u32 {
    packed_max(a, b, |bits| f32::from_bits(u32::from(bits) << 16))
}

/// Maximum of both halves; where one operand is NaN, the other.
pub fn max_f16x2(a: u32, b: u32) -> u32 {
    packed_max(a, b, widen_f16)
}

fn packed_max(a: u32, b: u32, widen: impl Fn(u16) -> f32) -> u32 {
    let larger = |a: u16, b: u16| {
        let (x, y) = (widen(a), widen(b));
        if y > x || x.is_nan() { b } else { a }
    };
    u32::from(larger(a as u16, b as u16)) | u32::from(larger((a >> 16) as u16, (b >> 16) as u16)) << 16
}

/// f32 value of an f16.
pub fn widen_f16(bits: u16) -> f32 {
    half::f16::from_bits(bits).to_f32()
}
