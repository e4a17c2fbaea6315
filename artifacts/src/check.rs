//! What `cargo xtask kernels --check` does.

use crate::{ArtifactsError, Folders, Manifest, build};
use cuda_builder::Toolchain;
use std::fs;
use std::path::Path;

/// How far a check went.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Checked {
    /// A fresh build has the same bytes.
    Identical {
        /// Files compared.
        files: usize,
    },
    /// A fresh build succeeds; with other tools than the manifest's its bytes say nothing, and were not compared.
    OtherTools {
        /// The manifest's tools.
        expected: crate::manifest::Tools,
        /// The tools present.
        actual: crate::manifest::Tools,
    },
}

/// Checks the manifest against the sources and the files, builds afresh into `scratch`, and compares byte for byte.
///
/// # Errors
/// [`ArtifactsError`]: stale sources, a damaged file, a build that fails, bytes that differ.
pub fn check(folders: &Folders, scratch: &Path) -> Result<Checked, ArtifactsError> {
    let manifest = Manifest::read(folders)?;
    manifest.check_sources(folders)?;
    manifest.check_files(&folders.artifacts())?;

    let toolchain = Toolchain::find(Some(folders.root()))?;
    if scratch.exists() {
        fs::remove_dir_all(scratch).map_err(|e| ArtifactsError::io(scratch, e))?;
    }
    let fresh = build(folders, &toolchain, scratch, |_| true)?.expect("all artifacts were wanted");
    if fresh.tools != manifest.tools {
        return Ok(Checked::OtherTools { expected: manifest.tools, actual: fresh.tools });
    }
    let names = manifest.files.keys().chain(fresh.files.keys());
    let mut differing: Vec<String> =
        names.filter(|name| manifest.files.get(*name) != fresh.files.get(*name)).cloned().collect();
    differing.sort();
    differing.dedup();
    if differing.is_empty() {
        Ok(Checked::Identical { files: fresh.files.len() })
    } else {
        Err(ArtifactsError::Differs { files: differing })
    }
}
