//! The shared library and the Python package over it, with the package's tests.

use super::{Error, executable, run_tool};
use crate::staging;
use crate::workspace;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const LIBRARY: &str = "libptq_fp8.so";

/// Runs the tests; compressed as every test is.
const LAUNCHER: &str = include_str!("python.sh");
const LAUNCHER_NAME: &str = "tests/ptq_fp8-python";

/// Folders whose Python files go into the bundle under the same name.
const SOURCES: [&str; 2] = ["python/ptq_fp8", "python/tests"];

/// Files that the tests read, under `data/`.
const DATA: [&str; 3] = ["capi/include/ptq_fp8.h", "python/README.md", "tests/golden/sglang_h200.safetensors"];

/// Adds `lib/`, `python/`, `data/` and the test to the bundle at `root`.
pub fn add(root: &Path) -> Result<(), Error> {
    let library = root.join("lib").join(LIBRARY);
    copy(&build()?, &library)?;
    run_tool("strip", "binutils", &library)?;
    run_tool("gzip", "gzip", &library)?;
    add_sources(root)
}

/// All but the library.
pub fn add_sources(root: &Path) -> Result<(), Error> {
    for folder in SOURCES {
        let from = workspace::root().join(folder);
        for entry in fs::read_dir(&from).map_err(staging::Error::io("list", &from))? {
            let entry = entry.map_err(staging::Error::io("list", &from))?.path();
            if let (Some(name), Some("py")) = (entry.file_name(), entry.extension().and_then(|e| e.to_str())) {
                copy(&entry, &root.join(folder).join(name))?;
            }
        }
    }
    for file in DATA {
        copy(&workspace::root().join(file), &root.join("data").join(file))?;
    }
    let launcher = root.join(LAUNCHER_NAME);
    create_parent(&launcher)?;
    fs::write(&launcher, LAUNCHER).map_err(staging::Error::io("write", &launcher))?;
    run_tool("gzip", "gzip", &launcher)
}

fn copy(from: &Path, to: &Path) -> Result<(), Error> {
    create_parent(to)?;
    fs::copy(from, to).map_err(staging::Error::io("copy", from))?;
    Ok(())
}

fn create_parent(path: &Path) -> Result<(), Error> {
    let parent = path.parent().unwrap_or(path);
    Ok(fs::create_dir_all(parent).map_err(staging::Error::io("create", parent))?)
}

/// Builds the library and returns where cargo put it.
fn build() -> Result<PathBuf, Error> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(&cargo)
        .args(["build", "--release", "--package", "ptq-capi", "--message-format=json-render-diagnostics"])
        .current_dir(workspace::root())
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()
        .map_err(staging::Error::io("start", Path::new(&cargo)))?;
    if !output.status.success() {
        return Err(Error::Cargo { status: output.status.to_string() });
    }
    executable::file(&String::from_utf8_lossy(&output.stdout), LIBRARY)?
        .ok_or(Error::Missing { what: "shared library `libptq_fp8.so`" })
}
