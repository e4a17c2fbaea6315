//! `core` for the GPU: built once per compiler, so that a kernel edit costs a second.

use crate::compile::{MIR_FLAGS, clean_cargo};
use crate::toolchain::{Core, Rustc};
use crate::{CudaBuilderError, files};
use std::fs;
use std::path::{Path, PathBuf};

const TARGET: &str = "nvptx64-nvidia-cuda";

/// The sysroot to compile with; `None`: the compiler's own.
pub(crate) fn prepare(rustc: &Rustc, target_dir: &Path) -> Result<Option<PathBuf>, CudaBuilderError> {
    if rustc.core == Core::Built {
        return Ok(None);
    }
    let sysroot = target_dir.join(format!("sysroot-{}-{}", rustc.release, rustc.commit));
    if sysroot.is_dir() {
        return Ok(Some(sysroot));
    }

    // The smallest crate there is: cargo builds `core` and `alloc` as its dependencies.
    let stub = target_dir.join("sysroot-stub");
    files::write(
        &stub.join("Cargo.toml"),
        b"[package]\nname = \"sysroot_stub\"\nversion = \"0.0.0\"\nedition = \"2024\"\n\n[workspace]\n",
    )?;
    files::write(&stub.join("src/lib.rs"), b"#![no_std]\n")?;
    let built = stub.join("target");
    let mut cargo = clean_cargo(rustc);
    cargo.current_dir(&stub);
    cargo.args(["build", "--release", "-Zbuild-std=core,alloc", "--target", TARGET, "--target-dir"]).arg(&built);
    cargo.env("CARGO_TARGET_NVPTX64_NVIDIA_CUDA_RUSTFLAGS", MIR_FLAGS);
    crate::compile::run(cargo, "cargo (building `core` for the GPU)")?;

    // Beside, then renamed: a sysroot that exists is whole.
    let beside = target_dir.join(format!("sysroot.{}.tmp", files::unique()));
    let libraries = beside.join("lib/rustlib").join(TARGET).join("lib");
    let io = |path: &Path, error| CudaBuilderError::io(path, error);
    fs::create_dir_all(&libraries).map_err(|e| io(&libraries, e))?;
    let deps = built.join(TARGET).join("release/deps");
    for entry in fs::read_dir(&deps).map_err(|e| io(&deps, e))? {
        let path = entry.map_err(|e| io(&deps, e))?.path();
        let Some(name) = path.file_name().filter(|_| path.extension().is_some_and(|e| e == "rlib")) else { continue };
        if !name.to_string_lossy().starts_with("libsysroot_stub") {
            fs::copy(&path, libraries.join(name)).map_err(|e| io(&path, e))?;
        }
    }
    match fs::rename(&beside, &sysroot) {
        // Another build was faster; its sysroot is the same.
        Err(_) if sysroot.is_dir() => fs::remove_dir_all(&beside).map_err(|e| io(&beside, e))?,
        other => other.map_err(|e| io(&sysroot, e))?,
    }
    Ok(Some(sysroot))
}
