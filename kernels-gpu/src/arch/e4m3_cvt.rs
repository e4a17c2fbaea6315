//! f32 to E4M3 by `cvt`, which needs compute capability 8.9.

use core::arch::asm;

/// Codes of two values in [-448, 448], round to nearest even; `low` in the low byte.
#[inline(always)]
pub fn e4m3x2(low: f32, high: f32) -> u16 {
    let codes: u16;
    // SAFETY: one register-to-register instruction.
    unsafe {
        asm!(
            "cvt.rn.satfinite.e4m3x2.f32 {codes}, {high}, {low};",
            codes = out(reg16) codes,
            high = in(reg32) high,
            low = in(reg32) low,
            options(pure, nomem, nostack, preserves_flags),
        );
    }
    codes
}
