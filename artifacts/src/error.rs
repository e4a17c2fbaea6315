//! What can go wrong with artifacts.

use cuda_builder::CudaBuilderError;
use std::io;
use std::path::{Path, PathBuf};

/// A build, check or embedding that failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ArtifactsError {
    /// The kernels could not be built.
    #[error(transparent)]
    Build(#[from] CudaBuilderError),
    /// The sources changed, and there is no toolchain to build them with.
    #[error(
        "the kernel sources differ from the ones that the checked-in artifacts were built from, and stale artifacts are \
         never used.\nEither undo the change, or get the device toolchain and run `cargo xtask kernels`:\n{0}"
    )]
    Stale(CudaBuilderError),
    /// A checked-in file is not the one that the manifest lists.
    #[error(
        "artifacts/{file}: sha256 is {actual}, expected {expected} as manifest.json says; \
         restore the file, or run `cargo xtask kernels`"
    )]
    Damaged {
        /// The file's name.
        file: String,
        /// The manifest's hash.
        expected: String,
        /// The file's hash.
        actual: String,
    },
    /// The manifest names other sources than those present.
    #[error(
        "artifacts/manifest.json is of sources {actual}, expected {expected} as they are now; run `cargo xtask kernels` \
         and commit artifacts/"
    )]
    StaleManifest {
        /// Hash of the sources present.
        expected: String,
        /// Hash in the manifest.
        actual: String,
    },
    /// A fresh build differs from the checked-in files though the tools are the same.
    #[error(
        "a fresh build differs from artifacts/ in: {}; run `cargo xtask kernels` and commit the result", files.join(", ")
    )]
    Differs {
        /// Names of the files.
        files: Vec<String>,
    },
    /// Some artifacts would be built into a folder whose manifest is of all.
    #[error("{} has a manifest of all artifacts; build all of them there, or some of them into another folder", folder.display())]
    Partial {
        /// The folder.
        folder: PathBuf,
    },
    /// A file could not be read or written.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// The manifest is not what this crate writes.
    #[error("artifacts/manifest.json: {0}; run `cargo xtask kernels`")]
    Manifest(#[from] serde_json::Error),
}

impl ArtifactsError {
    pub(crate) fn io(path: &Path, source: io::Error) -> Self {
        Self::Io { path: path.to_path_buf(), source }
    }
}
