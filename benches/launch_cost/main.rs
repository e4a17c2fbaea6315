//! What the host pays: per launch, per preparation, from several threads, and at first use.
//!
//! `cargo bench --bench launch_cost`; `PTQ_RECORD=FILE` also writes what it prints there, for `cargo xtask bench-report`.
//!
//! Launches are timed on the host alone, in batches that the driver's queue holds; the stream is drained between them. The
//! kernel is that of one short row. First uses happen in processes of their own.

mod calls;
mod columns;
mod first_use;
#[path = "../gpu/median.rs"]
mod median;
mod operands;
mod raw;
#[path = "../gpu/record.rs"]
mod record;

use calls::Subject;
use columns::{LAUNCH, LAUNCH_COLUMNS};
use median::median;
use per_token_quant_fp8::{Backend, Element, Error, cust, probe, quantizer};
use record::Record;
use std::process::ExitCode;

/// Whatever goes wrong ends the benchmark.
type BoxError = Box<dyn std::error::Error>;

/// Processes whose median counts.
const FIRST_USES: usize = 3;
/// Threads that launch, each in a stream of its own.
const THREADS: [usize; 2] = [1, 8];

fn main() -> ExitCode {
    let outcome = match first_use::child() {
        Some(outcome) => outcome,
        None if std::env::args().any(|a| a == "--bench") => run(),
        None => {
            println!("measures only with --bench, which `cargo bench` gives");
            Ok(())
        }
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), BoxError> {
    let required = std::env::var("PTQ_REQUIRE_GPU").is_ok_and(|v| !["", "0"].contains(&v.as_str()));
    match probe() {
        Err(reason @ (Error::NoDriver { .. } | Error::NoDevice { .. })) if !required => {
            println!("skipped: {reason}");
            return Ok(());
        }
        probed => probed?,
    };
    let context = cust::quick_init()?;
    let quantizer = quantizer()?;
    let mut about = record::about(quantizer.device(), || Ok(()))?;
    about.push(("cpu", cpu_name()));
    about.push(("batch", format!("{} calls, median of {}", calls::BATCH, calls::ROUNDS)));
    let mut record = Record::create(LAUNCH, &about, LAUNCH_COLUMNS)?;

    for threads in THREADS {
        let medians = calls::on_threads(threads, &context, &quantizer)?;
        for (subject, micros) in Subject::ALL.into_iter().zip(medians) {
            let (quantity, name) = subject.names();
            let value = format!("{micros:.4}");
            record.row(&[quantity, name, Element::Bf16.name(), &threads.to_string(), "us", &value])?;
        }
    }
    for backend in [Backend::Aot, Backend::Jit] {
        for element in Element::ALL {
            let times = (0..FIRST_USES).map(|_| first_use::millis(backend, element)).collect::<Result<_, _>>()?;
            let value = format!("{:.3}", median(times));
            record.row(&["first use", &backend.to_string(), element.name(), "1", "ms", &value])?;
        }
    }
    record.finish()
}

/// The processor's name, where Linux tells.
fn cpu_name() -> String {
    let said = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let name = said.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": ").map(|(_, name)| name));
    name.unwrap_or("unknown").to_owned()
}
