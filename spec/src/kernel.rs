//! The operations that are compiled.

use crate::per_token::{Entry, Strategy};
use crate::{ComputeCapability, Target, per_tensor, per_token, per_token_extended};
use core::fmt;

/// An operation of the GPU: kernels that are compiled, embedded and loaded together, one artifact for each element type,
/// target and math mode.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kernel {
    /// Per-token quantization: [`crate::per_token`].
    PerToken,
    /// The same entries, which order their grids themselves, so that a grid may start before the one before it is complete
    /// ("programmatic dependent launch"). Kernels of their own, because that costs time where CTAs are many and short.
    PerTokenProgrammatic,
    /// Per-token quantization of strided rows, with bounds and a row count in device memory:
    /// [`crate::per_token_extended`].
    PerTokenExtended,
    /// Per-tensor quantization: [`crate::per_tensor`].
    PerTensor,
}

impl Kernel {
    /// Every operation.
    pub const ALL: [Self; 4] = [Self::PerToken, Self::PerTokenProgrammatic, Self::PerTokenExtended, Self::PerTensor];

    /// Lowest compute capability whose grids can order themselves: `griddepcontrol` (PTX ISA).
    pub const PROGRAMMATIC_CAPABILITY: ComputeCapability = ComputeCapability(9, 0);

    /// Lower-case name: in file names of artifacts and in errors.
    pub const fn name(self) -> &'static str {
        match self {
            Self::PerToken => per_token::KERNEL,
            Self::PerTokenProgrammatic => "per_token_programmatic",
            Self::PerTokenExtended => per_token_extended::KERNEL,
            Self::PerTensor => per_tensor::KERNEL,
        }
    }

    /// Cargo features of the kernels' crate that build it.
    pub const fn features(self) -> &'static [&'static str] {
        match self {
            Self::PerToken => &["per_token"],
            Self::PerTokenProgrammatic => &["per_token", "programmatic"],
            Self::PerTokenExtended => &["per_token_extended", "programmatic"],
            Self::PerTensor => &["per_tensor"],
        }
    }

    /// Whether its grids order themselves on that target: a launch may then let them start early.
    pub fn orders_grids(self, target: &Target) -> bool {
        matches!(self, Self::PerTokenProgrammatic | Self::PerTokenExtended)
            && target.capability >= Self::PROGRAMMATIC_CAPABILITY
    }

    /// Whether there are artifacts of it for that target.
    pub fn is_for(self, target: &Target) -> bool {
        self != Self::PerTokenProgrammatic || self.orders_grids(target)
    }

    /// Symbols of its entries, the same in every artifact.
    pub const fn entries(self) -> &'static [&'static str] {
        match self {
            Self::PerToken | Self::PerTokenProgrammatic => per_token::ENTRY_NAMES,
            Self::PerTokenExtended => per_token_extended::ENTRY_NAMES,
            Self::PerTensor => per_tensor::ENTRY_NAMES,
        }
    }

    /// Its entries that quantize whole rows, by warps or CTAs: what a launch plan chooses among.
    pub const fn row_entries(self) -> &'static [Entry] {
        match self {
            Self::PerToken | Self::PerTokenProgrammatic => per_token::ENTRIES,
            Self::PerTokenExtended => per_token_extended::ENTRIES,
            Self::PerTensor => &[],
        }
    }

    /// The row entry of that strategy and shape, if there is one.
    pub fn row_entry(
        self,
        strategy: Strategy,
        elements_per_vector: u32,
        vectors_per_thread: u32,
    ) -> Option<&'static Entry> {
        self.row_entries().iter().find(|e| {
            e.strategy == strategy
                && e.elements_per_vector == elements_per_vector
                && e.vectors_per_thread == vectors_per_thread
        })
    }
}

impl fmt::Display for Kernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
