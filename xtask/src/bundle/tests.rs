//! The folder and `run.sh`, with shell scripts in the executables' place.

use super::*;
use crate::script;
use std::process::Output;

/// A bundle with the given (path, script) pairs as its compressed executables.
fn bundle(scripts: &[(&str, &str)]) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    script::write(&dir.path().join(RUN_NAME), RUN);
    for (path, text) in scripts {
        let path = dir.path().join(path);
        script::write(&path, text);
        run_tool("gzip", "gzip", &path).unwrap();
    }
    dir
}

/// Exit status, stdout and stderr of the bundle's `run.sh`, started from another folder.
fn run(dir: &Path, arguments: &[&str]) -> (i32, String, String) {
    let Output { status, stdout, stderr } =
        Command::new(dir.join(RUN_NAME)).args(arguments).current_dir("/").output().unwrap();
    (status.code().unwrap(), String::from_utf8(stdout).unwrap(), String::from_utf8(stderr).unwrap())
}

const PASS: &str = "#!/bin/sh\necho 'test result: ok. 3 passed; 0 failed; 1 ignored; finished in 0.01s'\n";
const FAIL: &str = "#!/bin/sh\nexit 101\n";
const ARGUMENTS: &str = "#!/bin/sh\necho \"got $*\"\n";

#[test]
fn run_sh_runs_every_test_and_sums_up() {
    let dir = bundle(&[("tests/a", PASS), ("tests/b", PASS), ("benches/c", FAIL)]);
    let (code, out, err) = run(dir.path(), &[]);
    assert_eq!((code, err.as_str()), (0, ""), "{out}");
    let summary: Vec<_> = out.split("== summary\n").nth(1).unwrap().lines().collect();
    assert_eq!(summary.len(), 2, "{out}");
    for (line, name) in summary.iter().zip(["a", "b"]) {
        assert!(
            line.starts_with(&format!("ok  {name}  ")) && line.ends_with("3 passed; 0 failed; 1 ignored"),
            "{line}"
        );
    }
}

#[test]
fn run_sh_takes_a_record_for_the_callers_path() {
    let dir = bundle(&[("benches/a", "#!/bin/sh\necho \"record $PTQ_RECORD.\"\n")]);
    for (given, passed) in [("run.csv", "/run.csv"), ("/there/run.csv", "/there/run.csv"), ("", "")] {
        let mut command = Command::new(dir.path().join(RUN_NAME));
        let Output { stdout, .. } = command.arg("--bench").env("PTQ_RECORD", given).current_dir("/").output().unwrap();
        let out = String::from_utf8(stdout).unwrap();
        // The root folder's path ends in the slash that others lack.
        assert!(out.replace("//", "/").contains(&format!("record {passed}.\n")), "{given}: {out}");
    }
}

#[test]
fn run_sh_fails_when_one_fails_and_runs_the_rest() {
    let dir = bundle(&[("tests/a", FAIL), ("tests/b", PASS)]);
    let (code, out, _) = run(dir.path(), &[]);
    assert_eq!(code, 1, "{out}");
    assert!(out.contains("FAILED (exit 101)  a  ") && out.contains("ok  b  ") && out.ends_with("1 failed\n"), "{out}");
}

#[test]
fn run_sh_refuses_to_run_nothing() {
    for (dir, arguments) in
        [(bundle(&[]), &[][..]), (bundle(&[("tests/a", PASS)]), &["--only", "b"]), (bundle(&[]), &["--only"])]
    {
        let (code, out, err) = run(dir.path(), arguments);
        assert_eq!(code, 2, "{out}{err}");
        assert_eq!(err.lines().count(), 1, "{err}");
    }
}

#[test]
fn run_sh_runs_what_fits_a_pattern() {
    let dir = bundle(&[("tests/a-gpu", PASS), ("tests/b-gpu", PASS), ("tests/b-lib", FAIL)]);
    let (code, out, err) = run(dir.path(), &["--only", "*-gpu"]);
    assert_eq!((code, err.as_str()), (0, ""), "{out}");
    assert!(out.contains("ok  a-gpu  ") && out.contains("ok  b-gpu  ") && !out.contains("b-lib"), "{out}");
}

#[test]
fn run_sh_passes_arguments_on() {
    let dir = bundle(&[("tests/a", ARGUMENTS), ("benches/c", ARGUMENTS)]);
    for (arguments, got) in [
        (&["x y"][..], "got x y\n"),
        (&["--only", "a", "--nocapture"], "got --nocapture\n"),
        (&["--bench", "filter"], "got --bench filter\n"),
    ] {
        let (code, out, _) = run(dir.path(), arguments);
        assert_eq!(code, 0, "{out}");
        assert!(out.contains(got), "{out}");
    }
}

#[test]
fn run_sh_explains_itself() {
    let (code, out, _) = run(bundle(&[]).path(), &["--help"]);
    assert_eq!(code, 0);
    assert!(
        out.starts_with("run.sh [--bench | --sanitize]") && out.contains("PTQ_REQUIRE_GPU") && !out.contains('#'),
        "{out}"
    );
}

