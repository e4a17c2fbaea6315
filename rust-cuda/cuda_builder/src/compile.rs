//! A kernel crate to one module of LLVM IR.

use crate::toolchain::Rustc;
use crate::{Arch, CudaBuilderError};
use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

/// JumpThreading copies a barrier or a shuffle into both arms of a divergent branch (rust-lang/rust#137086): wrong on a GPU.
pub(crate) const MIR_FLAGS: &str = "-Zmir-enable-passes=-JumpThreading";

/// What is compiled.
pub(crate) struct Source<'a> {
    pub(crate) crate_dir: &'a Path,
    pub(crate) features: &'a [String],
    pub(crate) arch: Arch,
}

/// Compiles with fat LTO and returns the module's path.
pub(crate) fn to_llvm_ir(
    source: &Source<'_>,
    rustc: &Rustc,
    sysroot: &Option<PathBuf>,
    target_dir: &Path,
) -> Result<PathBuf, CudaBuilderError> {
    let name = format!("{}.{}.ll", source.arch.name, source.features.join("-"));
    let module = target_dir.join("modules").join(name);
    let mut flags = format!("{MIR_FLAGS}\x1f--cfg\x1fptq_arch=\"{}\"", source.arch.name);
    if let Some(sysroot) = sysroot {
        flags += &format!("\x1f--sysroot\x1f{}", sysroot.display());
    }

    let mut cargo = clean_cargo(rustc);
    // `--crate-type` must come from the command line: with it in the manifest, cargo turns LTO off without a word.
    cargo.args([
        "rustc",
        "--lib",
        "--release",
        "--locked",
        "--crate-type",
        "staticlib",
        "--target",
        "nvptx64-nvidia-cuda",
    ]);
    cargo.arg("--manifest-path").arg(source.crate_dir.join("Cargo.toml"));
    cargo.arg("--target-dir").arg(target_dir.join("cargo"));
    if !source.features.is_empty() {
        cargo.args(["--no-default-features", "--features", &source.features.join(",")]);
    }
    // An absolute path of its own: cargo's file names carry a hash that differs between machines.
    cargo.arg("--").arg(format!("--emit=llvm-ir={}", module.display()));
    cargo.env("CARGO_ENCODED_RUSTFLAGS", flags);
    std::fs::create_dir_all(target_dir.join("modules")).map_err(|e| CudaBuilderError::io(&module, e))?;
    run(cargo, "cargo (building the kernels)")?;
    Ok(module)
}

/// The compiler's cargo in an environment that a surrounding cargo, clippy or wrapper has not touched.
pub(crate) fn clean_cargo(rustc: &Rustc) -> Command {
    let mut cargo = Command::new(&rustc.cargo);
    for (name, _) in env::vars_os() {
        let text = name.to_string_lossy();
        let keeps_registry =
            ["CARGO_HOME", "CARGO_HTTP_", "CARGO_NET_", "CARGO_REGISTR"].iter().any(|p| text.starts_with(p));
        let is_build = text.starts_with("CARGO_") && !keeps_registry;
        if is_build || text.starts_with("RUSTC") || text.ends_with("RUSTFLAGS") || text == "RUSTUP_TOOLCHAIN" {
            cargo.env_remove(&name);
        }
    }
    cargo.env("RUSTC", &rustc.rustc);
    // Stock stable rustc, with the unstable features that the GPU target needs.
    cargo.env("RUSTC_BOOTSTRAP", "1");
    for (option, value) in [
        ("OPT_LEVEL", "3"),
        ("LTO", "fat"),
        ("CODEGEN_UNITS", "1"),
        ("PANIC", "abort"),
        ("DEBUG", "0"),
        ("DEBUG_ASSERTIONS", "false"),
        ("OVERFLOW_CHECKS", "false"),
        ("INCREMENTAL", "false"),
    ] {
        cargo.env(format!("CARGO_PROFILE_RELEASE_{option}"), value);
    }
    cargo
}

/// Runs a tool; its output is the error where it fails.
pub(crate) fn run(mut command: Command, tool: &'static str) -> Result<(), CudaBuilderError> {
    let output = command.output().map_err(|e| CudaBuilderError::io(Path::new(command.get_program()), e))?;
    if output.status.success() {
        return Ok(());
    }
    let log = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    Err(CudaBuilderError::Tool { tool, log })
}
