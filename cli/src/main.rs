//! `quant-fp8`: quantize safetensors files to FP8 E4M3, one scale per token.
//!
//! Exit status: 0 done, 1 `verify` found a difference, 2 anything that kept the command from doing its work. Whatever
//! goes wrong is one line on stderr.

mod args;
mod backend;
mod chunks;
mod console;
mod container;
mod error;
mod gpu;
mod info;
mod input;
mod interrupt;
mod output;
mod plan;
mod quantize;
mod record;
mod select;
mod sqnr;
mod table;
mod verify;

use args::{Command, Parsed};
use error::Error;
use std::process::ExitCode;

const DIFFERENT: u8 = 1;
const FAILED: u8 = 2;

fn main() -> ExitCode {
    match run() {
        Ok(code) => code,
        Err(error) => {
            console::complain(&error.to_string());
            ExitCode::from(FAILED)
        }
    }
}

fn run() -> Result<ExitCode, Error> {
    match args::parse(std::env::args_os())? {
        Parsed::Text(text) => console::print(&text)?,
        Parsed::Command(Command::Info) => console::print(&info::report())?,
        Parsed::Command(Command::Quantize(args)) => quantize::run(&args)?,
        Parsed::Command(Command::Verify(args)) => match verify::run(&args)? {
            verify::Outcome::Same(summary) => console::print(&summary.to_string())?,
            verify::Outcome::Different(difference) => {
                console::complain(&difference.to_string());
                return Ok(ExitCode::from(DIFFERENT));
            }
        },
    }
    Ok(ExitCode::SUCCESS)
}
