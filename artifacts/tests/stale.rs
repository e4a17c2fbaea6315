//! Sources that changed since the artifacts were built, on a machine without the device toolchain.

use cuda_builder::{CudaBuilderError, Missing};
use lzma_rust2::LzipReader;
use ptq_artifacts::{ArtifactsError, Folders, embed};
use std::fs::{self, File};
use std::io::Read as _;
use std::path::{Path, PathBuf};

/// A copy of what the artifacts depend on, and of the artifacts.
fn workspace() -> tempfile::TempDir {
    let copy = tempfile::tempdir().unwrap();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    for folder in ["kernels-gpu", "spec", "rust-cuda", "artifacts"] {
        copy_folder(&root.join(folder), &copy.path().join(folder));
    }
    fs::copy(root.join("Cargo.lock"), copy.path().join("Cargo.lock")).unwrap();
    copy
}

fn copy_folder(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let target = to.join(path.file_name().unwrap());
        if path.is_dir() { copy_folder(&path, &target) } else { fs::copy(&path, target).map(drop).unwrap() }
    }
}

fn kernel_source(workspace: &tempfile::TempDir) -> PathBuf {
    workspace.path().join("kernels-gpu/src/math.rs")
}

#[test]
fn unchanged_sources_embed_without_a_toolchain() {
    let workspace = workspace();
    // Line ends are no change.
    let source = fs::read_to_string(kernel_source(&workspace)).unwrap();
    fs::write(kernel_source(&workspace), source.replace('\n', "\r\n")).unwrap();
    let out = tempfile::tempdir().unwrap();
    embed(&Folders::new(workspace.path()), out.path(), || panic!("the toolchain was looked for")).unwrap();
    let table = fs::read_to_string(out.path().join("artifacts.rs")).unwrap();
    assert_eq!(table.matches("include_bytes!").count(), 2 * ptq_artifacts::build::plan().count());
}

/// What `cargo vendor` leaves of the library's package: a folder without the workspace's other folders.
#[test]
fn a_vendored_package_embeds_without_sources() {
    let (package, out) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    embed(&Folders::new(package.path()), out.path(), || panic!("the toolchain was looked for")).unwrap();
    let table = fs::read_to_string(out.path().join("artifacts.rs")).unwrap();
    for name in table.split('"').filter(|name| name.ends_with(".lz")) {
        let mut image = Vec::new();
        LzipReader::new(File::open(out.path().join(name)).unwrap()).read_to_end(&mut image).unwrap();
        let original = Path::new(env!("CARGO_MANIFEST_DIR")).join(name.strip_suffix(".lz").unwrap());
        assert!(image == fs::read(original).unwrap(), "{name} is another image");
        assert!(table.contains(&format!("{name:?}), len: {} }}", image.len())), "{name} has another size in the table");
    }
    assert_eq!(table.matches("include_bytes!").count(), 2 * ptq_artifacts::build::plan().count());
}

#[test]
fn changed_sources_without_a_toolchain_are_refused() {
    let workspace = workspace();
    let source = fs::read_to_string(kernel_source(&workspace)).unwrap();
    fs::write(kernel_source(&workspace), source + "// changed\n").unwrap();
    let out = tempfile::tempdir().unwrap();
    let missing = Missing { tool: "ptxas", looked: vec!["nowhere".into()], remedy: "cargo xtask setup" };
    let error = embed(&Folders::new(workspace.path()), out.path(), || Err(CudaBuilderError::Toolchain(vec![missing])))
        .unwrap_err();
    assert!(matches!(error, ArtifactsError::Stale(_)));
    let text = error.to_string();
    for part in ["kernel sources differ", "ptxas", "nowhere", "cargo xtask setup"] {
        assert!(text.contains(part), "{part} is not in: {text}");
    }
    assert!(!out.path().join("artifacts.rs").exists(), "old code was embedded");
}
