//! Scripts that tests write and run.

use std::fs;
use std::path::Path;
use std::process::Command;

/// Writes an executable script.
///
/// By another process: a program that a test starts meanwhile would for a moment hold this process's file open for writing,
/// and nobody runs a file that is ("text file busy").
pub fn write(path: &Path, script: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    let draft = tempfile::NamedTempFile::new().unwrap();
    fs::write(draft.path(), script).unwrap();
    let status = Command::new("install").arg("--mode=755").arg(draft.path()).arg(path).status().unwrap();
    assert!(status.success(), "install: {status}");
}
