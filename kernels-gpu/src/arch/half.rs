//! 16-bit elements: packed maximum and widening.

use core::arch::asm;

macro_rules! packed_max {
    ($name:ident, $instruction:literal) => {
        /// Maximum of both halves; where one operand is NaN, the other.
        #[inline(always)]
        pub fn $name(a: u32, b: u32) -> u32 {
            let max: u32;
            // SAFETY: one register-to-register instruction.
            unsafe {
                asm!(
                    concat!($instruction, " {max}, {a}, {b};"),
                    max = out(reg32) max,
                    a = in(reg32) a,
                    b = in(reg32) b,
                    options(pure, nomem, nostack, preserves_flags),
                );
            }
            max
        }
    };
}
packed_max!(max_bf16x2, "max.bf16x2");
packed_max!(max_f16x2, "max.f16x2");

/// f32 value of an f16.
#[inline(always)]
pub fn widen_f16(bits: u16) -> f32 {
    let value: f32;
    // SAFETY: one register-to-register instruction.
    unsafe {
        asm!(
            "cvt.f32.f16 {value}, {bits};",
            value = out(reg32) value,
            bits = in(reg16) bits,
            options(pure, nomem, nostack, preserves_flags),
        );
    }
    value
}
