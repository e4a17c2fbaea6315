//! What the environment says.

use std::env;
use std::ffi::OsString;
use std::path::PathBuf;

/// Chooses the backend.
const BACKEND_VARIABLE: &str = "PTQ_BACKEND";
/// Forces a target.
const TARGET_VARIABLE: &str = "PTQ_TARGET";
/// Takes artifacts from a folder.
const ARTIFACTS_VARIABLE: &str = "PTQ_ARTIFACTS";

/// The variables as they are; empty is unset.
#[derive(Debug, Default)]
pub(crate) struct Environment {
    pub backend: Option<String>,
    pub target: Option<String>,
    pub artifacts: Option<PathBuf>,
}

impl Environment {
    pub fn read() -> Self {
        let variable = |name| env::var_os(name).filter(|value: &OsString| !value.is_empty());
        let text = |value: OsString| value.to_string_lossy().into_owned();
        Self {
            backend: variable(BACKEND_VARIABLE).map(text),
            target: variable(TARGET_VARIABLE).map(text),
            artifacts: variable(ARTIFACTS_VARIABLE).map(PathBuf::from),
        }
    }
}
