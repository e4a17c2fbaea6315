//! Names of the GPU artifacts.

use crate::{Element, Kernel, MathMode, TARGETS, Target};
use core::fmt;

/// File name of one artifact without its extension: `per_token.bf16.sm_90.fast`. The PTX ends in `.ptx`, the cubin in
/// `.cubin`.
pub const fn artifact_stem(kernel: Kernel, element: Element, target: &Target, math: MathMode) -> ArtifactStem {
    ArtifactStem { kernel, element, target: target.name, math }
}

/// Everything that there is an artifact of, in the order of the operations, then of the targets.
pub fn every_artifact() -> impl Iterator<Item = (Kernel, &'static Target, MathMode, Element)> {
    let modes = |target: &'static Target| target.math.iter().map(move |&math| (target, math));
    let elements = move |(target, math)| Element::ALL.into_iter().map(move |element| (target, math, element));
    Kernel::ALL.into_iter().flat_map(move |kernel| {
        let targets = TARGETS.iter().filter(move |target| kernel.is_for(target));
        let of_kernel = targets.flat_map(modes).flat_map(elements);
        of_kernel.map(move |(target, math, element)| (kernel, target, math, element))
    })
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
