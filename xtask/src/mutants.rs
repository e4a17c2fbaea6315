//! `cargo xtask mutants`: deliberate faults in the kernels, each of which a named test has to catch without a GPU.
//!
//! The faults are put one at a time into a copy of the workspace, `target/mutants/tree`.

mod list;

use crate::emulator;
use crate::staging;
use crate::workspace;
use clap::Args;
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::Instant;

pub use list::MUTANTS;

/// A deliberate fault.
#[derive(Debug, Clone, Copy)]
pub struct Mutant {
    /// What is wrong with it.
    pub name: &'static str,
    /// File in `kernels-gpu/src`.
    pub file: &'static str,
    /// Text that is in the file once.
    pub original: &'static str,
    /// Text in its place.
    pub replacement: &'static str,
    /// Test of the emulator suite that has to fail.
    pub test: &'static str,
    /// What the failing test has to say: it failed for the right reason.
    pub says: &'static str,
}

/// Options of the task.
#[derive(Args)]
pub struct Options {
    /// Only the mutants whose name contains this.
    #[arg(long, value_name = "NAME")]
    filter: Option<String>,
}

/// Why the net is not proven.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No mutant has such a name.
    #[error("no mutant's name contains `{filter}`; they are: {names}")]
    NoSuchMutant {
        /// What was asked for.
        filter: String,
        /// The names there are.
        names: String,
    },
    /// The source has changed under the mutant.
    #[error(
        "the mutant no longer applies: `{mutant}` expects its text once in kernels-gpu/src/{file}, and it is there \
         {matches} times; update it in xtask/src/mutants/list.rs"
    )]
    Outdated {
        /// The mutant.
        mutant: &'static str,
        /// Its file.
        file: &'static str,
        /// How often its text is there.
        matches: usize,
    },
    /// A mutant that the compiler catches proves nothing.
    #[error("`{mutant}` does not compile; change it in xtask/src/mutants/list.rs:\n{log}")]
    DoesNotCompile {
        /// The mutant.
        mutant: &'static str,
        /// What cargo says.
        log: String,
    },
    /// The suite does not build, or a test fails, without any fault.
    #[error("the emulator suite has to pass without a mutant, and does not:\n{log}")]
    Baseline {
        /// What cargo says.
        log: String,
    },
    /// A test that mutants name does not exist.
    #[error("the emulator suite has no test `{test}`; correct the mutants that name it in xtask/src/mutants/list.rs")]
    NoSuchTest {
        /// Its name.
        test: &'static str,
    },
    /// Some faults went through.
    #[error("not caught: {}; strengthen the suite", mutants.join(", "))]
    Survived {
        /// Their names.
        mutants: Vec<&'static str>,
    },
    /// A file or program could not be used.
    #[error(transparent)]
    Io(#[from] staging::Error),
}

/// Checks that every mutant is caught by its test.
///
/// # Errors
/// [`Error`]: also for a mutant that survives, does not compile or no longer applies.
pub fn run(options: &Options) -> Result<(), Error> {
    let start = Instant::now();
    let root = workspace::root();
    let mutants = select(options.filter.as_deref())?;
    for mutant in &mutants {
        mutant.mutate(&root)?;
    }

    let scratch = root.join("target/mutants");
    let tree = scratch.join("tree");
    copy_sources(&root, &tree)?;
    let suite = Suite { tree, target: scratch.join("target") };
    suite.check_baseline(&mutants)?;

    let mut survived = Vec::new();
    for mutant in &mutants {
        if suite.catches(mutant)? {
            println!("{:<56} caught by {:<40} {}", mutant.name, mutant.test, mutant.says);
        } else {
            println!("{:<56} SURVIVED  {:<40} {}", mutant.name, mutant.test, mutant.says);
            survived.push(mutant.name);
        }
    }
    if !survived.is_empty() {
        return Err(Error::Survived { mutants: survived });
    }
    println!("{} mutants, all caught; {:.1} s", mutants.len(), start.elapsed().as_secs_f64());
    Ok(())
}

