//! The command line: what it accepts, and clap's complaints brought down to one line.

use crate::error::Error;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::error::ErrorKind;
use clap::{Args, Parser, Subcommand};
use per_token_quant_fp8::spec::per_token::DEFAULT_SM_COUNT;
use per_token_quant_fp8::{Backend, Dispatch, MathMode, ZeroRows};
use std::ffi::OsString;
use std::path::PathBuf;

/// Quantize safetensors files to FP8 E4M3, one scale per token (row), with the same bits on a CPU and on a GPU.
#[derive(Debug, Parser)]
#[command(name = "quant-fp8", version, arg_required_else_help = false)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Report device, driver, compute capability, math mode and embedded artifacts
    Info,
    /// Quantize the selected tensors of a file
    #[command(after_long_help = QUANTIZE_NOTES)]
    Quantize(QuantizeArgs),
    /// Recompute a quantized file on the CPU and compare every byte
    #[command(after_long_help = VERIFY_NOTES)]
    Verify(VerifyArgs),
}

const QUANTIZE_NOTES: &str = "\
Every selected tensor NAME [rows, hidden] becomes NAME (F8_E4M3, [rows, hidden]) and NAME_scale (F32, [rows, 1]);
NAME * NAME_scale is the original, rounded. Everything else is copied. OUT's metadata records the resolved options
under ptq.math, ptq.dispatch, ptq.zero_rows, ptq.sm_count and ptq.select (a JSON array of the patterns). The same
resolved options give the same bytes on every backend. OUT appears by rename once it is complete.

The table: time is the backend's computation alone, without file access and copies; GB/s is bytes read and written over
that time; SQNR is the energy of the values over the energy of their rounding errors, over the finite elements of rows
with a finite scale. It is `inf` where no error was made and `-` where there is no energy to compare with.";

const VERIFY_NOTES: &str = "\
Recomputes on the CPU what OUT should be, with the options recorded in its metadata. Exit status: 0 every byte is as
expected; 1 a byte differs, and the first difference is named; 2 IN or OUT cannot be used.";

/// Arguments of `quantize`.
#[derive(Debug, Args)]
pub struct QuantizeArgs {
    /// File to quantize
    #[arg(value_name = "IN.safetensors")]
    pub input: PathBuf,
    /// File to write; an existing one is replaced when the new one is complete
    #[arg(value_name = "OUT.safetensors")]
    pub output: PathBuf,
    /// Who computes: embedded cubins (aot), PTX compiled by the driver (jit), or the CPU; auto is a GPU where one will do.
    /// Default: as the environment variable PTQ_BACKEND says, else auto
    #[arg(long, value_parser = one_of(&Backend::ALL, Backend::name))]
    pub backend: Option<Backend>,
    /// Arithmetic of the reference; auto is its policy for the device, precise without one
    #[arg(long, default_value = AUTO, value_parser = one_of(&MATH, math_name))]
    pub math: MathChoice,
    /// Rows whose scale is zero: bytes of the reference (legacy), or always zeros (guarded)
    #[arg(long, default_value = ZeroRows::Legacy.name(), value_parser = one_of(&ZeroRows::ALL, ZeroRows::name))]
    pub zero_rows: ZeroRows,
    /// Whose bytes legacy zero rows keep: those of the reference's warp or CTA kernel; auto is the reference's choice
    #[arg(long, default_value = Dispatch::Auto.name(), value_parser = one_of(&Dispatch::ALL, Dispatch::name))]
    pub dispatch: Dispatch,
    /// Multiprocessors of the chip whose threshold automatic dispatch follows; `None`: the device's
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..), help = format!(
        "Multiprocessors of the chip that --dispatch auto stands for; default: the device's, {DEFAULT_SM_COUNT} without one"
    ))]
    pub sm_count: Option<u32>,
    /// Quantize the 2-D f16, bf16 and f32 tensors whose name matches; `*` matches any characters. Repeatable
    #[arg(long, value_name = "GLOB", default_value = "*")]
    pub select: Vec<String>,
}

impl QuantizeArgs {
    /// Who computes: as the command line says, else as `PTQ_BACKEND` says, else [`Backend::Auto`].
    ///
    /// # Errors
    /// [`Error::Environment`] for a name in `PTQ_BACKEND` that no backend has, also beside `--backend`: whoever made the
    /// mistake hears of it on the first occasion.
    pub fn backend(&self) -> Result<Backend, Error> {
        let variable = Backend::of_environment().map_err(Error::Environment)?;
        Ok(self.backend.or(variable).unwrap_or_default())
    }
}

