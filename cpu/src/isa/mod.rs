//! The instruction sets that the algorithm of a row is compiled for: one file each, a shell without an algorithm.
//!
//! No intrinsics: the loops of [`crate::row`] are inlined into a function that has the instruction set, and become its SIMD.
//! bf16, 4096 x 4096, precise, one thread of a Zen 5: portable 6.5 ms, AVX2 3.9 ms, AVX-512 2.3 ms.

/// The algorithms of [`crate::row`] compiled with target features, for machines of which a condition says that they have them.
#[cfg(target_arch = "x86_64")]
macro_rules! compiled_with {
    ($features:literal, $available:expr) => {
        use super::{Passes, Row};
        use crate::scalar::Rule;
        use crate::{Input, row};
        use ptq_spec::MathMode;

        /// The algorithm of a row, if this machine has the features.
        pub(crate) fn row<T: Input>() -> Option<Row<T>> {
            // SAFETY: the closure leaves this function only where the machine has the features.
            $available.then_some(|x, q, rule| unsafe { quantize(x, q, rule) })
        }

        /// The passes over a tensor, if this machine has the features.
        pub(crate) fn passes<T: Input>() -> Option<Passes<T>> {
            $available.then_some(Passes {
                // SAFETY: the closure leaves this function only where the machine has the features.
                absmax: |x| unsafe { absmax(x) },
                // SAFETY: as above.
                encode: |x, q, inv, math| unsafe { encode_by(x, q, inv, math) },
            })
        }

        #[target_feature(enable = $features)]
        fn quantize<T: Input>(x: &[T], q: &mut [u8], rule: Rule) -> f32 {
            row::quantize(x, q, rule)
        }

        #[target_feature(enable = $features)]
        fn absmax<T: Input>(x: &[T]) -> f32 {
            row::absmax(x)
        }

        #[target_feature(enable = $features)]
        fn encode_by<T: Input>(x: &[T], q: &mut [u8], inv: f32, math: MathMode) {
            row::encode_by(x, q, inv, math);
        }
    };
}
#[cfg(target_arch = "x86_64")]
use compiled_with;

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;

use crate::scalar::Rule;
use crate::{Input, row};
use ptq_spec::MathMode;
use std::fmt;

/// Quantizes one row `x` into `q` and returns its scale.
pub(crate) type Row<T> = fn(x: &[T], q: &mut [u8], rule: Rule) -> f32;

/// The two passes over a tensor, each of which takes any part of it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Passes<T> {
    /// The absmax; a NaN never raises it.
    pub absmax: fn(x: &[T]) -> f32,
    /// Quantizes `x` into `q` by an inverse of the scale.
    pub encode: fn(x: &[T], q: &mut [u8], inv: f32, math: MathMode),
}

/// An instruction set. It never shows in the bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Isa {
    /// AVX-512 F, BW, DQ and VL, of x86-64.
    Avx512,
    /// AVX2, of x86-64.
    Avx2,
    /// What the crate is compiled for. Every machine has it.
    Portable,
}

impl Isa {
    /// Every one, the fastest first.
    pub const ALL: [Self; 3] = [Self::Avx512, Self::Avx2, Self::Portable];

    /// Whether this machine has it.
    pub fn is_available(self) -> bool {
        self.row::<f32>().is_some()
    }

    /// The algorithm compiled for it, if this machine has it.
    pub(crate) fn row<T: Input>(self) -> Option<Row<T>> {
        match self {
            #[cfg(target_arch = "x86_64")]
            Self::Avx512 => avx512::row(),
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => avx2::row(),
            #[cfg(not(target_arch = "x86_64"))]
            Self::Avx512 | Self::Avx2 => None,
            Self::Portable => Some(row::quantize),
        }
    }

    /// The passes over a tensor compiled for it, if this machine has it.
    pub(crate) fn passes<T: Input>(self) -> Option<Passes<T>> {
        match self {
            #[cfg(target_arch = "x86_64")]
            Self::Avx512 => avx512::passes(),
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => avx2::passes(),
            #[cfg(not(target_arch = "x86_64"))]
            Self::Avx512 | Self::Avx2 => None,
            Self::Portable => Some(Passes { absmax: row::absmax, encode: row::encode_by }),
        }
    }
}

impl fmt::Display for Isa {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Avx512 => "avx512",
            Self::Avx2 => "avx2",
            Self::Portable => "portable",
        })
    }
}
