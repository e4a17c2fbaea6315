//! A kernel crate to one module of LLVM IR.

use crate::toolchain::Rustc;
use crate::{Arch, CudaBuilderError};
use std::env;
use std::hash::{DefaultHasher, Hash, Hasher};
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
    let mut flags = format!("{MIR_FLAGS}\x1f--cfg\x1fptq_arch=\"{}\"", source.arch.name);
    if let Some(sysroot) = sysroot {
        flags += &format!("\x1f--sysroot\x1f{}", sysroot.display());
    }
    let module = target_dir.join("modules").join(module_name(source, rustc, &flags));

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
    // One per set of features: builds at the same time would wait for each other's lock.
    cargo.arg("--target-dir").arg(target_dir.join("cargo").join(source.features.join("-")));
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

/// A name for each thing that cargo tells apart: it does not run rustc where it finds its own files of an earlier build, and
/// knows nothing of this one, which then has to be of the same build.
fn module_name(source: &Source<'_>, rustc: &Rustc, flags: &str) -> String {
    let mut hasher = DefaultHasher::new();
    (source.crate_dir, flags, &rustc.rustc, &rustc.release, &rustc.commit).hash(&mut hasher);
    format!("{}.{}.{:016x}.ll", source.arch.name, source.features.join("-"), hasher.finish())
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::toolchain::Core;

    /// Builds with one compiler, another and the first again: the third finds the first's files, and must not read the
    /// second's module.
    #[test]
    fn modules_of_different_builds_have_different_names() {
        let arch = Arch { name: "sm_90", ptx_version: (7, 8) };
        let features = ["bf16".to_string()];
        let name = |crate_dir: &str, features: &[String], commit: &str, flags: &str| {
            let rustc = Rustc {
                rustc: "/bin/rustc".into(),
                cargo: "/bin/cargo".into(),
                release: "1.96.0".into(),
                commit: commit.into(),
                llvm: 22,
                core: Core::Source,
            };
            module_name(&Source { crate_dir: Path::new(crate_dir), features, arch }, &rustc, flags)
        };
        let one = name("kernels", &features, "a", "--cfg x");
        assert_eq!(name("kernels", &features, "a", "--cfg x"), one);
        assert!(one.starts_with("sm_90.bf16.") && one.ends_with(".ll"), "{one}");
        assert_ne!(name("kernels", &features, "b", "--cfg x"), one);
        assert_ne!(name("kernels", &[], "a", "--cfg x"), one);
        assert_ne!(name("kernels", &features, "a", "--cfg y"), one);
        assert_ne!(name("others", &features, "a", "--cfg x"), one);
    }
}
