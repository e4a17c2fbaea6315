//! The suite on a GPU, and what only a GPU can show.
//!
//! Without a driver or a device every test is reported as ignored, with the reason; with `PTQ_REQUIRE_GPU=1` it fails.
//! `PTQ_TARGET` leaves the variations of one target; `PTQ_ARTIFACTS` is honoured as everywhere. `PTQ_REFERENCE` names the
//! folder of the reference's cubins, by default `target/reference`. `PTQ_SHORT=1` runs the suite's short form alone.
//! `PTQ_TEST_CHILD` is for the tests that run themselves again in a process of their own.

mod allocations;
mod backend;
mod bare;
mod chain;
mod child;
mod contexts;
mod counted;
mod entries;
mod errors;
mod events;
mod form;
mod graph;
mod large;
mod loading;
mod neighbours;
mod per_tensor;
mod reference;
mod sglang;
mod streams;
mod subject;
mod suite;
mod variation;
mod vllm;

use form::Form;
use libtest_mimic::{Arguments, Completion, Failed, Trial};
use per_token_quant_fp8::cust::context::{Context, CurrentContext};
use per_token_quant_fp8::cust::device::Device;
use per_token_quant_fp8::{DeviceInfo, Error, probe};
use std::process::ExitCode;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

/// What a test returns; every error fails it.
type Outcome = Result<(), Box<dyn std::error::Error>>;

/// Why a test cannot run even with a device, if so.
type Skip = Result<Option<String>, Box<dyn std::error::Error>>;

/// One test, run with the device's context current.
struct Test {
    name: String,
    run: Box<dyn FnOnce() -> Outcome + Send>,
    skip: Box<dyn FnOnce() -> Skip + Send>,
}

impl Test {
    fn new(name: impl Into<String>, run: impl FnOnce() -> Outcome + Send + 'static) -> Self {
        Self { name: name.into(), run: Box::new(run), skip: Box::new(|| Ok(None)) }
    }

    fn skip_if(self, skip: bool, reason: &'static str) -> Self {
        if skip { self.skip_when(|| Ok(Some(reason.to_owned()))) } else { self }
    }

    fn skip_when(self, skip: impl FnOnce() -> Skip + Send + 'static) -> Self {
        Self { skip: Box::new(skip), ..self }
    }

    fn trial(self) -> Trial {
        Trial::ignorable_test(self.name, move || {
            enter()?;
            if let Some(reason) = (self.skip)()? {
                return Ok(Completion::ignored_with(reason));
            }
            (self.run)()?;
            Ok(Completion::Completed)
        })
    }
}

/// The primary context of the device, kept for the life of the process.
static CONTEXT: OnceLock<Context> = OnceLock::new();

/// Makes the device's context current on this thread.
fn enter() -> Outcome {
    CurrentContext::set_current(CONTEXT.get().ok_or("there is no context")?)?;
    Ok(())
}

/// Taken by a test that needs gigabytes, so that one runs at a time.
fn heavy() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    // One that failed leaves nothing behind.
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The device that the tests run on.
fn open() -> Result<DeviceInfo, Error> {
    let mut devices = probe()?.devices;
    let device = devices.remove(0);
    CONTEXT.get_or_init(|| {
        let device = Device::get_device(device.ordinal as u32).expect("the driver listed the device");
        Context::new(device).expect("a device has a primary context")
    });
    Ok(device)
}

fn main() -> ExitCode {
    let others = [backend::CHILDREN, streams::CHILDREN, contexts::CHILDREN, counted::CHILDREN];
    let children = [&others.concat(), chain::CHILDREN, per_tensor::CHILDREN].concat();
    if let Some(code) = child::run(&children) {
        return code;
    }
    let arguments = Arguments::from_args();
    let required = std::env::var("PTQ_REQUIRE_GPU").is_ok_and(|v| !["", "0"].contains(&v.as_str()));
    let trials = match open() {
        Ok(device) => {
            println!("device {device}");
            tests(&device).into_iter().map(Test::trial).collect()
        }
        Err(reason) => {
            println!("no test can run: {reason}");
            let skip = match reason {
                _ if required => None,
                Error::NoDriver { .. } => Some("no CUDA driver"),
                Error::NoDevice { .. } => Some("no CUDA device"),
                _ => None,
            };
            let reason = reason.to_string();
            absent(move || match skip {
                Some(short) => Ok(Completion::ignored_with(short)),
                None => Err(Failed::from(&reason)),
            })
        }
    };
    libtest_mimic::run(&arguments, trials).exit_code()
}

/// The tests by name, with one answer for all.
fn absent(answer: impl Fn() -> Result<Completion, Failed> + Clone + Send + 'static) -> Vec<Trial> {
    // Any device will do to list them: that of the reference's recordings.
    let device = DeviceInfo {
        ordinal: 0,
        name: String::new(),
        capability: per_token_quant_fp8::MathMode::FAST_CAPABILITY,
        sm_count: per_token_quant_fp8::spec::per_token::DEFAULT_SM_COUNT,
    };
    tests(&device).into_iter().map(|test| Trial::ignorable_test(test.name, answer.clone())).collect()
}

fn tests(device: &DeviceInfo) -> Vec<Test> {
    let form = Form::of_environment();
    let variations = variation::all(device, form);
    let suite = suite::tests(&variations, form).into_iter().chain(entries::tests(&variations, form));
    let suite = suite.chain(per_tensor::tests(&variations, form));
    if form == Form::Short {
        return suite.collect();
    }
    suite
        .chain(reference::tests(device))
        .chain(large::tests())
        .chain(per_tensor::others())
        .chain(errors::tests())
        .chain(loading::tests(&variations))
        .chain(backend::tests())
        .chain(streams::tests())
        .chain(chain::tests(device, &variations))
        .chain(contexts::tests())
        .chain(counted::tests())
        .collect()
}