fn select(filter: Option<&str>) -> Result<Vec<&'static Mutant>, Error> {
    let filter = filter.unwrap_or_default();
    let mutants: Vec<_> = MUTANTS.iter().filter(|mutant| mutant.name.contains(filter)).collect();
    if mutants.is_empty() {
        let names: Vec<_> = MUTANTS.iter().map(|mutant| mutant.name).collect();
        return Err(Error::NoSuchMutant { filter: filter.to_owned(), names: names.join(", ") });
    }
    Ok(mutants)
}

impl Mutant {
    fn path(&self, root: &Path) -> PathBuf {
        root.join("kernels-gpu/src").join(self.file)
    }

    /// The file's text with and without the fault.
    fn mutate(&self, root: &Path) -> Result<Sources, Error> {
        let path = self.path(root);
        let original = fs::read_to_string(&path).map_err(staging::Error::io("read", &path))?;
        let matches = original.matches(self.original).count();
        if matches != 1 {
            return Err(Error::Outdated { mutant: self.name, file: self.file, matches });
        }
        Ok(Sources { mutated: original.replace(self.original, self.replacement), original })
    }
}

/// A file's text.
struct Sources {
    original: String,
    mutated: String,
}

/// The emulator suite of the copy.
struct Suite {
    tree: PathBuf,
    target: PathBuf,
}

impl Suite {
    fn command(&self) -> Command {
        let mut command = emulator::suite(&self.tree);
        command.env("CARGO_TARGET_DIR", &self.target);
        // Each fault is compiled once and fails early: what optimising costs, the tests do not gain.
        command.arg("--config=profile.dev.package.ptq-kernels.opt-level=0");
        command
    }

    fn output(command: &mut Command) -> Result<Output, Error> {
        let program = PathBuf::from(command.get_program());
        Ok(command.output().map_err(staging::Error::io("start", &program))?)
    }

    /// Builds it, or says why that fails.
    fn build(&self) -> Result<Result<(), String>, Error> {
        let output = Self::output(self.command().args(["--quiet", "--no-run"]))?;
        Ok(if output.status.success() { Ok(()) } else { Err(log(&output)) })
    }

    fn run<'a>(&self, tests: impl IntoIterator<Item = &'a str>) -> Result<Output, Error> {
        Self::output(self.command().args(["--", "--color=never", "--exact"]).args(tests))
    }

    /// The tests that the mutants name exist, and pass without a fault.
    fn check_baseline(&self, mutants: &[&'static Mutant]) -> Result<(), Error> {
        self.build()?.map_err(|log| Error::Baseline { log })?;
        let tests: BTreeSet<_> = mutants.iter().map(|mutant| mutant.test).collect();
        let output = self.run(tests.iter().copied())?;
        let log = log(&output);
        if !output.status.success() {
            return Err(Error::Baseline { log });
        }
        match tests.into_iter().find(|test| !reports(&log, test, "ok")) {
            Some(test) => Err(Error::NoSuchTest { test }),
            None => Ok(()),
        }
    }

    /// Whether the mutant's test fails, for the mutant's reason.
    fn catches(&self, mutant: &Mutant) -> Result<bool, Error> {
        let path = mutant.path(&self.tree);
        let sources = mutant.mutate(&self.tree)?;
        let write = |text: &str| fs::write(&path, text).map_err(staging::Error::io("write", &path));
        write(&sources.mutated)?;
        self.build()?.map_err(|log| Error::DoesNotCompile { mutant: mutant.name, log })?;
        let output = self.run([mutant.test])?;
        write(&sources.original)?;
        let log = log(&output);
        Ok(!output.status.success() && reports(&log, mutant.test, "FAILED") && log.contains(mutant.says))
    }
}

/// Whether a run of tests ended with that result for that test.
fn reports(log: &str, test: &str, result: &str) -> bool {
    log.lines().any(|line| line == format!("test {test} ... {result}"))
}

