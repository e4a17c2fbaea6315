//! An interrupted run leaves nothing behind.
#![cfg(target_os = "linux")]

use crate::support::*;
use std::fs::{self, File};
use std::io::Write;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

const OLD: &[u8] = b"an older file";

/// An input that takes long enough to be interrupted, most of it a hole: 2 GiB of zeros.
fn long_input(folder: &Folder) -> PathBuf {
    const ROWS: u64 = 1 << 17;
    const HIDDEN: u64 = 4096;
    const BYTES: u64 = ROWS * HIDDEN * 4;
    let json = format!("{{\"w\":{{\"dtype\":\"F32\",\"shape\":[{ROWS},{HIDDEN}],\"data_offsets\":[0,{BYTES}]}}}}");
    let path = folder.path("in");
    let mut file = File::create(&path).unwrap();
    file.write_all(&(json.len() as u64).to_le_bytes()).unwrap();
    file.write_all(json.as_bytes()).unwrap();
    file.set_len(8 + json.len() as u64 + BYTES).unwrap();
    path
}

fn partial_files(folder: &Path) -> usize {
    let names = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name());
    names.filter(|name| name.to_string_lossy().ends_with(".partial")).count()
}

fn send(signal: &str, child: &Child) {
    // Nobody has waited for the program yet, so that its number is still its own if it has ended.
    let status = Command::new("sh").arg("-c").arg(format!("kill -{signal} {}", child.id())).status().unwrap();
    assert!(status.success());
}

/// Waits until the program is at work on its output, and sends the signals; not if it has ended already.
fn interrupt(folder: &Path, child: &mut Child, signals: &[&str]) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while partial_files(folder) == 0 {
        assert!(Instant::now() < deadline, "no output was begun");
        if child.try_wait().unwrap().is_some() {
            return;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    for signal in signals {
        send(signal, child);
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// The program, which ignores no signal even where the tests do, as under `nohup`.
fn with_default_signals() -> Command {
    let mut command = Command::new("env");
    command.arg("--default-signal").arg(program().get_program());
    command
}

/// Tries until the program was interrupted at work: on a busy machine it may end before the signal is there.
fn until_interrupted(attempt: impl Fn() -> ExitStatus) -> ExitStatus {
    const ATTEMPTS: usize = 5;
    let mut ends = (0..ATTEMPTS).map(|_| attempt());
    ends.find(|status| !status.success()).expect("the program always ended before the signal")
}

#[test]
fn signals_remove_the_unfinished_output_and_keep_the_old_one() {
    for (signal, number) in [("INT", 2), ("TERM", 15), ("HUP", 1), ("QUIT", 3), ("XCPU", 24)] {
        for old in [false, true] {
            let folder = Folder::new();
            let (input, output) = (long_input(&folder), folder.path("out"));
            let status = until_interrupted(|| {
                if old {
                    fs::write(&output, OLD).unwrap();
                } else if output.exists() {
                    fs::remove_file(&output).unwrap();
                }
                let mut child = with_default_signals()
                    .args([
                        "quantize".as_ref(),
                        input.as_os_str(),
                        output.as_os_str(),
                        "--backend".as_ref(),
                        "cpu".as_ref(),
                    ])
                    .stdout(Stdio::null())
                    .spawn()
                    .unwrap();
                interrupt(&folder.path(""), &mut child, &[signal]);
                child.wait().unwrap()
            });
            assert_eq!(status.signal(), Some(number), "{status}");
            assert_eq!(partial_files(&folder.path("")), 0);
            assert_eq!(output.exists(), old);
            if old {
                assert_eq!(read(&output), OLD);
            }
        }
    }
}

/// `nohup` and a shell's background jobs start programs with some signals ignored.
#[test]
fn an_ignored_signal_stays_ignored() {
    let folder = Folder::new();
    let (input, output) = (long_input(&folder), folder.path("out"));
    let status = until_interrupted(|| {
        let mut child = Command::new("sh")
            .args(["-c", "trap '' HUP; exec \"$@\"", "sh"])
            .arg(program().get_program())
            .args(["quantize".as_ref(), input.as_os_str(), output.as_os_str(), "--backend".as_ref(), "cpu".as_ref()])
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        interrupt(&folder.path(""), &mut child, &["HUP", "TERM"]);
        child.wait().unwrap()
    });
    // By the second signal: the first did nothing.
    assert_eq!(status.signal(), Some(15), "{status}");
    assert_eq!(partial_files(&folder.path("")), 0);
}

/// A limit on the size of files (`ulimit -f`) is told like a full disk.
#[test]
fn a_limit_on_the_file_size_is_an_error() {
    let folder = Folder::new();
    let (input, output) = (long_input(&folder), folder.path("out"));
    let result = Command::new("sh")
        .args(["-c", "ulimit -f 100; exec \"$@\"", "sh"])
        .arg(program().get_program())
        .args(["quantize".as_ref(), input.as_os_str(), output.as_os_str(), "--backend".as_ref(), "cpu".as_ref()])
        .output()
        .unwrap();
    let err = text(&result.stderr);
    assert_eq!(result.status.code(), Some(2), "{} {err}", result.status);
    assert!(err.starts_with("quant-fp8: cannot write ") && err.lines().count() == 1, "{err:?}");
    assert!(!output.exists());
    assert_eq!(partial_files(&folder.path("")), 0);
}

/// Without a descriptor to spare, some step fails, that of watching for signals among them, and nothing is left behind.
#[test]
fn a_limit_on_open_files_is_an_error() {
    let folder = Folder::new();
    let (input, output) = (folder.write("in", MINILM), folder.path("out"));
    let program = program();
    let mut complaints = String::new();
    for limit in 3..12 {
        let result = std::process::Command::new("/bin/sh")
            .args(["-c", "ulimit -n \"$1\" && shift && exec \"$@\"", "sh", &limit.to_string()])
            .arg(program.get_program())
            .args(["quantize".as_ref(), input.as_os_str(), output.as_os_str()])
            .args(["--backend", "cpu", "--math", "precise", "--sm-count", "132"])
            .output()
            .unwrap();
        let err = text(&result.stderr);
        if result.status.code() == Some(2) && err.starts_with("quant-fp8: ") {
            assert_eq!(err.lines().count(), 1, "{err}");
            assert!(!output.exists(), "{err}");
            complaints += &err;
        }
        let _ = std::fs::remove_file(&output);
    }
    assert!(complaints.contains("cannot watch for signals"), "{complaints}");
}
