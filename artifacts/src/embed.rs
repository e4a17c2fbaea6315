//! What the library's build script does.

use crate::build::{Planned, plan};
use crate::compress::{self, compress};
use crate::{ArtifactsError, Folders, Manifest, build, sources};
use cuda_builder::{CudaBuilderError, Toolchain};
use ptq_spec::TARGETS;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

/// Fills `out_dir` with the artifacts of the sources present, compressed, and with `artifacts.rs`, which embeds them.
///
/// The checked-in files are taken where their manifest is of these sources, or no sources are there that could differ
/// ([`Folders::has_sources`]); else fresh ones are built. Prints what cargo must watch. `find` is asked for the tools only
/// then.
///
/// # Errors
/// [`ArtifactsError::Stale`] where the sources changed and no toolchain is there; a damaged file; what a build says.
pub fn embed(
    folders: &Folders,
    out_dir: &Path,
    find: impl FnOnce() -> Result<Toolchain, CudaBuilderError>,
) -> Result<(), ArtifactsError> {
    let watched = |path: &Path| println!("cargo::rerun-if-changed={}", path.display());
    watched(&folders.artifacts());
    if folders.has_sources() {
        sources::watched().for_each(|name| watched(&folders.root().join(name)));
        watched(&folders.root().join("Cargo.lock"));
    }
    for variable in [cuda_builder::toolchain::RUSTC_VARIABLE, cuda_builder::toolchain::NVIDIA_VARIABLE] {
        println!("cargo::rerun-if-env-changed={variable}");
    }
    let manifest = Manifest::read(folders)?;
    let current = if folders.has_sources() { manifest.check_sources(folders) } else { Ok(()) };
    let from = match current {
        Ok(()) => {
            manifest.check_files(&folders.artifacts())?;
            folders.artifacts()
        }
        Err(ArtifactsError::StaleManifest { .. }) => {
            let toolchain = find().map_err(ArtifactsError::Stale)?;
            build(folders, &toolchain, out_dir, |_| true)?;
            out_dir.to_path_buf()
        }
        Err(other) => return Err(other),
    };
    let files = plan().flat_map(|planned| planned_files(&planned)).collect::<Vec<_>>();
    let lens = compress(&files, &from, out_dir)?;
    let path = out_dir.join("artifacts.rs");
    fs::write(&path, table(&lens)).map_err(|e| ArtifactsError::io(&path, e))
}

/// PTX and cubin.
fn planned_files(planned: &Planned) -> [String; 2] {
    ["ptx", "cubin"].map(|extension| format!("{}.{extension}", planned.stem()))
}

/// Rust source of the table; `lens`: how many bytes each file decompresses to.
fn table(lens: &BTreeMap<String, usize>) -> String {
    let mut text = String::from(
        "/// The artifacts embedded in this library: PTX and a cubin per operation, target, math mode and element type.\n\
         pub static ARTIFACTS: ::ptq_host::Artifacts = {\n    const TABLE: &[::ptq_host::Artifact] = &[\n",
    );
    let image = |file: &String| {
        let (path, len) = (compress::name(file), lens[file]);
        format!("::ptq_host::Image::Lzip {{ bytes: include_bytes!({path:?}), len: {len} }}")
    };
    for planned in plan() {
        let index = TARGETS.iter().position(|target| target == planned.target).expect("the plan is of these targets");
        let [ptx, cubin] = planned_files(&planned).each_ref().map(image);
        let (kernel, math, element) = (planned.kernel, planned.math, planned.element);
        writeln!(
            text,
            "        ::ptq_host::Artifact {{ kernel: ::ptq_spec::Kernel::{kernel:?}, \
             target: &::ptq_spec::TARGETS[{index}], math: ::ptq_spec::MathMode::{math:?}, \
             element: ::ptq_spec::Element::{element:?}, ptx: {ptx}, cubin: {cubin} }},"
        )
        .expect("a String takes any text");
    }
    text + "    ];\n    \
            // SAFETY: built from this repository's kernels: afresh, or checked in with the hash of these sources.\n    \
            unsafe { ::ptq_host::Artifacts::new(TABLE) }\n};\n"
}
