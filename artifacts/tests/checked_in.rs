//! The checked-in artifacts are of the sources present, and undamaged.

use ptq_artifacts::{ArtifactsError, Folders, Manifest};
use std::fs;
use std::path::Path;

fn folders() -> Folders {
    Folders::new(Path::new(env!("CARGO_MANIFEST_DIR")).join(".."))
}

#[test]
fn artifacts_match_the_sources() {
    let manifest = Manifest::read(&folders()).unwrap();
    manifest.check_sources(&folders()).unwrap_or_else(|error| panic!("{error}"));
    manifest.check_files(&folders().artifacts()).unwrap_or_else(|error| panic!("{error}"));
}

#[test]
fn manifest_lists_every_artifact_in_the_folder() {
    let manifest = Manifest::read(&folders()).unwrap();
    let mut files: Vec<String> = fs::read_dir(folders().artifacts())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.ends_with(".ptx") || name.ends_with(".cubin"))
        .collect();
    files.sort();
    assert_eq!(files, manifest.files.keys().cloned().collect::<Vec<_>>());
}

#[test]
fn damage_and_staleness_are_told() {
    let mut manifest = Manifest::read(&folders()).unwrap();
    let (name, hash) = manifest.files.iter_mut().next().unwrap();
    let name = name.clone();
    hash.replace_range(..4, "0000");
    let error = manifest.check_files(&folders().artifacts()).unwrap_err();
    assert!(matches!(error, ArtifactsError::Damaged { file, .. } if file == name));

    manifest.sources.replace_range(..4, "0000");
    let error = manifest.check_sources(&folders()).unwrap_err();
    assert!(matches!(error, ArtifactsError::StaleManifest { actual, .. } if actual == manifest.sources));
}
