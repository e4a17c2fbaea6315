//! Builds a kernel crate to PTX, and to a cubin, with stock rustc, NVIDIA's libNVVM and `ptxas`.
//!
//! The API is the rust-cuda builder's; the way is another: no custom compiler backend. rustc emits one merged module of
//! LLVM IR for `nvptx64-nvidia-cuda`, a text pass makes NVVM IR of it, libNVVM compiles that to PTX, and `ptxas` proves
//! the PTX by assembling it for the target.
//!
//! | step | room |
//! |---|---|
//! | find the tools | [`toolchain`] |
//! | `core` for the GPU, once per rustc | `sysroot` |
//! | crate → LLVM IR | `compile` |
//! | LLVM IR → NVVM IR | `ir` |
//! | NVVM IR → PTX | `nvvm` |
//! | PTX of a newer target → the one asked for | `retarget` |
//! | PTX → cubin | `ptxas` |

mod arch;
mod compile;
mod error;
mod files;
mod ir;
mod nvvm;
mod ptxas;
mod retarget;
mod sysroot;
pub mod toolchain;

pub use arch::Arch;
pub use error::{CudaBuilderError, Missing};
pub use toolchain::Toolchain;

use std::path::{Path, PathBuf};

/// Builds one kernel crate for one target.
///
/// Every math flag decides bits, so none has a default: [`build`](Self::build) refuses a builder that leaves one open.
#[derive(Debug, Clone)]
#[must_use = "nothing is built before `build`"]
pub struct CudaBuilder {
    path_to_crate: PathBuf,
    arch: Option<Arch>,
    ftz: Option<bool>,
    fast_div: Option<bool>,
    fast_sqrt: Option<bool>,
    fma_contraction: Option<bool>,
    features: Vec<String>,
    ptx_file_copy_path: Option<PathBuf>,
    cubin_path: Option<PathBuf>,
    emit_llvm_ir: bool,
    final_module_path: Option<PathBuf>,
    target_dir: Option<PathBuf>,
    toolchain: Option<Toolchain>,
}

impl CudaBuilder {
    /// A builder for the kernel crate in that folder.
    pub fn new(path_to_crate: impl AsRef<Path>) -> Self {
        Self {
            path_to_crate: path_to_crate.as_ref().to_path_buf(),
            arch: None,
            ftz: None,
            fast_div: None,
            fast_sqrt: None,
            fma_contraction: None,
            features: Vec::new(),
            ptx_file_copy_path: None,
            cubin_path: None,
            emit_llvm_ir: false,
            final_module_path: None,
            target_dir: None,
            toolchain: None,
        }
    }

    /// The target. Device code sees its name as `cfg(ptq_arch = "…")`.
    pub fn arch(mut self, arch: Arch) -> Self {
        self.arch = Some(arch);
        self
    }

    /// Whether subnormal f32 operands and results are flushed to zero.
    pub fn ftz(mut self, ftz: bool) -> Self {
        self.ftz = Some(ftz);
        self
    }

    /// Whether f32 division and reciprocal are approximate.
    pub fn fast_div(mut self, fast_div: bool) -> Self {
        self.fast_div = Some(fast_div);
        self
    }

    /// Whether f32 square roots are approximate.
    pub fn fast_sqrt(mut self, fast_sqrt: bool) -> Self {
        self.fast_sqrt = Some(fast_sqrt);
        self
    }

    /// Whether a product and a sum may become one `fma`.
    pub fn fma_contraction(mut self, fma_contraction: bool) -> Self {
        self.fma_contraction = Some(fma_contraction);
        self
    }

    /// Cargo features of the kernel crate, instead of its defaults.
    pub fn features<S: Into<String>>(mut self, features: impl IntoIterator<Item = S>) -> Self {
        self.features = features.into_iter().map(Into::into).collect();
        self
    }

