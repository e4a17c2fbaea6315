//! The Rust compiler.

use super::RUSTC_VARIABLE;
use crate::Missing;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

/// Lowest version whose device code was tried.
const MIN_MINOR: u32 = 95;

const REMEDY: &str = "`apt-get install rustc-web cargo-web rust-web-src` (Debian), \
                      or `rustup component add rust-src`, or set PTQ_RUSTC to such a rustc";

/// A Rust compiler that can build for the GPU.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rustc {
    /// Absolute path of rustc.
    pub rustc: PathBuf,
    /// Absolute path of the cargo beside it.
    pub cargo: PathBuf,
    /// Release, such as `1.96.0`.
    pub release: String,
    /// Commit, which names the compiler exactly.
    pub commit: String,
    /// Major version of its LLVM.
    pub llvm: u32,
    /// Where `core` for the GPU comes from.
    pub core: Core,
}

/// Where `core` for the GPU comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Core {
    /// Its source, beside the compiler.
    Source,
    /// A build of it for `nvptx64-nvidia-cuda`, beside the compiler.
    Built,
}

/// The best compiler of those installed: with a built `core` before one with its source, a release before a nightly, newer
/// before older. The environment's choice comes before all.
pub(super) fn find() -> Result<Rustc, Missing> {
    let mut looked = Vec::new();
    if let Some(path) = env::var_os(RUSTC_VARIABLE) {
        let path = PathBuf::from(path);
        return inspect(&path).map_err(|fault| {
            looked.push(format!("{RUSTC_VARIABLE}={}: {fault}", path.display()));
            missing(looked)
        });
    }
    let mut found = Vec::new();
    for path in candidates() {
        match inspect(&path) {
            Ok(rustc) => found.push(rustc),
            Err(fault) => looked.push(format!("{}: {fault}", path.display())),
        }
    }
    let rank = |rustc: &Rustc| (rustc.core, !rustc.release.contains('-'), version(&rustc.release));
    found.into_iter().max_by(|a, b| rank(a).cmp(&rank(b))).ok_or_else(|| missing(looked))
}

fn missing(looked: Vec<String>) -> Missing {
    Missing {
        tool: "a rustc with `core` for nvptx64-nvidia-cuda, or with the library's source",
        looked,
        remedy: REMEDY,
    }
}

/// rustc of every toolchain that rustup installed, and the system's.
fn candidates() -> Vec<PathBuf> {
    let home = env::var_os("HOME").map(PathBuf::from).unwrap_or_default();
    let rustup = env::var_os("RUSTUP_HOME").map_or_else(|| home.join(".rustup"), PathBuf::from);
    let mut toolchains: Vec<PathBuf> = fs::read_dir(rustup.join("toolchains"))
        .map(|entries| entries.flatten().map(|entry| entry.path()).collect())
        .unwrap_or_default();
    toolchains.sort();
    toolchains.extend([PathBuf::from("/usr/local"), PathBuf::from("/usr")]);
    toolchains.into_iter().map(|folder| folder.join("bin/rustc")).collect()
}

/// What the compiler is, or why it does not serve.
fn inspect(rustc: &Path) -> Result<Rustc, String> {
    let real = rustc.canonicalize().map_err(|_| "no such file".to_string())?;
    if real.file_name().is_some_and(|name| name == "rustup") {
        return Err("rustup's proxy, which is never run".into());
    }
    // The path as given, not its canonical form: Debian's links lead to files that find no sysroot from where they lie.
    let bin = rustc.parent().ok_or("not in a folder")?;
    let rustlib = bin.parent().ok_or("not in a toolchain")?.join("lib/rustlib");
    let core = if has_core(&rustlib.join("nvptx64-nvidia-cuda/lib")) {
        Core::Built
    } else if rustlib.join("src/rust/library/core/src/lib.rs").is_file() {
        Core::Source
    } else {
        return Err("neither `core` for nvptx64-nvidia-cuda nor the library's source".into());
    };
    let cargo = bin.join("cargo");
    if !cargo.is_file() {
        return Err("no cargo beside it".into());
    }

    let output = Command::new(rustc).arg("-vV").output().map_err(|e| e.to_string())?;
    let text = String::from_utf8_lossy(&output.stdout);
    let field = |name: &str| text.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
    let release = field("release:").ok_or("no release in `rustc -vV`")?.to_string();
    let commit = field("commit-hash:").unwrap_or("unknown").to_string();
    let llvm = field("LLVM version:").and_then(|v| v.split('.').next()?.parse().ok()).unwrap_or(0);
    if version(&release) < (1, MIN_MINOR, 0) {
        return Err(format!("release {release}, expected 1.{MIN_MINOR} or newer"));
    }
    let rustc = std::path::absolute(rustc).map_err(|e| e.to_string())?;
    let cargo = std::path::absolute(cargo).map_err(|e| e.to_string())?;
    Ok(Rustc { rustc, cargo, release, commit, llvm, core })
}

fn has_core(folder: &Path) -> bool {
    fs::read_dir(folder).is_ok_and(|entries| {
        entries.flatten().any(|entry| {
            let name = entry.file_name();
            let name = name.to_string_lossy();
            name.starts_with("libcore-") && name.ends_with(".rlib")
        })
    })
}

/// Numbers of a release such as `1.96.0` or `1.98.0-nightly`.
fn version(release: &str) -> (u32, u32, u32) {
    let mut numbers = release.split(['.', '-']).map(|part| part.parse().unwrap_or(0));
    let mut next = || numbers.next().unwrap_or(0);
    (next(), next(), next())
}

#[cfg(test)]
mod tests {
    use super::version;

    #[test]
    fn releases_order_by_number() {
        assert_eq!(version("1.96.0"), (1, 96, 0));
        assert!(version("1.100.0-nightly") > version("1.96.1"));
    }
}
