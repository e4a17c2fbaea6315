//! What can go wrong in a device build.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// A device build that failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CudaBuilderError {
    /// An option without a default was not set.
    #[error("cuda_builder: `{option}` is not set; it decides the code, so write it out")]
    Unset {
        /// The builder's method.
        option: &'static str,
    },
    /// Tools are missing or too old.
    #[error("{}", Missing::report(.0))]
    Toolchain(Vec<Missing>),
    /// A file could not be read or written.
    #[error("cuda_builder: {}: {source}", path.display())]
    Io {
        /// The file or program.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// A tool rejected its input.
    #[error("cuda_builder: {tool} failed:\n{log}")]
    Tool {
        /// The tool.
        tool: &'static str,
        /// What it printed.
        log: String,
    },
    /// The crate's IR holds something that NVVM IR cannot.
    #[error("cuda_builder: {symbol}: {fault}")]
    Ir {
        /// The static or kernel.
        symbol: String,
        /// What is wrong, and what to do.
        fault: String,
    },
    /// The PTX holds an instruction that the target does not have.
    #[error(
        "cuda_builder: {kernel}: `{instruction}` needs sm_100 and the target is {target}; \
         libNVVM compiles for sm_100 and the PTX is lowered, so avoid what produces it"
    )]
    Instruction {
        /// The entry that holds it.
        kernel: String,
        /// The instruction.
        instruction: &'static str,
        /// The target's name.
        target: &'static str,
    },
}

/// One tool that a build needs and does not have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Missing {
    /// The tool.
    pub tool: &'static str,
    /// Where it was looked for, and what was found there.
    pub looked: Vec<String>,
    /// The commands that get it.
    pub remedy: &'static str,
}

impl CudaBuilderError {
    pub(crate) fn io(path: &Path, source: io::Error) -> Self {
        Self::Io { path: path.to_path_buf(), source }
    }
}

impl Missing {
    fn report(missing: &[Self]) -> String {
        let mut text = String::from("the device toolchain is incomplete");
        for item in missing {
            text += &format!("\n{item}");
        }
        text
    }
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "  missing: {}; looked in:", self.tool)?;
        for place in &self.looked {
            writeln!(f, "    - {place}")?;
        }
        write!(f, "  get it with: {}", self.remedy)
    }
}
