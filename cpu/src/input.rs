//! The element types of the input.

use half::{bf16, f16};
use ptq_spec::Element;

/// Element type of `x`: [`half::f16`], [`half::bf16`] or `f32`. Every bit pattern is a value. Sealed.
pub trait Input: Send + Sync + sealed::Bits + 'static {
    /// The same, as a value.
    const ELEMENT: Element;

    /// The value as f32, exactly.
    fn widen(self) -> f32;
}

impl Input for f16 {
    const ELEMENT: Element = Element::F16;

    fn widen(self) -> f32 {
        self.to_f32()
    }
}

impl Input for bf16 {
    const ELEMENT: Element = Element::Bf16;

    fn widen(self) -> f32 {
        self.to_f32()
    }
}

impl Input for f32 {
    const ELEMENT: Element = Element::F32;

    fn widen(self) -> f32 {
        self
    }
}

pub(crate) mod sealed {
    use half::{bf16, f16};

    /// What the fast path needs of an element, without a branch so that loops over it become SIMD.
    pub trait Bits: Copy {
        /// The integer as wide as the element. Signed, for its maximum is one instruction on more machines.
        type Magnitude: Copy + Ord;

        /// The magnitude of ±0.
        const ZERO_MAGNITUDE: Self::Magnitude;

        /// The magnitude of ±inf.
        const INFINITE_MAGNITUDE: Self::Magnitude;

        /// The bits without the sign: they order as |x| does, and NaN is above everything.
        fn magnitude(self) -> Self::Magnitude;

        /// The |x| of that magnitude.
        fn from_magnitude(magnitude: Self::Magnitude) -> Self;

        /// The value as f32, exactly; NaN becomes a NaN.
        fn widen_bits(self) -> f32;

        /// The same, of what is finite.
        fn widen_finite(self) -> f32;
    }

    macro_rules! magnitude {
        ($bits:ty) => {
            type Magnitude = $bits;
            const ZERO_MAGNITUDE: $bits = 0;
            const INFINITE_MAGNITUDE: $bits = Self::INFINITY.to_bits() as $bits;

            #[inline(always)]
            fn magnitude(self) -> $bits {
                self.to_bits() as $bits & <$bits>::MAX
            }

            #[inline(always)]
            fn from_magnitude(magnitude: $bits) -> Self {
                Self::from_bits(magnitude as _)
            }
        };
    }

    impl Bits for f16 {
        magnitude!(i16);

        #[inline(always)]
        fn widen_bits(self) -> f32 {
            let infinite = self.magnitude() >= Self::INFINITE_MAGNITUDE;
            let exponent = if infinite { f32::INFINITY.to_bits() } else { 0 };
            f32::from_bits(self.widen_finite().to_bits() | exponent)
        }

        #[inline(always)]
        fn widen_finite(self) -> f32 {
            /// Mantissa bits that f16 lacks.
            const ADDED: u32 = 13;
            /// 2^(127 - 15): the exponent biases of f32 and f16.
            const BIAS: f32 = f32::from_bits((127 + 127 - 15) << 23);
            // The sign arrives at the top by its extension, whose lower copies the mask removes.
            let shifted = ((self.to_bits() as i16 as i32) << ADDED) as u32 & (1 << 31 | 0x7FFF << ADDED);
            // Multiplying moves the exponent, and makes f16's subnormals normal, exactly.
            f32::from_bits(shifted) * BIAS
        }
    }

    impl Bits for bf16 {
        magnitude!(i16);

        #[inline(always)]
        fn widen_bits(self) -> f32 {
            f32::from_bits((self.to_bits() as u32) << 16)
        }

        #[inline(always)]
        fn widen_finite(self) -> f32 {
            self.widen_bits()
        }
    }

    impl Bits for f32 {
        magnitude!(i32);

        #[inline(always)]
        fn widen_bits(self) -> f32 {
            self
        }

        #[inline(always)]
        fn widen_finite(self) -> f32 {
            self
        }
    }

    #[cfg(test)]
    mod tests {
        use super::*;
        use crate::Input;

        /// The fast path's widening and magnitude against the plain ones.
        fn check<T: Input>(x: T) {
            let plain = x.widen();
            let fast = x.widen_bits();
            if plain.is_nan() {
                assert!(fast.is_nan());
                assert!(x.magnitude() > T::INFINITE_MAGNITUDE);
                return;
            }
            assert_eq!(fast.to_bits(), plain.to_bits());
            assert_eq!(T::from_magnitude(x.magnitude()).widen().to_bits(), plain.abs().to_bits());
            assert_eq!(x.magnitude() == T::INFINITE_MAGNITUDE, plain.is_infinite());
            assert_eq!(x.magnitude() == T::ZERO_MAGNITUDE, plain == 0.0);
            if plain.is_finite() {
                assert_eq!(x.widen_finite().to_bits(), plain.to_bits());
            }
        }

        #[test]
        fn every_pattern_of_16_bits() {
            for bits in 0..=u16::MAX {
                check(f16::from_bits(bits));
                check(bf16::from_bits(bits));
                check(f32::from_bits((bits as u32) << 16 | bits as u32));
            }
        }
    }
}
