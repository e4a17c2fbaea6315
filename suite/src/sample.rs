//! Element types by their bits, and pseudo-random elements.

use crate::{Buffer, Tensor};
use half::{bf16, f16};
use ptq_cpu::Input;

/// An element type that cases are made of.
pub(crate) trait Sample: Input {
    /// Bits of the mantissa that are stored.
    const MANTISSA_BITS: u32;

    /// The element of these bits, of which the lower ones count.
    fn with_bits(bits: u32) -> Self;

    /// Bits of the element nearest to `v`, to a unit in the last place.
    fn bits_near(v: f64) -> u32;

    /// The input that holds the buffer.
    fn tensor(x: Buffer<Self>) -> Tensor;

    /// Sign bit.
    const SIGN: u32 = 1 << (8 * size_of::<Self>() as u32 - 1);
    /// Bits of infinity: all ones in the exponent.
    const INFINITY: u32 = (Self::SIGN - 1) >> Self::MANTISSA_BITS << Self::MANTISSA_BITS;
    /// Bits of a quiet NaN.
    const NAN: u32 = Self::INFINITY + Self::MIN_NORMAL / 2;
    /// Bits of the smallest normal value.
    const MIN_NORMAL: u32 = 1 << Self::MANTISSA_BITS;
    /// Bits of 1.
    const ONE: u32 = (Self::INFINITY / 2) >> Self::MANTISSA_BITS << Self::MANTISSA_BITS;
}

impl Sample for f16 {
    const MANTISSA_BITS: u32 = f16::MANTISSA_DIGITS - 1;

    fn with_bits(bits: u32) -> Self {
        Self::from_bits(bits as u16)
    }

    fn bits_near(v: f64) -> u32 {
        f16::from_f64(v).to_bits().into()
    }

    fn tensor(x: Buffer<Self>) -> Tensor {
        Tensor::F16(x)
    }
}

impl Sample for bf16 {
    const MANTISSA_BITS: u32 = bf16::MANTISSA_DIGITS - 1;

    fn with_bits(bits: u32) -> Self {
        Self::from_bits(bits as u16)
    }

    fn bits_near(v: f64) -> u32 {
        bf16::from_f64(v).to_bits().into()
    }

    fn tensor(x: Buffer<Self>) -> Tensor {
        Tensor::Bf16(x)
    }
}

impl Sample for f32 {
    const MANTISSA_BITS: u32 = f32::MANTISSA_DIGITS - 1;

    fn with_bits(bits: u32) -> Self {
        Self::from_bits(bits)
    }

    fn bits_near(v: f64) -> u32 {
        (v as f32).to_bits()
    }

    fn tensor(x: Buffer<Self>) -> Tensor {
        Tensor::F32(x)
    }
}

/// SplitMix64 (Steele, Lea, Flood 2014): the same numbers everywhere, from any start.
#[derive(Debug, Clone)]
pub(crate) struct Random(pub u64);

impl Random {
    /// 32 random bits.
    pub(crate) fn bits(&mut self) -> u32 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((z ^ (z >> 31)) >> 32) as u32
    }

    /// Any bits: NaN, infinities and subnormals among them.
    pub(crate) fn any<T: Sample>(&mut self) -> T {
        T::with_bits(self.bits())
    }

    /// A value between 2^-12 and 2^4 of either sign, every exponent as likely: spreads over all codes.
    pub(crate) fn moderate<T: Sample>(&mut self) -> T {
        let bits = self.bits();
        let exponent = (bits >> 27) / 2;
        let mantissa = bits & (T::MIN_NORMAL - 1);
        let sign = if bits & 1 << 26 == 0 { 0 } else { T::SIGN };
        let smallest = T::ONE - 12 * T::MIN_NORMAL;
        T::with_bits(sign | (smallest + exponent * T::MIN_NORMAL + mantissa))
    }

    /// A finite value of either sign with an exponent field up to `exponent`, each as likely.
    pub(crate) fn up_to<T: Sample>(&mut self, exponent: u32) -> T {
        let field = (self.bits() >> 16) % (exponent + 1);
        let bits = self.bits();
        T::with_bits((bits & (T::SIGN | (T::MIN_NORMAL - 1))) | (field * T::MIN_NORMAL))
    }

    /// An exponent field of a finite f32, each as likely.
    pub(crate) fn exponent(&mut self) -> u32 {
        self.bits() % (<f32 as Sample>::INFINITY / <f32 as Sample>::MIN_NORMAL)
    }

    /// A finite value of either sign with an exponent field less than 24 below `largest`.
    pub(crate) fn near(&mut self, largest: u32) -> f32 {
        let bits = self.bits();
        let distance = (bits & <f32 as Sample>::INFINITY) / <f32 as Sample>::MIN_NORMAL % 24;
        let field = largest.saturating_sub(distance);
        f32::from_bits((bits & !<f32 as Sample>::INFINITY) | (field * <f32 as Sample>::MIN_NORMAL))
    }
}

/// `$body` with the alias `$t` for the element type.
macro_rules! with_element {
    ($element:expr, $t:ident => $body:expr) => {
        match $element {
            ptq_spec::Element::F16 => {
                type $t = half::f16;
                $body
            }
            ptq_spec::Element::Bf16 => {
                type $t = half::bf16;
                $body
            }
            ptq_spec::Element::F32 => {
                type $t = f32;
                $body
            }
        }
    };
}
pub(crate) use with_element;
