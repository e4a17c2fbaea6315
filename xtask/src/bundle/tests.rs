//! The folder and `run.sh`, with shell scripts in the executables' place.

use super::*;
use std::process::Output;

/// A bundle whose tests and benches are the given (path, script) pairs.
fn bundle(scripts: &[(&str, &str)]) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    for (path, script) in [(RUN_NAME, RUN)].iter().chain(scripts) {
        let path = dir.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, script).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }
    dir
}

fn run(dir: &Path, arguments: &[&str]) -> (i32, String) {
    let Output { status, stdout, stderr } =
        Command::new(dir.join(RUN_NAME)).args(arguments).current_dir("/").output().unwrap();
    assert!(stderr.is_empty(), "{}", String::from_utf8_lossy(&stderr));
    (status.code().unwrap(), String::from_utf8(stdout).unwrap())
}

const PASS: &str = "#!/bin/sh\necho 'test result: ok. 3 passed; 0 failed; 1 ignored; finished in 0.01s'\n";

#[test]
fn run_sh_runs_every_test_and_sums_up() {
    let dir = bundle(&[("tests/a", PASS), ("tests/b", PASS), ("benches/c", "#!/bin/sh\nexit 1\n")]);
    let (code, out) = run(dir.path(), &[]);
    assert_eq!(code, 0, "{out}");
    let summary = out.split("== summary\n").nth(1).unwrap();
    assert_eq!(summary.lines().count(), 2, "{out}");
    assert!(
        summary.lines().all(|line| line.starts_with("ok  ") && line.contains("3 passed; 0 failed; 1 ignored")),
        "{out}"
    );
}

#[test]
fn run_sh_fails_when_one_fails_and_runs_the_rest() {
    let dir = bundle(&[("tests/a", "#!/bin/sh\nexit 101\n"), ("tests/b", PASS)]);
    let (code, out) = run(dir.path(), &[]);
    assert_eq!(code, 1, "{out}");
    assert!(out.contains("FAILED (exit 101)  a  ") && out.contains("ok  b  ") && out.ends_with("1 failed\n"), "{out}");
}

#[test]
fn run_sh_fails_without_executables() {
    let dir = bundle(&[]);
    let (code, _) = {
        let output = Command::new(dir.path().join(RUN_NAME)).output().unwrap();
        (output.status.code().unwrap(), output)
    };
    assert_eq!(code, 1);
}

#[test]
fn run_sh_passes_bench_and_arguments_on() {
    let dir = bundle(&[("tests/a", "#!/bin/sh\nexit 1\n"), ("benches/c", "#!/bin/sh\necho \"got $*\"\n")]);
    let (code, out) = run(dir.path(), &["--bench", "filter"]);
    assert_eq!(code, 0, "{out}");
    assert!(out.contains("got --bench filter\n"), "{out}");
}

#[test]
fn run_sh_says_where_the_program_is_and_writes_elsewhere() {
    let script = "#!/bin/sh\necho \"$PTQ_BIN\"\ntouch here && touch \"$TMPDIR/there\" && pwd\n";
    let dir = bundle(&[("tests/a", script)]);
    let (code, out) = run(dir.path(), &[]);
    assert_eq!(code, 0, "{out}");
    let root = dir.path().canonicalize().unwrap();
    assert!(out.contains(&format!("{}/bin/quant-fp8\n", root.display())), "{out}");
    let mut found = files(dir.path()).unwrap();
    found.sort();
    assert_eq!(found, [Path::new(RUN_NAME), Path::new("tests/a")], "nothing is written into the bundle");
    let work = out.lines().rfind(|line| line.starts_with('/')).unwrap();
    assert!(!Path::new(work).exists(), "{work} is removed");
}

#[test]
fn an_earlier_bundle_an_empty_folder_or_none_is_free() {
    let dir = bundle(&[]);
    assert!(check_free(dir.path()).is_ok());
    fs::remove_file(dir.path().join(RUN_NAME)).unwrap();
    assert!(check_free(dir.path()).is_ok());
    assert!(check_free(&dir.path().join("none")).is_ok());
    let file = dir.path().join("thesis.txt");
    fs::write(&file, "").unwrap();
    assert!(matches!(check_free(dir.path()), Err(Error::Occupied { .. })));
    assert!(matches!(check_free(&file), Err(Error::Occupied { .. })));
}

#[test]
fn a_bundle_above_the_limit_is_refused_with_its_sizes() {
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir(dir.path().join("tests")).unwrap();
    fs::write(dir.path().join("tests/small"), [0; 3]).unwrap();
    fs::write(dir.path().join("tests/large"), [0; 5]).unwrap();
    assert_eq!(check_size(dir.path(), 8).unwrap(), 8);
    let Err(Error::Size { actual, sizes }) = check_size(dir.path(), 7) else { panic!("8 bytes passed as 7") };
    assert_eq!(actual, 8);
    assert!(sizes.find("5  tests/large").unwrap() < sizes.find("3  tests/small").unwrap(), "{sizes}");
}
