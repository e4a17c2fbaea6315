//! What became of the kernels: registers, local memory and instructions of the machine code; and a summary of PTX and
//! machine code per artifact, so that a diff shows what a change of the kernels did.
//!
//! After an intended change: `INSTA_UPDATE=always cargo test --test machine_code`, then read the diff of `snapshots/`.
//!
//! Machine code is read with nvdisasm, of `PTQ_TOOLCHAIN` or `cargo xtask setup`; some tests build or assemble, and need the
//! device toolchain; snapshots lie among the sources. Where one is missing the tests that need it are reported as ignored,
//! with the reason; with `PTQ_REQUIRE_TOOLCHAIN=1` they fail. Registers and memory are in the cubins' tables, which need no
//! tool.

mod contract;
mod cubin;
mod jump_threading;
mod listing;
mod nvdisasm;
mod per_tensor;
mod snapshot;
mod version;

use cubin::Resources;
use cuda_builder::Toolchain;
use libtest_mimic::{Arguments, Completion, Failed, Trial};
use listing::Instruction;
use per_token_quant_fp8::{ARTIFACTS, Artifact};
use ptq_artifacts::Folders;
use ptq_spec::{Kernel, TARGETS};
use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Every entry of one artifact, with its instructions.
type Listing = [(&'static str, Vec<Instruction>)];

/// The same with what the cubin's tables say.
type Used = [(&'static str, Resources)];

/// What a test needs besides the artifacts, or why that is missing.
type Needed<T = PathBuf> = Result<T, String>;

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    let nvdisasm = nvdisasm::find();
    let snapshots = snapshot::folder();
    let folders = Folders::new(env!("CARGO_MANIFEST_DIR"));
    let toolchain: Needed<Toolchain> = Toolchain::find(Some(folders.root())).map_err(|error| error.to_string());
    let both = nvdisasm.clone().and_then(|tool| snapshots.clone().map(|_| tool));

    let mut trials =
        vec![needing(&snapshots, "no_snapshot_is_left_over".into(), |folder| none(snapshot::left_over(&folder)?))];
    trials.push(needing(&toolchain, "no_barrier_is_copied".into(), move |toolchain| {
        jump_threading::check(&toolchain, &folders.device_target())
    }));
    for target in TARGETS {
        trials.push(needing(&toolchain, format!("lowest_version::{target}"), |toolchain| {
            version::check(target, &toolchain.ptxas)
        }));
    }
    for artifact in ARTIFACTS.as_slice() {
        let stem = artifact.stem();
        trials.push(Trial::test(format!("resources::{stem}"), move || {
            let used = used(artifact)?;
            none(match artifact.kernel {
                Kernel::PerTensor => per_tensor::resources(artifact, &used),
                _ => contract::resources(artifact, &used),
            })?;
            Ok(())
        }));
        trials.push(needing(&nvdisasm, format!("instructions::{stem}"), move |tool| {
            let listing = sass(artifact, &tool)?;
            none(match artifact.kernel {
                Kernel::PerTensor => per_tensor::instructions(artifact, &listing),
                _ => contract::instructions(artifact, &listing),
            })
        }));
        trials.push(needing(&snapshots, format!("ptx::{stem}"), move |folder| {
            snapshot::check(&folder, artifact, snapshot::PTX, &snapshot::table(&ptx(artifact)?, &[]))
        }));
        let folder = snapshots.clone();
        trials.push(needing(&both, format!("sass::{stem}"), move |tool| {
            let table = snapshot::table(&sass(artifact, &tool)?, &used(artifact)?);
            snapshot::check(&folder?, artifact, snapshot::SASS, &table)
        }));
    }
    libtest_mimic::run(&arguments, trials).exit_code()
}

/// A test that runs where `needed` is there.
fn needing<T: Clone + Send + 'static>(
    needed: &Needed<T>,
    name: String,
    run: impl FnOnce(T) -> Result<(), Box<dyn Error>> + Send + 'static,
) -> Trial {
    let needed = needed.clone();
    Trial::ignorable_test(name, move || match needed {
        Ok(needed) => {
            run(needed)?;
            Ok(Completion::Completed)
        }
        Err(reason) if std::env::var("PTQ_REQUIRE_TOOLCHAIN").is_ok_and(|v| v == "1") => Err(Failed::from(reason)),
        Err(reason) => Ok(Completion::ignored_with(reason)),
    })
}

/// Fails with all violations, one a line.
fn none(violations: Vec<String>) -> Result<(), Box<dyn Error>> {
    if violations.is_empty() { Ok(()) } else { Err(violations.join("\n").into()) }
}

fn ptx(artifact: &Artifact) -> Result<Box<Listing>, Box<dyn Error>> {
    let text = artifact.ptx_text()?;
    Ok(artifact.kernel.entries().iter().map(|&entry| (entry, listing::ptx(&text, entry))).collect())
}

fn sass(artifact: &Artifact, nvdisasm: &Path) -> Result<Box<Listing>, Box<dyn Error>> {
    let text = nvdisasm::run(nvdisasm, &artifact.cubin_bytes()?)?;
    Ok(artifact.kernel.entries().iter().map(|&entry| (entry, listing::sass(&text, entry))).collect())
}

fn used(artifact: &Artifact) -> Result<Box<Used>, Box<dyn Error>> {
    let mut resources = cubin::resources(&artifact.cubin_bytes()?)?;
    let mut used = Vec::new();
    for &entry in artifact.kernel.entries() {
        used.push((entry, resources.remove(entry).ok_or_else(|| format!("no {entry} in the cubin"))?));
    }
    match resources.into_keys().next() {
        Some(other) => Err(format!("the cubin has an entry `{other}`").into()),
        None => Ok(used.into()),
    }
}