fn log(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

/// Makes the sources below `to` those below `from`. Files that are the same already keep their dates, for cargo: nothing is
/// built again for them.
fn copy_sources(from: &Path, to: &Path) -> Result<(), staging::Error> {
    fs::create_dir_all(to).map_err(staging::Error::io("create", to))?;
    for name in names(to)? {
        if !from.join(&name).exists() {
            staging::remove(&to.join(name))?;
        }
    }
    for name in names(from)? {
        let (path, copy) = (from.join(&name), to.join(&name));
        if name == "target" || name == ".git" {
            continue;
        }
        if path.is_dir() {
            copy_sources(&path, &copy)?;
            continue;
        }
        let bytes = fs::read(&path).map_err(staging::Error::io("read", &path))?;
        let current = match fs::read(&copy) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            result => Some(result.map_err(staging::Error::io("read", &copy))?),
        };
        if current.as_ref() != Some(&bytes) {
            fs::write(&copy, bytes).map_err(staging::Error::io("write", &copy))?;
        }
    }
    Ok(())
}

fn names(folder: &Path) -> Result<Vec<OsString>, staging::Error> {
    let entries = fs::read_dir(folder).map_err(staging::Error::io("list", folder))?;
    entries.map(|entry| Ok(entry.map_err(staging::Error::io("list", folder))?.file_name())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_mutant_applies_and_has_a_name_of_its_own() {
        let mut names = BTreeSet::new();
        for mutant in MUTANTS {
            let sources = mutant.mutate(&workspace::root()).unwrap();
            assert_ne!(sources.original, sources.mutated, "{}", mutant.name);
            assert!(names.insert(mutant.name), "{} twice", mutant.name);
        }
    }

    #[test]
    fn a_text_that_is_there_twice_or_not_at_all_is_refused() {
        let root = tempfile::tempdir().unwrap();
        let file = root.path().join("kernels-gpu/src/row.rs");
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        let mutant = Mutant { file: "row.rs", original: "a < b", replacement: "a <= b", ..MUTANTS[0] };
        for (text, expected) in [("a > b", 0), ("a < b; a < b", 2)] {
            fs::write(&file, text).unwrap();
            let result = mutant.mutate(root.path());
            assert!(matches!(result, Err(Error::Outdated { matches, .. }) if matches == expected), "{text}");
        }
        fs::write(&file, "if a < b {}").unwrap();
        assert_eq!(mutant.mutate(root.path()).unwrap().mutated, "if a <= b {}");
    }

    #[test]
    fn a_copy_loses_what_an_earlier_run_left_and_keeps_what_is_the_same() {
        let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        for folder in ["src", "target", ".git"] {
            fs::create_dir(from.path().join(folder)).unwrap();
            fs::write(from.path().join(folder).join("file"), folder).unwrap();
        }
        fs::create_dir(to.path().join("src")).unwrap();
        fs::write(to.path().join("src/file"), "mutated").unwrap();
        fs::write(to.path().join("src/moved"), "").unwrap();
        copy_sources(from.path(), to.path()).unwrap();
        assert_eq!(fs::read_to_string(to.path().join("src/file")).unwrap(), "src");
        assert!(!to.path().join("src/moved").exists());
        assert!(!to.path().join("target").exists() && !to.path().join(".git").exists());

        let date = || fs::metadata(to.path().join("src/file")).unwrap().modified().unwrap();
        let before = date();
        copy_sources(from.path(), to.path()).unwrap();
        assert_eq!(date(), before);
    }

    #[test]
    fn a_report_is_of_one_test_and_one_result() {
        let log = "running 2 tests\ntest special ... ok\ntest special_values ... FAILED\n";
        assert!(reports(log, "special", "ok") && reports(log, "special_values", "FAILED"));
        assert!(!reports(log, "special", "FAILED") && !reports(log, "values", "FAILED"));
    }
}