    /// Where the PTX goes; [`build`](Self::build) returns this path then.
    pub fn copy_to(mut self, path: impl AsRef<Path>) -> Self {
        self.ptx_file_copy_path = Some(path.as_ref().to_path_buf());
        self
    }

    /// Where the cubin goes. It is assembled in any case, as the proof of the PTX, and dropped without a path.
    pub fn cubin_to(mut self, path: impl AsRef<Path>) -> Self {
        self.cubin_path = Some(path.as_ref().to_path_buf());
        self
    }

    /// Whether rustc's LLVM IR is kept beside the PTX, with the extension `ll`.
    pub fn emit_llvm_ir(mut self, emit_llvm_ir: bool) -> Self {
        self.emit_llvm_ir = emit_llvm_ir;
        self
    }

    /// Where the IR that libNVVM gets is written, for debugging.
    pub fn final_module_path(mut self, path: impl AsRef<Path>) -> Self {
        self.final_module_path = Some(path.as_ref().to_path_buf());
        self
    }

    /// Folder for intermediate files and the cached `core`; default: `target/cuda-builder` beside the crate's manifest.
    pub fn target_dir(mut self, path: impl AsRef<Path>) -> Self {
        self.target_dir = Some(path.as_ref().to_path_buf());
        self
    }

    /// The tools, found once for many builds; default: [`Toolchain::find`] without a workspace folder.
    pub fn toolchain(mut self, toolchain: &Toolchain) -> Self {
        self.toolchain = Some(toolchain.clone());
        self
    }

    /// Builds, and returns the path of the PTX.
    ///
    /// # Errors
    /// [`CudaBuilderError`]: a flag left open, a tool missing or too old, or what a tool says of the code.
    pub fn build(self) -> Result<PathBuf, CudaBuilderError> {
        let flag = |name, value: Option<bool>| value.ok_or(CudaBuilderError::Unset { option: name });
        let arch = self.arch.ok_or(CudaBuilderError::Unset { option: "arch" })?;
        let math = nvvm::MathFlags {
            ftz: flag("ftz", self.ftz)?,
            fast_div: flag("fast_div", self.fast_div)?,
            fast_sqrt: flag("fast_sqrt", self.fast_sqrt)?,
            fma_contraction: flag("fma_contraction", self.fma_contraction)?,
        };
        let toolchain = match self.toolchain {
            Some(toolchain) => toolchain,
            None => Toolchain::find(None)?,
        };
        let target_dir = self.target_dir.unwrap_or_else(|| self.path_to_crate.join("target/cuda-builder"));
        let target_dir = std::path::absolute(&target_dir).map_err(|e| CudaBuilderError::io(&target_dir, e))?;

        let sysroot = sysroot::prepare(&toolchain.rustc, &target_dir)?;
        let source = compile::Source { crate_dir: &self.path_to_crate, features: &self.features, arch };
        let module = compile::to_llvm_ir(&source, &toolchain.rustc, &sysroot, &target_dir)?;
        let llvm_ir = files::read(&module)?;
        let nvvm_ir = ir::to_nvvm(&llvm_ir, arch)?;
        if let Some(path) = &self.final_module_path {
            files::write(path, nvvm_ir.as_bytes())?;
        }

        let ptx = nvvm::compile(&toolchain, &nvvm_ir, arch, math)?;
        let ptx = retarget::lower(&ptx, arch)?;
        let cubin = ptxas::assemble(&toolchain, &ptx, arch, &target_dir)?;

        let ptx_path = self.ptx_file_copy_path.unwrap_or_else(|| module.with_extension("ptx"));
        files::write(&ptx_path, ptx.as_bytes())?;
        if self.emit_llvm_ir {
            files::write(&ptx_path.with_extension("ll"), llvm_ir.as_bytes())?;
        }
        if let Some(path) = &self.cubin_path {
            files::write(path, &cubin)?;
        }
        Ok(ptx_path)
    }
}
