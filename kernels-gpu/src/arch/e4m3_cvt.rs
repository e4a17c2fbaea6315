//! f32 to E4M3 by `cvt`, which needs compute capability 8.9.
//!
//! `.satfinite` takes what is below -448 to -448. A NaN would become a NaN.

use core::arch::asm;

/// Code of a value up to 448, round to nearest even.
#[inline(always)]
pub fn e4m3(value: f32) -> u8 {
    let codes: u16;
    // SAFETY: one register-to-register instruction.
    unsafe {
        asm!(
            "cvt.rn.satfinite.e4m3x2.f32 {codes}, {high}, {low};",
            codes = out(reg16) codes,
            high = in(reg32) 0.0_f32,
            low = in(reg32) value,
            options(pure, nomem, nostack, preserves_flags),
        );
    }
    codes as u8
}

/// Codes of four values up to 448, round to nearest even; the first in the lowest byte.
///
/// Joined by `mov`, which ptxas leaves to the second conversion: a shift and an "or" would be an instruction more.
#[inline(always)]
pub fn e4m3x4([a, b, c, d]: [f32; 4]) -> u32 {
    let codes: u32;
    // SAFETY: register-to-register instructions.
    unsafe {
        asm!(
            concat!(
                "{{ .reg .b16 low, high; ",
                "cvt.rn.satfinite.e4m3x2.f32 low, {b}, {a}; ",
                "cvt.rn.satfinite.e4m3x2.f32 high, {d}, {c}; ",
                "mov.b32 {codes}, {{low, high}}; }}",
            ),
            codes = out(reg32) codes,
            a = in(reg32) a,
            b = in(reg32) b,
            c = in(reg32) c,
            d = in(reg32) d,
            options(pure, nomem, nostack, preserves_flags),
        );
    }
    codes
}
