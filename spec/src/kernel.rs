//! The operations that are compiled.

use crate::per_token::Entry;
use crate::{per_tensor, per_token, per_token_extended};
use core::fmt;

/// An operation of the GPU: kernels that are compiled, embedded and loaded together, one artifact for each element type,
/// target and math mode.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kernel {
    /// Per-token quantization: [`crate::per_token`].
    PerToken,
    /// Per-token quantization of strided rows, with bounds and a row count in device memory:
    /// [`crate::per_token_extended`].
    PerTokenExtended,
    /// Per-tensor quantization: [`crate::per_tensor`].
    PerTensor,
}

impl Kernel {
    /// Every operation.
    pub const ALL: [Self; 3] = [Self::PerToken, Self::PerTokenExtended, Self::PerTensor];

    /// Lower-case name: in file names of artifacts, as cargo feature of the kernels' crate, in errors.
    pub const fn name(self) -> &'static str {
        match self {
            Self::PerToken => per_token::KERNEL,
            Self::PerTokenExtended => per_token_extended::KERNEL,
            Self::PerTensor => per_tensor::KERNEL,
        }
    }

    /// Symbols of its entries, the same in every artifact.
    pub const fn entries(self) -> &'static [&'static str] {
        match self {
            Self::PerToken => per_token::ENTRY_NAMES,
            Self::PerTokenExtended => per_token_extended::ENTRY_NAMES,
            Self::PerTensor => per_tensor::ENTRY_NAMES,
        }
    }

    /// Its entries that quantize whole rows, by warps or CTAs: what a launch plan chooses among.
    pub const fn row_entries(self) -> &'static [Entry] {
        match self {
            Self::PerToken => per_token::ENTRIES,
            Self::PerTokenExtended => per_token_extended::ENTRIES,
            Self::PerTensor => &[],
        }
    }
}

impl fmt::Display for Kernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
