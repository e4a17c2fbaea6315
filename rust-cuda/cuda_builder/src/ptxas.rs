//! PTX to a cubin, which proves the PTX.

use crate::{Arch, CudaBuilderError, Toolchain, compile, files};
use std::fs;
use std::path::Path;
use std::process::Command;

/// Assembles in a folder of its own, so that the result does not depend on paths.
pub(crate) fn assemble(
    toolchain: &Toolchain,
    ptx: &str,
    arch: Arch,
    target_dir: &Path,
) -> Result<Vec<u8>, CudaBuilderError> {
    let folder = target_dir.join(format!("ptxas.{}", files::unique()));
    let result = assemble_in(&folder, toolchain, ptx, arch);
    let removed = fs::remove_dir_all(&folder).map_err(|e| CudaBuilderError::io(&folder, e));
    let cubin = result?;
    removed?;
    Ok(cubin)
}

fn assemble_in(folder: &Path, toolchain: &Toolchain, ptx: &str, arch: Arch) -> Result<Vec<u8>, CudaBuilderError> {
    files::write(&folder.join("kernels.ptx"), ptx.as_bytes())?;
    let mut ptxas = Command::new(&toolchain.ptxas);
    ptxas.current_dir(folder).arg(format!("-arch={}", arch.name)).args(["kernels.ptx", "-o", "kernels.cubin"]);
    compile::run(ptxas, "ptxas")?;
    let cubin = folder.join("kernels.cubin");
    fs::read(&cubin).map_err(|e| CudaBuilderError::io(&cubin, e))
}
