//! From a new quantizer to the end of its first kernel, in a process that has used the device before, but no kernel of ours.

use crate::BoxError;
use crate::operands::Operands;
use per_token_quant_fp8::{Backend, Bf16, Element, F16, GpuElement, cust, quantizer};
use std::env;
use std::process::Command;
use std::time::Instant;

/// Tells a child what to measure: backend and element type.
const VARIABLE: &str = "PTQ_FIRST_USE";

/// Milliseconds, in a process of its own.
pub fn millis(backend: Backend, element: Element) -> Result<f64, BoxError> {
    let child = Command::new(env::current_exe()?)
        .env(VARIABLE, format!("{backend} {element}"))
        // What the driver compiled for an earlier process would do for the next.
        .env("CUDA_CACHE_DISABLE", "1")
        .output()?;
    let (said, errors) = (String::from_utf8_lossy(&child.stdout), String::from_utf8_lossy(&child.stderr));
    match said.trim().parse() {
        Ok(millis) if child.status.success() => Ok(millis),
        _ => Err(format!("{backend} {element}: {}\n{said}{errors}", child.status).into()),
    }
}

/// In a child, measures and prints.
pub fn child() -> Option<Result<(), BoxError>> {
    env::var(VARIABLE).ok().map(|what| {
        let (backend, element) = what.split_once(' ').ok_or("not two words")?;
        let backend = backend.parse()?;
        match Element::ALL.into_iter().find(|e| e.name() == element).ok_or("not an element type")? {
            Element::F16 => measure(backend, F16(half::f16::ONE)),
            Element::Bf16 => measure(backend, Bf16(half::bf16::ONE)),
            Element::F32 => measure(backend, 1.0_f32),
        }
    })
}

fn measure<T: GpuElement>(backend: Backend, one: T) -> Result<(), BoxError> {
    let _context = cust::quick_init()?;
    let operands = Operands::new(one)?;
    let start = Instant::now();
    let quantizer = quantizer()?.with_backend(backend);
    // SAFETY: the operands outlive the stream's work, for which the next line waits, and nobody else has them.
    unsafe { quantizer.quantize_raw(operands.args(), operands.stream.as_inner()) }?;
    operands.stream.synchronize()?;
    let millis = start.elapsed().as_secs_f64() * 1e3;
    operands.check(quantizer.math())?;
    println!("{millis}");
    Ok(())
}
