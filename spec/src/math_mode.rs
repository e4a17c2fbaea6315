//! The two arithmetic modes of the reference.

use core::fmt;

/// How scale, inverse and product are rounded.
///
/// The reference builds its binary for compute capability 9.0 with fast math and every other one without, and the bits
/// differ, so the mode is part of the contract and not an optimisation level.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum MathMode {
    /// Subnormals flushed, `absmax * (1/448)`, `rcp.approx.ftz.f32`: the reference on compute capability 9.0.
    Fast,
    /// Correctly rounded division and reciprocal, subnormals kept: the reference everywhere else.
    Precise,
}

impl MathMode {
    /// Both modes.
    pub const ALL: [Self; 2] = [Self::Fast, Self::Precise];

    /// Lower-case name, as artifact names and command-line options spell it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Fast => "fast",
            Self::Precise => "precise",
        }
    }
}

impl fmt::Display for MathMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
