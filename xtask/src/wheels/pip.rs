//! `python3 -m pip download`, and what its failures mean.

use crate::staging;
use std::fs;
use std::io;
use std::path::Path;
use std::process::{Command, Stdio};

/// Why the wheels could not be downloaded.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No `python3` on the PATH.
    #[error("`python3` is not on the PATH; install Python 3 with pip (Debian: apt-get install python3-pip)")]
    NoPython,
    /// Python has no pip.
    #[error("python3 has no module `pip`; install it (Debian: apt-get install python3-pip)")]
    NoPip,
    /// A wheel has other bytes than the requirements file pins.
    #[error(
        "a downloaded wheel does not match its pinned hash, and nothing was installed; empty pip's cache \
         (python3 -m pip cache purge) and try again; if it persists, distrust the package index\n{stderr}"
    )]
    Hash {
        /// What pip said.
        stderr: String,
    },
    /// The package index could not be reached, or does not have the packages.
    #[error(
        "pip found no package index that has the wheels; check the network, the proxy and pip's index settings\n{stderr}"
    )]
    Index {
        /// What pip said.
        stderr: String,
    },
    /// Any other failure.
    #[error("pip failed ({status})\n{stderr}")]
    Other {
        /// Its exit status.
        status: String,
        /// What pip said.
        stderr: String,
    },
    /// pip could not be started, or its input not written.
    #[error(transparent)]
    Io(#[from] staging::Error),
}

/// Downloads what `requirements` pins into `into`, with every hash checked. pip's progress goes to stdout.
///
/// # Errors
/// [`Error`].
pub fn download(requirements: &str, into: &Path) -> Result<(), Error> {
    fs::create_dir_all(into).map_err(staging::Error::io("create", into))?;
    let file = into.join("requirements.txt");
    fs::write(&file, requirements).map_err(staging::Error::io("write", &file))?;
    let output = Command::new("python3")
        .args(["-m", "pip", "download", "--disable-pip-version-check", "--no-input"])
        .args(["--require-hashes", "--only-binary=:all:", "--no-deps", "--dest"])
        .arg(into)
        .arg("--requirement")
        .arg(&file)
        .stdin(Stdio::null())
        .stdout(Stdio::inherit())
        .stderr(Stdio::piped())
        .output()
        .map_err(|e| match e.kind() {
            io::ErrorKind::NotFound => Error::NoPython,
            _ => Error::Io(staging::Error::io("start", Path::new("python3"))(e)),
        })?;
    if output.status.success() {
        return Ok(());
    }
    Err(explain(output.status.to_string(), String::from_utf8_lossy(&output.stderr).trim_end().to_owned()))
}

fn explain(status: String, stderr: String) -> Error {
    if stderr.contains("No module named pip") {
        Error::NoPip
    } else if stderr.contains("DO NOT MATCH THE HASHES") {
        Error::Hash { stderr }
    } else if stderr.contains("(from versions: none)") {
        Error::Index { stderr }
    } else {
        Error::Other { status, stderr }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_are_told_apart() {
        let explain = |stderr: &str| explain("exit status: 1".into(), stderr.into());
        assert!(matches!(explain("/usr/bin/python3: No module named pip"), Error::NoPip));
        assert!(matches!(explain("ERROR: THESE PACKAGES DO NOT MATCH THE HASHES FROM ..."), Error::Hash { .. }));
        assert!(matches!(
            explain("ERROR: Could not find a version that satisfies the requirement a==1 (from versions: none)"),
            Error::Index { .. }
        ));
        assert!(matches!(explain("ERROR: out of memory"), Error::Other { .. }));
    }
}
