//! Where cargo has put the libraries.

use std::path::PathBuf;

/// A library of this package, beside the test that asks.
pub fn built(name: &str) -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let path = test.with_file_name(name);
    assert!(path.is_file(), "cargo has put no {name} beside {}", test.display());
    path
}
