//! The parts of `quant-fp8`. The program is [`run`] and a few lines around it; nothing here is an interface for others.

pub mod args;
pub mod backend;
mod chunks;
pub mod console;
mod container;
mod error;
mod gpu;
mod info;
mod input;
mod interrupt;
mod output;
mod plan;
pub mod quantize;
pub mod record;
mod select;
mod sqnr;
mod table;
pub mod verify;

pub use error::Error;

use args::{Command, Parsed};
use std::ffi::OsString;

/// What a command line came to.
#[derive(Debug)]
pub enum Outcome {
    /// The command did its work, and stdout has what there is to say.
    Done,
    /// `verify` found a difference.
    Different(verify::Mismatch),
}

/// Runs a command line, program name first.
///
/// # Errors
/// [`Error`]: whatever kept the command from doing its work.
pub fn run(args: impl IntoIterator<Item = OsString>) -> Result<Outcome, Error> {
    match args::parse(args)? {
        Parsed::Text(text) => console::print(&text)?,
        Parsed::Command(Command::Info) => console::print(&info::report())?,
        Parsed::Command(Command::Quantize(args)) => quantize::run(&args)?,
        Parsed::Command(Command::Verify(args)) => match verify::run(&args)? {
            verify::Outcome::Same(summary) => console::print(&summary.to_string())?,
            verify::Outcome::Different(difference) => return Ok(Outcome::Different(difference)),
        },
    }
    Ok(Outcome::Done)
}
