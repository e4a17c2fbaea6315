//! Where things are.

use std::path::{Path, PathBuf};

/// The workspace, by its root.
#[derive(Debug, Clone)]
pub struct Folders {
    root: PathBuf,
}

impl Folders {
    /// The workspace with that root.
    pub fn new(root: impl AsRef<Path>) -> Self {
        Self { root: root.as_ref().to_path_buf() }
    }

    /// The root.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The checked-in artifacts.
    pub fn artifacts(&self) -> PathBuf {
        self.root.join("artifacts")
    }

    /// The kernel crate.
    pub fn kernels(&self) -> PathBuf {
        self.root.join("kernels-gpu")
    }

    /// Intermediate files of device builds.
    pub fn device_target(&self) -> PathBuf {
        self.root.join("target/cuda-builder")
    }
}
