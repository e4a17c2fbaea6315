//! The hash of everything that decides the artifacts' bytes, but for the tools.

use crate::manifest::hex_sha256;
use crate::{ArtifactsError, Folders};
use sha2::{Digest, Sha256};
use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

/// Packages whose sources and manifest count: their tests do not.
const PACKAGES: &[&str] =
    &["kernels-gpu", "spec", "rust-cuda/cuda_std", "rust-cuda/cuda_std_macros", "rust-cuda/cuda_builder"];

/// The plan: flags, features.
const PLAN: &str = "artifacts/src/build.rs";

/// Files and folders that count, from the workspace's root.
pub(crate) fn watched() -> impl Iterator<Item = String> {
    let packages = PACKAGES.iter().flat_map(|package| [format!("{package}/src"), format!("{package}/Cargo.toml")]);
    packages.chain([PLAN.to_string()])
}

/// Packages whose lock entries count, with all they depend on: what comes from elsewhere into a device build. The other
/// packages above take nothing from elsewhere but for the host's emulator and tests.
const LOCKED: &[&str] = &["cuda_std_macros", "cuda_builder"];

/// Hash of the sources, the same on every platform: paths with `/`, line ends LF.
pub(crate) fn hash(folders: &Folders) -> Result<String, ArtifactsError> {
    let mut files = Vec::new();
    for path in watched() {
        collect(folders.root().join(path), &mut files)?;
    }
    files.sort();
    let mut hasher = Sha256::new();
    let mut entry = |name: &str, bytes: &[u8]| {
        hasher.update(format!("{name}\0{}\0", bytes.len()));
        hasher.update(bytes);
    };
    for path in files {
        let bytes = fs::read(&path).map_err(|e| ArtifactsError::io(&path, e))?;
        let name = path.strip_prefix(folders.root()).unwrap_or(&path);
        let name: Vec<_> = name.components().map(|part| part.as_os_str().to_string_lossy()).collect();
        entry(&name.join("/"), &with_lf(bytes));
    }
    let lock = folders.root().join("Cargo.lock");
    let text = fs::read_to_string(&lock).map_err(|e| ArtifactsError::io(&lock, e))?;
    for package in locked(&text.replace("\r\n", "\n")) {
        entry("Cargo.lock", package.as_bytes());
    }
    Ok(hex_sha256(hasher))
}

fn with_lf(mut bytes: Vec<u8>) -> Vec<u8> {
    bytes.retain(|&byte| byte != b'\r');
    bytes
}

/// The Rust sources and manifests at or below `path`.
fn collect(path: PathBuf, files: &mut Vec<PathBuf>) -> Result<(), ArtifactsError> {
    if path.is_dir() {
        for entry in fs::read_dir(&path).map_err(|e| ArtifactsError::io(&path, e))? {
            collect(entry.map_err(|e| ArtifactsError::io(&path, e))?.path(), files)?;
        }
    } else if path.extension().is_some_and(|extension| extension == "rs" || extension == "toml") {
        files.push(path);
    }
    Ok(())
}

/// Entries of [`LOCKED`] and of what they depend on, in the lock file's order.
fn locked(lock: &str) -> Vec<&str> {
    let packages: Vec<(&str, &str)> = lock
        .split("[[package]]\n")
        .skip(1)
        .filter_map(|entry| Some((entry.strip_prefix("name = \"")?.split_once('"')?.0, entry)))
        .collect();
    let mut wanted: BTreeSet<&str> = LOCKED.iter().copied().collect();
    loop {
        let before = wanted.len();
        for (name, entry) in &packages {
            if wanted.contains(name) {
                wanted.extend(dependencies(entry));
            }
        }
        if wanted.len() == before {
            break;
        }
    }
    packages.into_iter().filter(|(name, _)| wanted.contains(name)).map(|(_, entry)| entry.trim_end()).collect()
}

/// Names in an entry's `dependencies`; a version behind one is left out, so that all versions of the name count.
fn dependencies(entry: &str) -> impl Iterator<Item = &str> {
    let list =
        entry.split_once("dependencies = [").and_then(|(_, rest)| rest.split_once(']')).map_or("", |(list, _)| list);
    list.split('"').skip(1).step_by(2).filter_map(|dependency| dependency.split(' ').next())
}

#[cfg(test)]
mod tests {
    use super::locked;

    #[test]
    fn lock_entries_follow_dependencies() {
        let lock = "version = 4\n\n[[package]]\nname = \"a\"\nversion = \"1\"\n\n\
                    [[package]]\nname = \"cuda_builder\"\nversion = \"1\"\ndependencies = [\n \"b 2\",\n]\n\n\
                    [[package]]\nname = \"b\"\nversion = \"2\"\ndependencies = [\n \"c\",\n]\n\n\
                    [[package]]\nname = \"c\"\nversion = \"3\"\n";
        let names: Vec<_> = locked(lock).into_iter().map(|entry| entry.lines().next().unwrap()).collect();
        assert_eq!(names, ["name = \"cuda_builder\"", "name = \"b\"", "name = \"c\""]);
    }
}