/// Arguments of `verify`.
#[derive(Debug, Args)]
pub struct VerifyArgs {
    /// File that was quantized
    #[arg(value_name = "IN.safetensors")]
    pub input: PathBuf,
    /// File that `quantize` wrote
    #[arg(value_name = "OUT.safetensors")]
    pub output: PathBuf,
}

/// A math mode, or `None` for the device's.
pub type MathChoice = Option<MathMode>;

const AUTO: &str = "auto";
const MATH: [MathChoice; 3] = [None, Some(MathMode::Fast), Some(MathMode::Precise)];

fn math_name(choice: MathChoice) -> &'static str {
    choice.map_or(AUTO, MathMode::name)
}

/// A parser that takes exactly the names of `all`.
fn one_of<T: Copy + Send + Sync + 'static>(
    all: &'static [T],
    name: fn(T) -> &'static str,
) -> impl TypedValueParser<Value = T> {
    PossibleValuesParser::new(all.iter().map(|&value| name(value)))
        .try_map(move |given| by_name(all, name, &given).ok_or_else(|| format!("unknown name `{given}`")))
}

/// The value of that name.
pub fn by_name<T: Copy>(all: &[T], name: fn(T) -> &'static str, given: &str) -> Option<T> {
    all.iter().copied().find(|&value| name(value) == given)
}

/// What the command line asks for.
#[derive(Debug)]
pub enum Parsed {
    /// Run this.
    Command(Command),
    /// Print this: help or version.
    Text(String),
}

/// Parses the command line, program name first.
///
/// # Errors
/// [`Error::Arguments`].
pub fn parse(args: impl IntoIterator<Item = OsString>) -> Result<Parsed, Error> {
    match Cli::try_parse_from(args) {
        Ok(cli) => Ok(Parsed::Command(cli.command)),
        Err(error) => {
            let text = error.render().to_string();
            match error.kind() {
                ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => Ok(Parsed::Text(text)),
                _ => Err(Error::Arguments(first_paragraph(&text))),
            }
        }
    }
}

/// clap's message without its `error: `, tips and usage, on one line.
fn first_paragraph(text: &str) -> String {
    let paragraph = text.split("\n\n").next().unwrap_or(text);
    let lines: Vec<_> = paragraph.lines().map(str::trim).collect();
    let line = lines.join(" ");
    line.strip_prefix("error: ").unwrap_or(&line).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(args: &[&str]) -> Result<Parsed, Error> {
        parse(std::iter::once("quant-fp8").chain(args.iter().copied()).map(OsString::from))
    }

    #[test]
    fn definition_is_consistent() {
        <Cli as clap::CommandFactory>::command().debug_assert();
    }

    #[test]
    fn defaults() {
        let Ok(Parsed::Command(Command::Quantize(args))) = parsed(&["quantize", "a", "b"]) else { panic!() };
        assert_eq!((args.backend, args.math, args.sm_count), (None, None, None));
        assert_eq!(
            (args.zero_rows, args.dispatch, args.select),
            (ZeroRows::Legacy, Dispatch::Auto, vec!["*".to_owned()])
        );
    }

    #[test]
    fn given_patterns_replace_the_default() {
        let Ok(Parsed::Command(Command::Quantize(args))) =
            parsed(&["quantize", "a", "b", "--select", "x*", "--math", "fast", "--select", "y"])
        else {
            panic!()
        };
        assert_eq!(args.select, ["x*", "y"]);
        assert_eq!(args.math, Some(MathMode::Fast));
    }

    #[test]
    fn complaints_are_one_line() {
        for args in [
            &["quantize"][..],
            &[],
            &["nonsense"],
            &["quantize", "a", "b", "--math", "quick"],
            &["quantize", "a", "b", "--sm-count", "0"],
            &["quantize", "a", "b", "--bakend", "cpu"],
            &["info", "extra"],
        ] {
            let Err(Error::Arguments(text)) = parsed(args) else { panic!("{args:?} was accepted") };
            assert!(!text.is_empty() && !text.contains('\n') && !text.starts_with("error"), "{args:?}: {text}");
        }
    }
}
