//! The programs, one after the other.
//!
//! Without a driver or a device those that need one are reported as ignored; with `PTQ_REQUIRE_GPU=1` they fail.

#[path = "../src/bin/cudarc.rs"]
mod cudarc;
#[path = "../src/bin/device_rows.rs"]
mod device_rows;
#[path = "../src/bin/executor.rs"]
mod executor;
#[path = "../src/bin/graph_capture.rs"]
mod graph_capture;
#[path = "../src/bin/host_slices.rs"]
mod host_slices;
#[path = "../src/bin/raw_pointers.rs"]
mod raw_pointers;
#[path = "../src/bin/scaled_fp8_quant.rs"]
mod scaled_fp8_quant;

use interop::{Outcome, has_device};
use libtest_mimic::{Arguments, Completion, Trial};
use per_token_quant_fp8::cust;
use std::process::ExitCode;

type Program = fn() -> Outcome;

fn main() -> ExitCode {
    let mut arguments = Arguments::from_args();
    // They share the device's default stream, which must not be used while another thread captures.
    arguments.test_threads = Some(1);
    // Each lets go of the device's primary context, which ends with the last who has it.
    let _context = cust::quick_init();
    let programs: [(&str, bool, Program); _] = [
        ("host_slices", false, host_slices::main),
        ("executor", false, executor::main),
        ("scaled_fp8_quant", false, scaled_fp8_quant::main),
        ("raw_pointers", true, raw_pointers::main),
        ("graph_capture", true, graph_capture::main),
        ("device_rows", true, device_rows::main),
        ("cudarc", true, cudarc::main),
    ];
    let trials = programs.map(|(name, needs_device, run)| {
        Trial::ignorable_test(name, move || {
            if needs_device && !has_device()? {
                return Ok(Completion::ignored_with("no CUDA device"));
            }
            run()?;
            Ok(Completion::Completed)
        })
    });
    libtest_mimic::run(&arguments, trials.into()).exit_code()
}
