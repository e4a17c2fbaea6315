//! Numbers of the E4M3FN format and of the scale.

/// Largest finite E4M3FN value, code `0x7E`.
///
/// The `float8` crate's `F8E4M3::MAX` (0.7.0) is 416, the value below; it is not this number.
pub const E4M3_MAX: f32 = 448.0;

/// Code of [`E4M3_MAX`]. A NaN element becomes this code too.
pub const E4M3_MAX_CODE: u8 = 0x7E;

/// Sign bit of an E4M3 code.
pub const E4M3_SIGN: u8 = 0x80;

/// Mantissa bits of E4M3.
pub const E4M3_MANTISSA_BITS: u32 = 3;

/// Exponent bias of E4M3.
pub const E4M3_BIAS: i32 = 7;

/// 1/448 rounded to nearest, as f32 bits: what fast mode multiplies the absmax by.
pub const RCP_E4M3_MAX_BITS: u32 = 0x3B12_4925;
