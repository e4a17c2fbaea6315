//! `cargo xtask bundle DIR`: what a GPU host without Rust needs to test and measure this tree.
//!
//! `DIR/{run.sh,bin,tests,benches,lib,python,data}`; `run.sh` says how it is used. Tests and benches carry their data and the GPU artifacts
//! in themselves, many times over, so they are compressed; `run.sh` unpacks one at a time.

mod executable;
mod python;

use crate::staging::{self, Staging};
use crate::workspace;
use executable::{Executable, Kind};
use std::fmt::Write as _;
use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const RUN: &str = include_str!("bundle/run.sh");
const RUN_NAME: &str = "run.sh";

/// Packages that only matter where the tree is built: their tests need the sources, cargo, or a C or device compiler.
const BUILD_PACKAGES: &[&str] = &[
    "xtask",
    "cuda_builder",
    "cuda_std",
    "cuda_std_macros",
    "ptq-artifacts",
    "ptq-capi",
    "ptq-kernels",
    "ptq-spec",
    "ptq-suite",
];

/// The workspace of programs that use the library beside other crates.
const INTEROP_MANIFEST: &str = "examples/interop/Cargo.toml";

/// Largest bundle, in bytes: it travels to borrowed machines.
const MAX_BYTES: u64 = 64 << 20;

/// Why there is no bundle.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The folder holds something else than a bundle.
    #[error("`{}` exists and is no earlier bundle (it has no {RUN_NAME}); name another folder, or empty it", dir.display())]
    Occupied {
        /// The folder.
        dir: PathBuf,
    },
    /// cargo failed; it has said why.
    #[error("cargo failed ({status}) to build the executables; its own messages are above")]
    Cargo {
        /// Its exit status.
        status: String,
    },
    /// cargo's messages could not be read.
    #[error(transparent)]
    Messages(#[from] executable::Error),
    /// cargo built no executable of a kind the bundle needs.
    #[error("cargo built no {what}; the bundle needs one")]
    Missing {
        /// What is missing.
        what: &'static str,
    },
    /// A tool that makes an executable smaller failed.
    #[error("`{tool}` failed on `{}`: {detail}; it is part of {package} (Debian: apt-get install {package})", path.display())]
    Tool {
        /// The tool.
        tool: &'static str,
        /// Where it comes from.
        package: &'static str,
        /// The file it was given.
        path: PathBuf,
        /// What went wrong.
        detail: String,
    },
    /// The bundle is too large.
    #[error("the bundle has {actual} bytes, expected at most {MAX_BYTES}; make the largest smaller:\n{sizes}")]
    Size {
        /// Its size.
        actual: u64,
        /// Every file with its size, largest first.
        sizes: String,
    },
    /// A file or folder could not be read or written.
    #[error(transparent)]
    Staging(#[from] staging::Error),
}

/// Builds in release and fills `dir`.
///
/// # Errors
/// [`Error`]; `dir` is then as it was.
pub fn run(dir: &Path) -> Result<(), Error> {
    let dir = std::path::absolute(dir).map_err(staging::Error::io("resolve", dir))?;
    check_free(&dir)?;
    let executables = build()?;
    for (kind, what) in [(Kind::Test, "test"), (Kind::Bench, "bench"), (Kind::Program, "program `quant-fp8`")] {
        if !executables.iter().any(|e| e.kind == kind) {
            return Err(Error::Missing { what });
        }
    }
    let staging = Staging::beside(&dir)?;
    for executable in &executables {
        add_executable(executable, staging.path())?;
    }
    python::add(staging.path())?;
    let run = staging.path().join(RUN_NAME);
    fs::write(&run, RUN).map_err(staging::Error::io("write", &run))?;
    fs::set_permissions(&run, fs::Permissions::from_mode(0o755))
        .map_err(staging::Error::io("set permissions of", &run))?;
    let bytes = check_size(staging.path(), MAX_BYTES)?;
    staging.publish()?;
    println!(
        "{}: {} executables, {bytes} bytes; run {RUN_NAME} in it, or {RUN_NAME} --bench",
        dir.display(),
        executables.len()
    );
    Ok(())
}

fn check_free(dir: &Path) -> Result<(), Error> {
    let occupied = || Error::Occupied { dir: dir.to_owned() };
    let mut entries = match fs::read_dir(dir) {
        Ok(entries) => entries,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(e) if e.kind() == io::ErrorKind::NotADirectory => return Err(occupied()),
        Err(e) => return Err(staging::Error::io("list", dir)(e).into()),
    };
    if entries.next().is_none() || dir.join(RUN_NAME).is_file() { Ok(()) } else { Err(occupied()) }
}

/// One cargo command builds everything of this workspace: the program comes with its integration tests. Another one builds
/// the programs of the workspace beside it, which are tests of their own.
fn build() -> Result<Vec<Executable>, Error> {
    let excluded = BUILD_PACKAGES.iter().flat_map(|package| ["--exclude", package]);
    let own = ["--workspace", "--lib", "--bins", "--tests", "--benches"].into_iter().chain(excluded);
    let mut executables = cargo_test(own)?;
    let tests = ["--workspace", "--test", "programs", "--bin", "candle"];
    let interop = cargo_test(["--locked", "--manifest-path", INTEROP_MANIFEST].into_iter().chain(tests))?;
    // The test holds the programs.
    executables.extend(interop.into_iter().filter(|executable| executable.kind == Kind::Test));
    Ok(executables)
}

/// The executables of `cargo test` with these arguments, which are not run.
fn cargo_test<'a>(arguments: impl IntoIterator<Item = &'a str>) -> Result<Vec<Executable>, Error> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(&cargo)
        .args(["test", "--no-run", "--release"])
        .args(arguments)
        .arg("--message-format=json-render-diagnostics")
        .current_dir(workspace::root())
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()
        .map_err(staging::Error::io("start", Path::new(&cargo)))?;
    if !output.status.success() {
        return Err(Error::Cargo { status: output.status.to_string() });
    }
    Ok(executable::parse(&String::from_utf8_lossy(&output.stdout))?)
}

