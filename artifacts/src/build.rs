//! What is built, with which flags.

use crate::manifest::{Manifest, Tools};
use crate::{ArtifactsError, Folders, sources};
use cuda_builder::{Arch, CudaBuilder, Toolchain};
use ptq_spec::{Element, Kernel, MathMode, Target, artifact_stem, every_artifact};
use std::fs;
use std::panic::resume_unwind;
use std::path::Path;
use std::thread;

/// One artifact of the plan.
#[derive(Debug, Clone, Copy)]
pub struct Planned {
    /// The operation.
    pub kernel: Kernel,
    /// The GPU it is for.
    pub target: &'static Target,
    /// How it computes.
    pub math: MathMode,
    /// The input's element type.
    pub element: Element,
}

/// Every artifact, in the order of the operations, then of the targets.
pub fn plan() -> impl Iterator<Item = Planned> {
    every_artifact().map(|(kernel, target, math, element)| Planned { kernel, target, math, element })
}

impl Planned {
    /// File name without extension.
    pub fn stem(&self) -> String {
        artifact_stem(self.kernel, self.element, self.target, self.math).to_string()
    }

    fn build(&self, folders: &Folders, toolchain: &Toolchain, out: &Path) -> Result<(), ArtifactsError> {
        let fast = self.math == MathMode::Fast;
        CudaBuilder::new(folders.kernels())
            .arch(Arch { name: self.target.name, ptx_version: self.target.ptx_version })
            .ftz(fast)
            .fast_div(fast)
            .fast_sqrt(fast)
            // A fused product and sum rounds once instead of twice, in neither mode of the reference.
            .fma_contraction(false)
            .features(self.kernel.features().iter().copied().chain([self.element.name()]))
            .toolchain(toolchain)
            .target_dir(folders.device_target())
            .copy_to(out.join(self.stem() + ".ptx"))
            .cubin_to(out.join(self.stem() + ".cubin"))
            .build()?;
        Ok(())
    }
}

/// Builds the artifacts that `wanted` keeps into `out`, and the manifest when those are all.
///
/// # Errors
/// [`ArtifactsError::Build`] with what a tool says; [`ArtifactsError::Partial`] where some are left out and `out` has a
/// manifest, which would then be wrong; [`ArtifactsError::Io`].
pub fn build(
    folders: &Folders,
    toolchain: &Toolchain,
    out: &Path,
    wanted: impl Fn(&Planned) -> bool,
) -> Result<Option<Manifest>, ArtifactsError> {
    // Before the build: a source edited meanwhile makes the manifest stale, as it should.
    let sources = sources::hash(folders)?;
    fs::create_dir_all(out).map_err(|e| ArtifactsError::io(out, e))?;
    let complete = plan().all(|planned| wanted(&planned));
    if !complete && Manifest::is_in(out) {
        return Err(ArtifactsError::Partial { folder: out.to_path_buf() });
    }
    let wanted: Vec<Planned> = plan().filter(wanted).collect();
    let of_element = |element| wanted.iter().filter(move |planned| planned.element == element);
    // At once by element; the math modes of one come from the same module.
    thread::scope(|scope| {
        let builds = Element::ALL.map(|element| {
            scope.spawn(move || of_element(element).try_for_each(|planned| planned.build(folders, toolchain, out)))
        });
        builds.into_iter().try_for_each(|build| build.join().unwrap_or_else(|panic| resume_unwind(panic)))
    })?;
    if !complete {
        return Ok(None);
    }
    let manifest = Manifest::describe(out, sources, Tools::of(toolchain, out)?)?;
    manifest.write(out)?;
    Ok(Some(manifest))
}
