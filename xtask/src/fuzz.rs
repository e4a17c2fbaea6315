//! `cargo xtask fuzz`: every fuzz target for a bounded time.
//!
//! cargo-fuzz needs a nightly toolchain. One that is installed is used, and none is ever fetched.

use crate::workspace;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Folder of the fuzz targets, relative to the workspace.
const FOLDER: &str = "fuzz";

/// Longest input in bytes: enough for every size that is treated differently, and quick to run.
const MAX_INPUT: u32 = 4096;

/// What the task is told.
#[derive(Debug, clap::Args)]
pub struct Options {
    /// Time for each target, after it is built
    #[arg(long, value_name = "N", default_value_t = 20)]
    seconds: u32,
    /// Start of the random inputs: the same one tries the same inputs again, as far as the time goes; by default another each run
    #[arg(long, value_name = "N")]
    seed: Option<u32>,
    /// Targets, as `fuzz/fuzz_targets` names them; all without any
    targets: Vec<String>,
}

/// Why fuzzing failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A folder cannot be listed or made.
    #[error("cannot use `{}`", path.display())]
    Io {
        /// The folder.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// rustup could not be started.
    #[error("cannot start `rustup`")]
    Start(#[source] io::Error),
    /// cargo-fuzz is missing.
    #[error("cargo-fuzz does not run; `cargo install cargo-fuzz --locked` installs it")]
    NoCargoFuzz,
    /// There is no target of that name.
    #[error("no fuzz target `{actual}`, expected one of {expected:?}")]
    UnknownTarget {
        /// What was asked for.
        actual: String,
        /// What there is.
        expected: Vec<String>,
    },
    /// The targets do not build.
    #[error("the fuzz targets do not build; cargo's messages are above")]
    Build,
    /// An input was found that a target fails with.
    #[error(
        "target `{target}` failed; the input is in {FOLDER}/artifacts/{target}, and the lines above say how to run it \
         again (what to do with it: {FOLDER}/README.md)"
    )]
    Failed {
        /// The target.
        target: String,
    },
}

/// Builds the targets and runs each. Without a nightly toolchain it says so and does nothing.
///
/// # Errors
/// [`Error`].
pub fn run(options: &Options) -> Result<(), Error> {
    let folder = workspace::root().join(FOLDER);
    let known = targets(&folder.join("fuzz_targets"))?;
    if let Some(actual) = options.targets.iter().find(|target| !known.contains(target)) {
        return Err(Error::UnknownTarget { actual: actual.clone(), expected: known });
    }
    let targets = if options.targets.is_empty() { &known } else { &options.targets };
    let Some(toolchain) = nightly(&folder)? else {
        println!("fuzzing is SKIPPED: no nightly toolchain is installed (`rustup toolchain list`)");
        return Ok(());
    };
    println!("fuzzing on {toolchain}: {}, {} s each", targets.join(", "), options.seconds);
    let cargo_fuzz = |args: &[&OsStr]| {
        let fuzz = ["run", &toolchain, "cargo", "fuzz"].map(OsStr::new);
        rustup(&folder).args(fuzz).args(args).status().map(|status| status.success()).map_err(Error::Start)
    };
    if !cargo_fuzz(&["--version".as_ref()])? {
        return Err(Error::NoCargoFuzz);
    }
    if !cargo_fuzz(&["build".as_ref()])? {
        return Err(Error::Build);
    }
    for target in targets {
        let [corpus, seeds] = ["corpus", "seeds"].map(|kind| folder.join(kind).join(target));
        fs::create_dir_all(&corpus).map_err(|source| Error::Io { path: corpus.clone(), source })?;
        // The program's reports go to stdout and say nothing here.
        let mut limits: Vec<OsString> = vec![
            format!("-max_total_time={}", options.seconds).into(),
            // Long inputs from the start: a bounded run has no time to grow them.
            format!("-max_len={MAX_INPUT}").into(),
            "-len_control=0".into(),
            "-close_fd_mask=1".into(),
        ];
        limits.extend(options.seed.map(|seed| format!("-seed={seed}").into()));
        let mut args = vec!["run".as_ref(), target.as_ref(), corpus.as_os_str(), seeds.as_os_str(), "--".as_ref()];
        args.extend(limits.iter().map(OsString::as_os_str));
        if !cargo_fuzz(&args)? {
            return Err(Error::Failed { target: target.clone() });
        }
    }
    println!("fuzzing found nothing in {} targets", targets.len());
    Ok(())
}

/// Names of the targets, sorted: the files of their folder.
fn targets(folder: &Path) -> Result<Vec<String>, Error> {
    let failed = |source| Error::Io { path: folder.to_owned(), source };
    let mut names = Vec::new();
    for entry in fs::read_dir(folder).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        names.extend(path.file_stem().and_then(OsStr::to_str).map(str::to_owned));
    }
    names.sort();
    Ok(names)
}

/// The first nightly toolchain that is installed. A machine without rustup has none.
fn nightly(folder: &Path) -> Result<Option<String>, Error> {
    match rustup(folder).args(["toolchain", "list"]).output() {
        Ok(output) => Ok(first_nightly(&String::from_utf8_lossy(&output.stdout))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Error::Start(error)),
    }
}

/// The first nightly of a list whose lines are names, some followed by remarks.
fn first_nightly(list: &str) -> Option<String> {
    let mut names = list.lines().filter_map(|line| line.split_whitespace().next());
    names.find(|name| name.starts_with("nightly")).map(str::to_owned)
}

/// rustup in the fuzz targets' folder, without the toolchain that this task runs on.
fn rustup(folder: &Path) -> Command {
    let mut command = Command::new("rustup");
    command.current_dir(folder).env_remove("RUSTUP_TOOLCHAIN").env_remove("CARGO").env_remove("RUSTC");
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_nightly_is_found_by_its_name() {
        let name = "nightly-x86_64-unknown-linux-gnu";
        let list = format!("stable-x86_64-unknown-linux-gnu (default)\n{name} (active)\n1.95.0-nightly-like\n");
        assert_eq!(first_nightly(&list).as_deref(), Some(name));
        assert_eq!(first_nightly("stable-x86_64-unknown-linux-gnu (active, default)\n"), None);
        assert_eq!(first_nightly("no installed toolchains\n"), None);
        assert_eq!(first_nightly(""), None);
    }

    #[test]
    fn every_target_is_a_binary_and_has_seeds() {
        let folder = workspace::root().join(FOLDER);
        let manifest = fs::read_to_string(folder.join("Cargo.toml")).unwrap();
        let targets = targets(&folder.join("fuzz_targets")).unwrap();
        assert!(!targets.is_empty());
        for target in targets {
            assert!(manifest.contains(&format!("name = \"{target}\"")), "{target} is not in the manifest");
            assert!(fs::read_dir(folder.join("seeds").join(&target)).unwrap().next().is_some(), "{target}");
        }
    }
}
