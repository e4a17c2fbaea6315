//! `cargo xtask kernels`: builds the GPU artifacts, or checks them.

use crate::workspace;
use clap::Args;
use clap::builder::PossibleValuesParser;
use cuda_builder::Toolchain;
use ptq_artifacts::build::{Planned, plan};
use ptq_artifacts::check::Checked;
use ptq_artifacts::{ArtifactsError, Folders};
use ptq_spec::{Element, Kernel, TARGETS};
use std::path::PathBuf;
use std::time::Instant;

/// Options of the task.
#[derive(Args)]
pub struct Options {
    /// Build afresh and compare with artifacts/ byte for byte, instead of replacing it.
    #[arg(long, conflicts_with_all = ["out", "kernel", "target", "element"])]
    check: bool,
    /// Build into this folder, for PTQ_ARTIFACTS, instead of artifacts/.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Build this operation only; needs --out.
    #[arg(long, requires = "out", value_parser = PossibleValuesParser::new(Kernel::ALL.map(Kernel::name)))]
    kernel: Option<String>,
    /// Build this target only; needs --out.
    #[arg(long, requires = "out", value_parser = PossibleValuesParser::new(TARGETS.iter().map(|target| target.name)))]
    target: Option<String>,
    /// Build this element type only; needs --out.
    #[arg(long, requires = "out", value_parser = PossibleValuesParser::new(Element::ALL.map(Element::name)))]
    element: Option<String>,
}

/// Runs the task.
///
/// # Errors
/// [`ArtifactsError`]: a tool is missing, a build fails, or the check finds a difference.
pub fn run(options: &Options) -> Result<(), ArtifactsError> {
    let folders = Folders::new(workspace::root());
    let start = Instant::now();
    if options.check {
        let scratch = folders.device_target().join("check");
        match ptq_artifacts::check(&folders, &scratch)? {
            Checked::Identical { files } => println!("{files} artifacts, rebuilt byte for byte the same"),
            Checked::OtherTools { expected, actual } => println!(
                "the artifacts build, but were not compared: artifacts/ is of {expected:?}, the tools here are {actual:?}"
            ),
        }
    } else {
        let toolchain = Toolchain::find(Some(folders.root()))?;
        let out = options.out.clone().unwrap_or_else(|| folders.artifacts());
        let wanted = |planned: &Planned| {
            options.kernel.as_deref().is_none_or(|name| name == planned.kernel.name())
                && options.target.as_deref().is_none_or(|name| name == planned.target.name)
                && options.element.as_deref().is_none_or(|name| name == planned.element.name())
        };
        println!("building {} artifacts", plan().filter(wanted).count());
        ptq_artifacts::build(&folders, &toolchain, &out, wanted)?;
        println!("artifacts in {}", out.display());
    }
    println!("{:.1} s", start.elapsed().as_secs_f64());
    Ok(())
}
