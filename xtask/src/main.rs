//! Project tasks, run as `cargo xtask TASK`.

mod bench_report;
mod bundle;
mod emulator;
mod fuzz;
mod kernels;
mod mutants;
mod record;
mod reference;
#[cfg(test)]
mod script;
mod setup;
mod staging;
mod r#try;
mod tune;
mod wheels;
mod workspace;

use clap::Parser;
use std::error::Error;
use std::path::PathBuf;
use std::process::ExitCode;

#[derive(Parser)]
#[command(name = "cargo xtask", about = "Project tasks")]
enum Task {
    /// Fetch libNVVM, ptxas and nvdisasm, pinned, into target/toolchain. Does nothing when they are there.
    Setup,
    /// Build the GPU artifacts from the kernel sources, or check that artifacts/ is what they give.
    Kernels(kernels::Options),
    /// Fetch the reference's kernels, pinned, into target/reference: SGLang's and vLLM's, as cubins for sm_90.
    ///
    /// Downloads some 1.2 GB and keeps 1 MB. Does nothing when they are there.
    Reference,
    /// Run the fuzz targets, each for a bounded time, on an installed nightly toolchain.
    Fuzz(fuzz::Options),
    /// Build the kernels for the emulator and run its quick tests: the verdict on a change within seconds, without a GPU.
    Try(r#try::Options),
    /// Put deliberate faults into a copy of the kernels, one at a time, and check that a named test catches each.
    Mutants(mutants::Options),
    /// Bring docs/performance.md and its plots up to date with the newest records of measurements in benches/record.
    BenchReport(bench_report::Options),
    /// Compare the policy's plans with the fastest of a recorded sweep, and print the best constants for the policy.
    Tune(tune::Options),
    /// Collect the release tests, benches and program in DIR, with a run.sh for GPU hosts without Rust.
    Bundle {
        /// Folder to create; an earlier bundle there is replaced.
        dir: PathBuf,
    },
}

fn main() -> ExitCode {
    let done: Result<(), Box<dyn Error>> = match Task::parse() {
        Task::Setup => setup::run().map_err(Into::into),
        Task::Kernels(options) => kernels::run(&options).map_err(Into::into),
        Task::Reference => reference::run().map_err(Into::into),
        Task::Fuzz(options) => fuzz::run(&options).map_err(Into::into),
        Task::Try(options) => r#try::run(&options).map_err(Into::into),
        Task::Mutants(options) => mutants::run(&options).map_err(Into::into),
        Task::BenchReport(options) => bench_report::run(&options).map_err(Into::into),
        Task::Tune(options) => tune::run(&options).map_err(Into::into),
        Task::Bundle { dir } => bundle::run(&dir).map_err(Into::into),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            let mut cause = error.source();
            while let Some(error) = cause {
                eprintln!("  because: {error}");
                cause = error.source();
            }
            ExitCode::FAILURE
        }
    }
}
