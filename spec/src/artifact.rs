//! Names of the GPU artifacts.

use crate::{Element, Kernel, MathMode, Target};
use core::fmt;

/// File name of one artifact without its extension: `per_token.bf16.sm_90.fast`. The PTX ends in `.ptx`, the cubin in
/// `.cubin`.
pub const fn artifact_stem(kernel: Kernel, element: Element, target: &Target, math: MathMode) -> ArtifactStem {
    ArtifactStem { kernel, element, target: target.name, math }
}

/// What [`artifact_stem`] returns: shown, it is the stem.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ArtifactStem {
    kernel: Kernel,
    element: Element,
    target: &'static str,
    math: MathMode,
}

impl fmt::Display for ArtifactStem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}.{}", self.kernel, self.element, self.target, self.math)
    }
}