#[test]
fn run_sh_says_where_the_program_is_and_writes_elsewhere() {
    let script = "#!/bin/sh\necho \"$PTQ_BIN\"\ntouch here && touch \"$TMPDIR/there\" && pwd\n";
    let dir = bundle(&[("tests/a", script)]);
    let (code, out, _) = run(dir.path(), &[]);
    assert_eq!(code, 0, "{out}");
    let root = dir.path().canonicalize().unwrap();
    assert!(out.contains(&format!("{}/bin/quant-fp8\n", root.display())), "{out}");
    let mut found = files(dir.path()).unwrap();
    found.sort();
    assert_eq!(found, [Path::new(RUN_NAME), Path::new("tests/a.gz")], "nothing is written into the bundle");
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

/// A `compute-sanitizer` that runs the program and sums up with `findings`, and the PATH that finds it.
fn sanitizer(findings: &str, status: i32) -> (tempfile::TempDir, String) {
    let dir = tempfile::tempdir().unwrap();
    let script = format!(
        "#!/bin/sh\necho \"========= $*\"\nwhile [ \"${{1#--}}\" != \"$1\" ]; do shift 2; done\n\"$@\"\n\
         echo \"{findings}\"\nexit {status}\n"
    );
    script::write(&dir.path().join("compute-sanitizer"), &script);
    let path = format!("{}:{}", dir.path().display(), std::env::var("PATH").unwrap());
    (dir, path)
}

const CLEAN: &str = "========= ERROR SUMMARY: 0 errors";
const SHORT: &str = "#!/bin/sh\necho \"short $PTQ_SHORT, required $PTQ_REQUIRE_GPU, $*\"\n\
                     echo 'test result: ok. 3 passed; 0 failed; 1 ignored; finished in 0.01s'\n";

/// As [`run`], with that PATH.
fn run_with(path: &str, dir: &Path, arguments: &[&str]) -> (i32, String, String) {
    let Output { status, stdout, stderr } =
        Command::new(dir.join(RUN_NAME)).args(arguments).env("PATH", path).output().unwrap();
    (status.code().unwrap(), String::from_utf8(stdout).unwrap(), String::from_utf8(stderr).unwrap())
}

#[test]
fn run_sh_sanitizes_the_short_form_with_every_tool() {
    let dir = bundle(&[("tests/per_token_quant_fp8-gpu", SHORT), ("tests/other", FAIL)]);
    let (_tool, path) = sanitizer(CLEAN, 0);
    let (code, out, err) = run_with(&path, dir.path(), &["--sanitize", "filter"]);
    assert_eq!((code, err.as_str()), (0, ""), "{out}");
    for tool in ["memcheck", "racecheck", "initcheck", "synccheck"] {
        assert!(out.contains(&format!("========= --tool {tool} --error-exitcode 9 ")), "{tool}: {out}");
        let line = format!("ok  {tool} per_token_quant_fp8-gpu  ");
        let line = out.lines().find(|l| l.starts_with(&line)).unwrap_or_else(|| panic!("{tool}: {out}"));
        assert!(line.ends_with("3 passed; 0 failed; 1 ignored; 0 errors"), "{line}");
    }
    assert_eq!(out.matches("short 1, required 1, --test-threads=1 filter\n").count(), 4, "{out}");
}

#[test]
fn run_sh_fails_on_findings_and_on_a_tool_that_says_nothing() {
    let dir = bundle(&[("tests/per_token_quant_fp8-gpu", SHORT)]);
    let race = "========= RACECHECK SUMMARY: 2 hazards displayed (0 errors, 2 warnings)";
    for (findings, status, exit) in
        [("========= ERROR SUMMARY: 10 errors", 9, 9), (race, 0, 9), ("", 0, 9), (CLEAN, 101, 101)]
    {
        let (_tool, path) = sanitizer(findings, status);
        let (code, out, _) = run_with(&path, dir.path(), &["--sanitize"]);
        assert_eq!(code, 1, "{out}");
        assert!(out.contains(&format!("FAILED (exit {exit})  memcheck ")) && out.ends_with("4 failed\n"), "{out}");
    }
}

#[test]
fn run_sh_says_that_the_sanitizer_is_missing() {
    let dir = bundle(&[("tests/per_token_quant_fp8-gpu", SHORT)]);
    let nothing = tempfile::tempdir().unwrap();
    let shell = "/bin/sh";
    let output = Command::new(shell)
        .arg(dir.path().join(RUN_NAME))
        .arg("--sanitize")
        .env("PATH", nothing.path())
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("compute-sanitizer is not on the PATH"));
    let (_tool, path) = sanitizer(CLEAN, 0);
    assert_eq!(run_with(&path, dir.path(), &["--bench", "--sanitize"]).0, 2);
}

/// A bundle with the Python package, whose tests a program of this one stands for, in the place of PyTorch's.
fn python(main: &str) -> tempfile::TempDir {
    let dir = bundle(&[("lib/libptq_fp8.so", "the library\n")]);
    python::add_sources(dir.path()).unwrap();
    fs::write(dir.path().join("python/tests/__main__.py"), main).unwrap();
    dir
}

#[test]
fn run_sh_runs_the_python_tests_with_library_and_data() {
    let dir = python(
        "import os, ptq_test\nprint(open(os.environ['PTQ_LIB']).read())\n\
         print(sorted(os.listdir(os.environ['PTQ_TEST_DATA'])))\nprint('test result: ok. 2 passed; 0 failed')\n",
    );
    fs::write(dir.path().join("python/tests/ptq_test.py"), "").unwrap();
    let (code, out, err) = run(dir.path(), &[]);
    assert_eq!((code, err.as_str()), (0, ""), "{out}");
    assert!(out.contains("the library\n") && out.contains("['capi', 'python', 'tests']"), "{out}");
    assert!(out.contains("ok  ptq_fp8-python  ") && out.contains("2 passed; 0 failed"), "{out}");
    assert!(dir.path().join("python/ptq_fp8/library.py").is_file());
    let written = files(dir.path()).unwrap().into_iter().any(|file| file.extension().is_some_and(|e| e == "pyc"));
    assert!(!written, "nothing is written into the bundle");
    let (code, out, _) = run(python("raise SystemExit(3)\n").path(), &[]);
    assert_eq!(code, 1, "{out}");
}
