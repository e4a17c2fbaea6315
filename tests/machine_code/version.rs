//! The `.version` of PTX is the lowest that will do, so that old drivers load it.

use per_token_quant_fp8::{ARTIFACTS, Artifact};
use ptq_spec::Target;
use std::error::Error;
use std::fs;
use std::path::Path;
use std::process::Command;

/// The version of PTX before another.
fn before((major, minor): (u32, u32)) -> (u32, u32) {
    match (major, minor) {
        // 6.5 and 7.8 were the last of their kind.
        (7, 0) => (6, 5),
        (8, 0) => (7, 8),
        _ => (major, minor - 1),
    }
}

/// Has ptxas refuse an artifact of `target` that claims the version before its own.
pub fn check(target: &Target, ptxas: &Path) -> Result<(), Box<dyn Error>> {
    let lower = before(target.ptx_version);
    for artifact in ARTIFACTS.as_slice().iter().filter(|artifact| artifact.target == target) {
        if refuses(ptxas, artifact, lower)? {
            return Ok(());
        }
    }
    Err(format!("ptxas takes every artifact of {target} as PTX {}.{} too", lower.0, lower.1).into())
}

/// Whether ptxas refuses PTX for its version.
fn refuses(ptxas: &Path, artifact: &Artifact, version: (u32, u32)) -> Result<bool, Box<dyn Error>> {
    let line = |(major, minor)| format!("\n.version {major}.{minor}\n");
    let original = artifact.ptx_text()?;
    let ptx = original.replacen(&line(artifact.target.ptx_version), &line(version), 1);
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("lower.ptx");
    fs::write(&path, &ptx)?;
    let output = Command::new(ptxas)
        .arg(format!("--gpu-name={}", artifact.target.name))
        .arg(&path)
        .arg("--output-file")
        .arg(folder.path().join("lower.cubin"))
        .output()?;
    let log = String::from_utf8_lossy(&output.stderr).into_owned() + &String::from_utf8_lossy(&output.stdout);
    if !output.status.success() && !log.contains(".version") {
        return Err(format!("{}: ptxas refuses for another reason: {log}", artifact.stem()).into());
    }
    Ok(ptx != original && !output.status.success())
}
