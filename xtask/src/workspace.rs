//! Where the workspace is.

use std::path::PathBuf;

/// Root of the workspace: the parent of this package, as cargo says at run time, else as it was at build time.
pub fn root() -> PathBuf {
    let package = std::env::var_os("CARGO_MANIFEST_DIR").unwrap_or_else(|| env!("CARGO_MANIFEST_DIR").into());
    let mut root = PathBuf::from(package);
    root.pop();
    root
}
