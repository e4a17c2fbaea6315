//! `manifest.json`: what the checked-in artifacts were built from, and with.

use crate::build::plan;
use crate::{ArtifactsError, Folders, sources};
use cuda_builder::Toolchain;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// Name of the file.
const FILE: &str = "manifest.json";

/// The manifest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    /// SHA-256 over the sources.
    pub sources: String,
    /// The tools.
    pub tools: Tools,
    /// SHA-256 of every artifact, by file name.
    pub files: BTreeMap<String, String>,
}

/// The tools that built the artifacts. The same tools give the same bytes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tools {
    /// Release and commit of rustc.
    pub rustc: String,
    /// Version of libNVVM.
    pub libnvvm: String,
    /// Version of ptxas.
    pub ptxas: String,
}

impl Tools {
    /// The tools of a build whose results are in `out`; libNVVM says its version only in the PTX it writes.
    pub(crate) fn of(toolchain: &Toolchain, out: &Path) -> Result<Self, ArtifactsError> {
        let mut libnvvm = String::from("unknown");
        if let Some(planned) = plan().next() {
            let path = out.join(planned.stem() + ".ptx");
            let ptx = fs::read_to_string(&path).map_err(|e| ArtifactsError::io(&path, e))?;
            libnvvm = cuda_builder::toolchain::parse_version(&ptx).unwrap_or(libnvvm);
        }
        let rustc = format!("{} ({})", toolchain.rustc.release, toolchain.rustc.commit);
        Ok(Self { rustc, libnvvm, ptxas: toolchain.ptxas_version.clone() })
    }
}

impl Manifest {
    /// The checked-in manifest.
    ///
    /// # Errors
    /// [`ArtifactsError::Io`], [`ArtifactsError::Manifest`].
    pub fn read(folders: &Folders) -> Result<Self, ArtifactsError> {
        let path = folders.artifacts().join(FILE);
        let text = fs::read_to_string(&path).map_err(|e| ArtifactsError::io(&path, e))?;
        Ok(serde_json::from_str(&text)?)
    }

    /// Whether a folder has a manifest.
    pub(crate) fn is_in(folder: &Path) -> bool {
        folder.join(FILE).exists()
    }

    /// Whether the artifacts are of the sources present.
    ///
    /// # Errors
    /// [`ArtifactsError::StaleManifest`] if not.
    pub fn check_sources(&self, folders: &Folders) -> Result<(), ArtifactsError> {
        let expected = sources::hash(folders)?;
        if self.sources == expected {
            return Ok(());
        }
        Err(ArtifactsError::StaleManifest { expected, actual: self.sources.clone() })
    }

    /// Whether the files in `folder` are the ones listed.
    ///
    /// # Errors
    /// [`ArtifactsError::Damaged`] naming the first that is not.
    pub fn check_files(&self, folder: &Path) -> Result<(), ArtifactsError> {
        for (file, expected) in &self.files {
            let actual = hash_file(&folder.join(file))?;
            if actual != *expected {
                return Err(ArtifactsError::Damaged { file: file.clone(), expected: expected.clone(), actual });
            }
        }
        Ok(())
    }

    /// The manifest of a complete build in `out`.
    pub(crate) fn describe(out: &Path, sources: String, tools: Tools) -> Result<Self, ArtifactsError> {
        let mut files = BTreeMap::new();
        for planned in plan() {
            for extension in ["ptx", "cubin"] {
                let file = format!("{}.{extension}", planned.stem());
                let hash = hash_file(&out.join(&file))?;
                files.insert(file, hash);
            }
        }
        Ok(Self { sources, tools, files })
    }

    pub(crate) fn write(&self, out: &Path) -> Result<(), ArtifactsError> {
        let text = serde_json::to_string_pretty(self)? + "\n";
        let (path, beside) = (out.join(FILE), out.join(format!("{FILE}.tmp")));
        fs::write(&beside, text).map_err(|e| ArtifactsError::io(&beside, e))?;
        fs::rename(&beside, &path).map_err(|e| ArtifactsError::io(&path, e))
    }
}

fn hash_file(path: &Path) -> Result<String, ArtifactsError> {
    let bytes = fs::read(path).map_err(|e| ArtifactsError::io(path, e))?;
    // PTX is text: a checkout with CRLF is the same artifact.
    let is_text = path.extension().is_some_and(|extension| extension == "ptx");
    let bytes = if is_text { bytes.into_iter().filter(|&byte| byte != b'\r').collect() } else { bytes };
    Ok(hex_sha256(Sha256::new_with_prefix(bytes)))
}

pub(crate) fn hex_sha256(hasher: Sha256) -> String {
    hasher.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}
