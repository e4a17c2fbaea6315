//! The element types of the input.

use half::{bf16, f16};
use ptq_spec::Element;

/// Element type of `x`: [`half::f16`], [`half::bf16`] or `f32`. Sealed.
pub trait Input: bytemuck::Pod + Send + Sync + sealed::Bits {
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
        type Order: Copy + Ord;

        /// The order of ±0.
        const ZERO_ORDER: Self::Order;

        /// A number that orders as |x| does, and NaN below everything.
        fn order(self) -> Self::Order;

        /// The |x| of that order, not of NaN.
        fn from_order(order: Self::Order) -> Self;

        /// The value as f32, exactly; NaN becomes a NaN.
        fn widen_bits(self) -> f32;
    }

    macro_rules! order {
        ($bits:ty) => {
            type Order = $bits;

            // What lifts infinity to the largest integer, so that a NaN's magnitude wraps to a negative one.
            const ZERO_ORDER: $bits = <$bits>::MAX - Self::INFINITY.to_bits() as $bits;

            #[inline(always)]
            fn order(self) -> $bits {
                (self.to_bits() as $bits & <$bits>::MAX).wrapping_add(Self::ZERO_ORDER)
            }

            #[inline(always)]
            fn from_order(order: $bits) -> Self {
                Self::from_bits((order - Self::ZERO_ORDER) as _)
            }
        };
    }

    impl Bits for f16 {
        order!(i16);

        #[inline(always)]
        fn widen_bits(self) -> f32 {
            const INFINITY: u32 = f16::INFINITY.to_bits() as u32;
            /// 2^(127 - 15): the exponent biases of f32 and f16.
            const BIAS: f32 = f32::from_bits((127 + 127 - 15) << 23);
            let bits = self.to_bits() as u32;
            let magnitude = bits & 0x7FFF;
            // Multiplying moves the exponent, and makes f16's subnormals normal, exactly.
            let finite = (f32::from_bits(magnitude << 13) * BIAS).to_bits();
            let exponent = if magnitude >= INFINITY { f32::INFINITY.to_bits() } else { 0 };
            f32::from_bits(finite | exponent | (bits & 0x8000) << 16)
        }
    }

    impl Bits for bf16 {
        order!(i16);

        #[inline(always)]
        fn widen_bits(self) -> f32 {
            f32::from_bits((self.to_bits() as u32) << 16)
        }
    }

    impl Bits for f32 {
        order!(i32);

        #[inline(always)]
        fn widen_bits(self) -> f32 {
            self
        }
    }

    #[cfg(test)]
    mod tests {
        use super::*;
        use crate::Input;

        /// The fast path's widening and order against the plain ones.
        fn check<T: Input>(x: T) {
            let plain = x.widen();
            let fast = x.widen_bits();
            if plain.is_nan() {
                assert!(fast.is_nan());
                assert!(x.order() < T::ZERO_ORDER);
            } else {
                assert_eq!(fast.to_bits(), plain.to_bits());
                assert_eq!(T::from_order(x.order()).widen().to_bits(), plain.abs().to_bits());
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
