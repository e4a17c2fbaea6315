//! The barrier that rustc must not copy.
//!
//! rustc's JumpThreading copies what lies between two branches on one condition into the arms of the first
//! (rust-lang/rust#137086). A barrier copied so is reached by no whole CTA. `cuda_builder` turns the pass off; this is the
//! proof that it does, and that it must.

use cuda_builder::{Arch, CudaBuilder, Toolchain};
use per_token_quant_fp8::spec::Target;
use std::error::Error;
use std::fs;
use std::path::Path;
use std::process::Command;

/// A kernel crate with one barrier, between two branches on one condition.
const PLANTED: &str = include_str!("planted.rs");

const MANIFEST: &str = "[package]\nname = \"planted\"\nversion = \"0.0.0\"\nedition = \"2024\"\n";
const LOCK: &str = "version = 4\n\n[[package]]\nname = \"planted\"\nversion = \"0.0.0\"\n";

/// Builds the planted kernel with `cuda_builder`, and to the compiler's own representation without its flags.
pub fn check(toolchain: &Toolchain, device_target: &Path) -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let source = folder.path().join("src/lib.rs");
    fs::create_dir(folder.path().join("src"))?;
    for (path, text) in [(folder.path().join("Cargo.toml"), MANIFEST), (folder.path().join("Cargo.lock"), LOCK)] {
        fs::write(path, text)?;
    }
    fs::write(&source, PLANTED)?;

    let ptx = folder.path().join("planted.ptx");
    let target = Target::by_name("sm_90").ok_or("there is no sm_90")?;
    CudaBuilder::new(folder.path())
        .arch(Arch { name: target.name, ptx_version: target.ptx_version })
        .ftz(false)
        .fast_div(false)
        .fast_sqrt(false)
        .fma_contraction(false)
        .toolchain(toolchain)
        .target_dir(device_target)
        .copy_to(&ptx)
        .build()?;
    let barriers = fs::read_to_string(ptx)?.matches("bar.sync").count();
    if barriers != 1 {
        return Err(format!("cuda_builder makes {barriers} barriers of one; is JumpThreading off?").into());
    }

    let mir = folder.path().join("planted.mir");
    let mut rustc = Command::new(&toolchain.rustc.rustc);
    rustc.env("RUSTC_BOOTSTRAP", "1").args(["--edition", "2024", "--crate-type", "rlib", "-O", "--emit", "mir", "-o"]);
    let output = rustc.arg(&mir).arg(&source).output()?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into());
    }
    let barriers = fs::read_to_string(mir)?.matches("= barrier()").count();
    if barriers != 2 {
        let rustc = toolchain.rustc.rustc.display();
        return Err(
            format!("{rustc} makes {barriers} barriers of one, expected 2: the planted kernel proves nothing").into()
        );
    }
    Ok(())
}
