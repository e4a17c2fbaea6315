//! libNVVM and ptxas.

use super::{NVIDIA_FOLDER, NVIDIA_VARIABLE, Rustc};
use crate::{CudaBuilderError, Missing, nvvm};
use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Lowest ptxas that knows every target (`sm_100f` came with it).
const MIN_PTXAS: (u32, u32) = (12, 9);

const REMEDY: &str = "`cargo xtask setup`, or set PTQ_TOOLCHAIN to a folder with lib/libnvvm.so.4 and bin/ptxas, \
                      or install CUDA 13.5 or newer";

/// The NVIDIA half of a toolchain.
pub(super) struct Nvidia {
    pub(super) libnvvm: PathBuf,
    pub(super) ptxas: PathBuf,
    pub(super) ptxas_version: String,
}

/// The first folder with both tools, of those that may have them.
pub(super) fn find(workspace: Option<&Path>) -> Result<Nvidia, Missing> {
    let mut looked = Vec::new();
    for (origin, folder) in folders(workspace) {
        match inspect(&folder) {
            Ok(nvidia) => return Ok(nvidia),
            Err(fault) => looked.push(format!("{origin} {}: {fault}", folder.display())),
        }
    }
    Err(missing(looked))
}

/// Refuses a libNVVM that is older than the compiler's IR.
pub(super) fn check_llvm(nvidia: &Nvidia, rustc: &Rustc) -> Result<(), CudaBuilderError> {
    let llvm = nvvm::llvm_version(&nvidia.libnvvm)?;
    if llvm >= rustc.llvm {
        return Ok(());
    }
    let found = format!(
        "{}: reads IR of LLVM {llvm}, expected at least {} as {} writes it",
        nvidia.libnvvm.display(),
        rustc.llvm,
        rustc.rustc.display()
    );
    Err(CudaBuilderError::Toolchain(vec![missing(vec![found])]))
}

fn missing(looked: Vec<String>) -> Missing {
    Missing { tool: "libNVVM and ptxas", looked, remedy: REMEDY }
}

/// The environment's choice alone, else every place that may have the tools.
fn folders(workspace: Option<&Path>) -> Vec<(&'static str, PathBuf)> {
    let variable = |name| env::var_os(name).filter(|value| !value.is_empty()).map(|value| (name, PathBuf::from(value)));
    if let Some(chosen) = variable(NVIDIA_VARIABLE) {
        return vec![chosen];
    }
    let mut folders = Vec::new();
    folders.extend(workspace.map(|root| ("the workspace's", root.join(NVIDIA_FOLDER))));
    folders.extend(variable("CUDA_HOME"));
    folders.extend(variable("CUDA_PATH"));
    folders.push(("the usual", PathBuf::from("/usr/local/cuda")));
    folders
}

/// The tools of one folder, laid out as `xtask setup` or as a CUDA install does, or why it does not serve.
fn inspect(folder: &Path) -> Result<Nvidia, String> {
    if !folder.is_dir() {
        return Err("no such folder".into());
    }
    let libnvvm = ["lib/libnvvm.so.4", "nvvm/lib64/libnvvm.so.4", "nvvm/lib64/libnvvm.so"]
        .iter()
        .map(|name| folder.join(name))
        .find(|path| path.is_file())
        .ok_or("no lib/libnvvm.so.4 or nvvm/lib64/libnvvm.so")?;
    let ptxas = folder.join("bin/ptxas");
    if !ptxas.is_file() {
        return Err("no bin/ptxas".into());
    }
    let output = Command::new(&ptxas).arg("--version").output().map_err(|e| format!("bin/ptxas: {e}"))?;
    let text = String::from_utf8_lossy(&output.stdout);
    let ptxas_version = parse_version(&text).ok_or("bin/ptxas --version names no version")?;
    if numbers(&ptxas_version) < MIN_PTXAS {
        let (major, minor) = MIN_PTXAS;
        return Err(format!("ptxas {ptxas_version}, expected {major}.{minor} or newer"));
    }
    Ok(Nvidia { libnvvm, ptxas, ptxas_version })
}

/// `V13.5.37` of `Cuda compilation tools, release 13.5, V13.5.37`, as NVIDIA's tools and their PTX say it.
pub fn parse_version(text: &str) -> Option<String> {
    let version = text.split("release ").nth(1)?.split(", ").nth(1)?;
    Some(version.split_whitespace().next()?.to_string())
}

fn numbers(version: &str) -> (u32, u32) {
    let mut parts = version.trim_start_matches('V').split('.').map(|part| part.parse().unwrap_or(0));
    (parts.next().unwrap_or(0), parts.next().unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::{numbers, parse_version};

    #[test]
    fn version_line() {
        let text = "Copyright\nCuda compilation tools, release 13.5, V13.5.37\nBuild x";
        assert_eq!(parse_version(text).as_deref(), Some("V13.5.37"));
        assert_eq!(numbers("V13.5.37"), (13, 5));
    }
}
