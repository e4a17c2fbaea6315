//! `quant-fp8`: quantize safetensors files to FP8 E4M3, one scale per token.
//!
//! Exit status: 0 done, 1 `verify` found a difference, 2 anything that kept the command from doing its work. Whatever
//! goes wrong is one line on stderr.

use quant_fp8::{Outcome, console};
use std::process::ExitCode;

const DIFFERENT: u8 = 1;
const FAILED: u8 = 2;

fn main() -> ExitCode {
    let (complaint, status) = match quant_fp8::run(std::env::args_os()) {
        Ok(Outcome::Done) => return ExitCode::SUCCESS,
        Ok(Outcome::Different(difference)) => (difference.to_string(), DIFFERENT),
        Err(error) => (error.to_string(), FAILED),
    };
    console::complain(&complaint);
    ExitCode::from(status)
}
