//! Finding the tools of a device build. Only files are read, and only the tools found are run; never rustup.

mod nvidia;
mod rust;

pub use nvidia::parse_version;
pub use rust::{Core, Rustc};

use crate::CudaBuilderError;
use std::path::{Path, PathBuf};

/// Environment variable that names a rustc for device builds.
pub const RUSTC_VARIABLE: &str = "PTQ_RUSTC";

/// Environment variable that names a folder with libNVVM and ptxas.
pub const NVIDIA_VARIABLE: &str = "PTQ_TOOLCHAIN";

/// Where `cargo xtask setup` puts libNVVM and ptxas, from the workspace's root.
pub const NVIDIA_FOLDER: &str = "target/toolchain";

/// The tools of a device build.
#[derive(Debug, Clone)]
pub struct Toolchain {
    /// The Rust compiler, with a `core` for the GPU or its source.
    pub rustc: Rustc,
    /// The libNVVM library.
    pub libnvvm: PathBuf,
    /// The PTX assembler.
    pub ptxas: PathBuf,
    /// ptxas's version, such as `V13.5.37`.
    pub ptxas_version: String,
}

impl Toolchain {
    /// Finds all tools. `workspace` is the folder whose [`NVIDIA_FOLDER`] is looked at.
    ///
    /// # Errors
    /// [`CudaBuilderError::Toolchain`] with every tool that is missing or too old: where it was looked for, and the
    /// command that gets it.
    pub fn find(workspace: Option<&Path>) -> Result<Self, CudaBuilderError> {
        let rustc = rust::find();
        let nvidia = nvidia::find(workspace);
        match (rustc, nvidia) {
            (Ok(rustc), Ok(nvidia)) => {
                nvidia::check_llvm(&nvidia, &rustc)?;
                Ok(Self { rustc, libnvvm: nvidia.libnvvm, ptxas: nvidia.ptxas, ptxas_version: nvidia.ptxas_version })
            }
            (rustc, nvidia) => {
                Err(CudaBuilderError::Toolchain([rustc.err(), nvidia.err()].into_iter().flatten().collect()))
            }
        }
    }
}