fn add_executable(executable: &Executable, root: &Path) -> Result<(), Error> {
    let folder = root.join(executable.kind.folder());
    fs::create_dir_all(&folder).map_err(staging::Error::io("create", &folder))?;
    let to = folder.join(&executable.name);
    fs::copy(&executable.path, &to).map_err(staging::Error::io("copy", &executable.path))?;
    run_tool("strip", "binutils", &to)?;
    match executable.kind {
        Kind::Program => Ok(()),
        // It replaces the file by one with the suffix .gz.
        Kind::Test | Kind::Bench => run_tool("gzip", "gzip", &to),
    }
}

fn run_tool(tool: &'static str, package: &'static str, path: &Path) -> Result<(), Error> {
    let fail = |detail| Error::Tool { tool, package, path: path.to_owned(), detail };
    let status = Command::new(tool).arg(path).status().map_err(|e| fail(e.to_string()))?;
    if status.success() { Ok(()) } else { Err(fail(status.to_string())) }
}

/// Every file below `root`, relative to it.
fn files(root: &Path) -> Result<Vec<PathBuf>, Error> {
    let mut found = Vec::new();
    let mut folders = vec![PathBuf::new()];
    while let Some(folder) = folders.pop() {
        let path = root.join(&folder);
        for entry in fs::read_dir(&path).map_err(staging::Error::io("list", &path))? {
            let entry = entry.map_err(staging::Error::io("list", &path))?;
            let name = folder.join(entry.file_name());
            let kind = entry.file_type().map_err(staging::Error::io("look at", &path))?;
            if kind.is_dir() { folders.push(name) } else { found.push(name) }
        }
    }
    Ok(found)
}

/// Total size of the files below `root`, if at most `max`; both in bytes.
fn check_size(root: &Path, max: u64) -> Result<u64, Error> {
    let mut sizes = Vec::new();
    for file in files(root)? {
        let path = root.join(&file);
        sizes.push((fs::metadata(&path).map_err(staging::Error::io("look at", &path))?.len(), file));
    }
    let actual = sizes.iter().map(|(bytes, _)| bytes).sum();
    if actual <= max {
        return Ok(actual);
    }
    sizes.sort_by(|a, b| b.cmp(a));
    let mut table = String::new();
    for (bytes, file) in &sizes {
        // Writing to a String cannot fail.
        let _ = writeln!(table, "{bytes:>12}  {}", file.display());
    }
    Err(Error::Size { actual, sizes: table })
}

#[cfg(test)]
mod tests;
