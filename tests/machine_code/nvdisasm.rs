//! NVIDIA's disassembler.

use crate::Needed;
use cuda_builder::toolchain::{NVIDIA_FOLDER, NVIDIA_VARIABLE};
use std::error::Error;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The program, in the toolchain that the environment names, else in the workspace's. A CUDA install's is not taken: it
/// may spell instructions in another way than the snapshots do.
pub fn find() -> Needed {
    let folder = match std::env::var_os(NVIDIA_VARIABLE).filter(|value| !value.is_empty()) {
        Some(folder) => PathBuf::from(folder),
        None => Path::new(env!("CARGO_MANIFEST_DIR")).join(NVIDIA_FOLDER),
    };
    let path = folder.join("bin/nvdisasm");
    if path.is_file() { Ok(path) } else { Err(format!("no {}; run `cargo xtask setup`", path.display())) }
}

/// The code sections of a cubin, as text.
pub fn run(nvdisasm: &Path, cubin: &[u8]) -> Result<String, Box<dyn Error>> {
    let mut file = tempfile::NamedTempFile::new()?;
    file.write_all(cubin)?;
    let output = Command::new(nvdisasm).args(["--print-code", "--no-dataflow"]).arg(file.path()).output()?;
    if !output.status.success() {
        return Err(format!("nvdisasm: {}: {}", output.status, String::from_utf8_lossy(&output.stderr)).into());
    }
    Ok(String::from_utf8(output.stdout)?)
}
