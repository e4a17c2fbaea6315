//! `cargo xtask try`: the shortest way from a saved kernel source to a verdict, without a GPU.

use crate::emulator;
use crate::mutants::MUTANTS;
use crate::staging;
use crate::workspace;
use clap::Args;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Instant;

/// Options of the task.
#[derive(Args)]
pub struct Options {
    /// Run every test of the emulator suite whose name contains this, instead of those that catch the mutants.
    #[arg(long, value_name = "NAME")]
    filter: Option<String>,
}

/// Why the kernels are not right, or nobody knows.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The suite does not build, or fails; it has said where.
    #[error("the kernels fail the emulator suite after {seconds:.1} s; its own messages are above")]
    Failed {
        /// Seconds until then.
        seconds: f64,
    },
    /// cargo does not start.
    #[error(transparent)]
    Io(#[from] staging::Error),
}

/// Builds the kernels for the emulator and runs the tests that `cargo xtask mutants` relies on.
///
/// # Errors
/// [`Error`].
pub fn run(options: &Options) -> Result<(), Error> {
    let start = Instant::now();
    let mut suite = emulator::suite(&workspace::root());
    suite.arg("--");
    match &options.filter {
        Some(name) => suite.arg(name),
        None => suite.arg("--exact").args(MUTANTS.iter().map(|mutant| mutant.test).collect::<BTreeSet<_>>()),
    };
    let program = PathBuf::from(suite.get_program());
    let status = suite.status().map_err(staging::Error::io("start", &program))?;
    let seconds = start.elapsed().as_secs_f64();
    if !status.success() {
        return Err(Error::Failed { seconds });
    }
    println!("the kernels pass; {seconds:.1} s");
    Ok(())
}
