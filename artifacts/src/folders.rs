//! Where things are.

use std::path::{Path, PathBuf};

/// The workspace, by its root.
///
/// Of a dependency that `cargo vendor` copied, the root holds the library's own package and nothing else: no kernel
/// sources, and the artifacts lie with this crate.
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

    /// Whether the kernel sources are there.
    pub fn has_sources(&self) -> bool {
        self.kernels().is_dir()
    }

    /// The checked-in artifacts.
    pub fn artifacts(&self) -> PathBuf {
        if self.has_sources() { self.root.join("artifacts") } else { PathBuf::from(env!("CARGO_MANIFEST_DIR")) }
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
