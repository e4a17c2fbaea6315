//! Any command line, its arguments separated by NUL: one complaint, text to print, or a command whose options resolve to
//! a recipe that its record gives back and that the program runs with.

#![no_main]

use libfuzzer_sys::fuzz_target;
use per_token_quant_fp8::spec::per_token::DEFAULT_SM_COUNT;
use per_token_quant_fp8::spec::{ComputeCapability, TARGETS};
use per_token_quant_fp8::{Backend, DeviceInfo, MathMode};
use ptq_fuzz::program::Folder;
use quant_fp8::args::{Command, Parsed, QuantizeArgs, parse};
use quant_fp8::record::Recipe;
use quant_fp8::{Error, backend, quantize, verify};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// A file of bf16 `w`[4, 8] and u8 `ids`[3].
const FILE: &[u8] = include_bytes!("../seeds/safetensors/small");

/// Keys of the record.
const KEYS: [&str; 5] = ["ptq.math", "ptq.dispatch", "ptq.zero_rows", "ptq.sm_count", "ptq.select"];

fuzz_target!(|line: &[u8]| {
    let args: Vec<&OsStr> = line.split(|&byte| byte == 0).map(OsStr::from_bytes).collect();
    match parse(["quant-fp8".into()].into_iter().chain(args.iter().copied().map(OsString::from))) {
        Ok(Parsed::Text(text)) => assert!(!text.is_empty()),
        Ok(Parsed::Command(Command::Quantize(args))) => run(args),
        Ok(Parsed::Command(Command::Info | Command::Verify(_))) => {}
        Err(Error::Arguments(text)) => assert!(!text.is_empty() && !text.contains('\n'), "{text}"),
        Err(error) => panic!("{error}"),
    }
    read_record(&args);
});

fn run(mut args: QuantizeArgs) {
    assert!(args.sm_count != Some(0) && !args.select.is_empty());
    let devices = TARGETS.iter().map(|target| DeviceInfo {
        ordinal: 0,
        name: "a device".to_owned(),
        capability: target.capability,
        sm_count: 7,
    });
    for device in devices.map(Some).chain([None]) {
        let recipe = backend::recipe(&args, device.as_ref());
        let fast = device.as_ref().is_some_and(|device| device.capability == ComputeCapability(9, 0));
        let math = if fast { MathMode::Fast } else { MathMode::Precise };
        assert_eq!(recipe.params.math, args.math.unwrap_or(math));
        assert_eq!(
            recipe.params.sm_count,
            args.sm_count.unwrap_or(device.map_or(DEFAULT_SM_COUNT, |device| device.sm_count))
        );
        assert_eq!(Recipe::read(&recipe.entries(), Path::new("")).expect("a record"), recipe);
    }
    // Nothing is left to a device, and no file but these is touched.
    let folder = Folder::new(FILE);
    (args.input, args.output) = (folder.input.clone(), folder.output.clone());
    args.backend = Some(Backend::Cpu);
    args.math.get_or_insert(MathMode::Precise);
    args.sm_count.get_or_insert(DEFAULT_SM_COUNT);
    match quantize::run(&args) {
        Ok(()) => {
            let args = quant_fp8::args::VerifyArgs { input: args.input, output: args.output };
            assert!(matches!(verify::run(&args), Ok(verify::Outcome::Same(_))));
        }
        Err(error) => {
            assert!(matches!(error, Error::NothingMatches { .. } | Error::NothingEligible { .. }), "{error}");
            assert_eq!(folder.names(), ["in"]);
        }
    }
}

/// The arguments as values of a record: understood or refused, and what is understood is recorded with its meaning.
fn read_record(values: &[&OsStr]) {
    let values = values.iter().map(|value| value.to_string_lossy().into_owned());
    let metadata = KEYS.iter().map(|&key| key.to_owned()).zip(values).collect();
    match Recipe::read(&metadata, Path::new("")) {
        Ok(recipe) => assert_eq!(Recipe::read(&recipe.entries(), Path::new("")).expect("a record"), recipe),
        Err(error) => assert!(matches!(error, Error::NoRecord { .. } | Error::BadRecord { .. }), "{error}"),
    }
}
