//! The choice of a backend, by argument and by the environment.

use crate::bare::Bare;
use crate::child::Body;
use crate::errors::{expect, precise};
use crate::{Outcome, Test, child, enter, open};
use per_token_quant_fp8::cust::stream::{Stream, StreamFlags};
use per_token_quant_fp8::{Backend, Element, Error, Executor, Kernel, MathMode, quantizer};

/// What runs in processes of their own.
pub const CHILDREN: &[Body] = &[
    Body { name: "backend::environment_jit", variable: Some(("PTQ_BACKEND", "jit")), run: environment_jit },
    Body { name: "backend::environment_cpu", variable: Some(("PTQ_BACKEND", "cpu")), run: environment_cpu },
    Body { name: "backend::environment_unknown", variable: Some(("PTQ_BACKEND", "gpu")), run: environment_unknown },
];

pub fn tests() -> Vec<Test> {
    let mut tests = vec![Test::new("backend::executor", executor)];
    tests.extend(CHILDREN.iter().map(child::test));
    tests
}

/// On the device the executor is the quantizer, and beside it the CPU computes the device's bits.
fn executor() -> Outcome {
    let on_device = Executor::new(Some(Backend::Auto))?;
    let quantizer = match &on_device {
        Executor::Gpu(quantizer) => quantizer.clone(),
        Executor::Cpu { .. } => return Err("there is a device, and Auto took the CPU".into()),
    };
    let on_cpu = Executor::new(Some(Backend::Cpu))?;
    if (on_cpu.backend(), on_cpu.math(), on_cpu.sm_count()) != (Backend::Cpu, quantizer.math(), quantizer.sm_count()) {
        return Err(format!("the CPU has other bits than the device: {on_cpu:?}").into());
    }
    // The mode that every target has.
    let (on_device, quantizer) = (on_device.with_math(MathMode::Precise)?, quantizer.with_math(MathMode::Precise)?);
    on_device.load(Kernel::PerToken, Element::F32)?;
    let stream = Stream::new(StreamFlags::NON_BLOCKING, None)?;
    let mut bare = Bare::new(65, 1368)?;
    // SAFETY: the stream lives in this function; the context is the tests', here and below.
    unsafe { bare.fill(7, stream.as_inner()) }?;
    // SAFETY: the buffers have the size of the shape, and are used in this stream alone.
    unsafe { on_device.quantize_raw(bare.args(), stream.as_inner()) }?;
    // SAFETY: as above.
    unsafe { bare.check(&quantizer, stream.as_inner()) }
}

fn in_context() -> Outcome {
    open()?;
    enter()
}

/// What ran for a call.
fn ran(quantizer: &per_token_quant_fp8::Quantizer) -> Result<Backend, Box<dyn std::error::Error>> {
    let choice = quantizer.choose(&Bare::new(3, 64)?.args())?;
    Ok(choice.ok_or("there are rows")?.backend)
}

fn equal<T: PartialEq + std::fmt::Debug>(what: &str, actual: T, expected: T) -> Outcome {
    if actual == expected { Ok(()) } else { Err(format!("{what} is {actual:?}, expected {expected:?}").into()) }
}

fn environment_jit() -> Outcome {
    in_context()?;
    equal("what the variable chose", ran(&precise()?)?, Backend::Jit)?;
    equal("the executor's", Executor::new(None)?.backend(), Backend::Jit)?;
    equal("the executor's by argument", Executor::new(Some(Backend::Auto))?.backend(), Backend::Auto)?;
    equal("the quantizer's by argument", precise()?.with_backend(Backend::Aot).backend(), Backend::Aot)
}

fn environment_cpu() -> Outcome {
    in_context()?;
    equal("the executor's", Executor::new(None)?.backend(), Backend::Cpu)?;
    expect("load", precise()?.load(Kernel::PerToken, Element::F32), |e| *e == Error::CpuBackend)?;
    let bare = Bare::new(3, 64)?;
    // SAFETY: the null stream is the context's.
    let launched = unsafe { bare.quantize(&precise()?, std::ptr::null_mut()) };
    expect("a call", launched, |e| *e == Error::CpuBackend)?;
    equal("what the argument chose", ran(&precise()?.with_backend(Backend::Jit))?, Backend::Jit)
}

fn environment_unknown() -> Outcome {
    in_context()?;
    let is = |e: &Error| *e == Error::UnknownBackend { name: "gpu".to_owned() };
    expect("a quantizer", quantizer(), is)?;
    expect("an executor", Executor::new(None), is)
}
