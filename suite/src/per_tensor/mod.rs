//! The suite of per-tensor quantization: its own kind of call, the same buffers, poison and comparison.
//!
//! Whoever quantizes implements [`PerTensor`] and passes the cases of every family of [`FAMILIES`] through [`run`];
//! [`for_each_per_tensor_family`](crate::for_each_per_tensor_family) stamps one test per family.

mod call;
pub mod cases;
pub mod cpu;
mod family;

pub use call::{Call, GivenScale};
pub use family::{FAMILIES, Family};

use crate::check::{MAX_FAILURES, compare};
use crate::{Failure, Failures, Oracle, Output, Place, Reason};
use ptq_spec::{Scale, ShapeError};
use std::error::Error;

/// Something that quantizes by one scale for a tensor.
pub trait PerTensor {
    /// What failures call it.
    fn name(&self) -> String;

    /// Quantizes `call.x` into `out.q`, by the scale in `out.s` or by that which it puts there, as `call.scale` says,
    /// touching nothing else of the buffers.
    ///
    /// # Errors
    /// Whatever keeps it from doing so; the call has failed then.
    fn quantize(&self, call: &Call, out: &mut Output) -> Result<(), Box<dyn Error>>;
}

/// Runs every call and returns how many there were.
///
/// # Errors
/// The failures, of which there are none when there was no call.
pub fn run(
    implementation: &dyn PerTensor,
    oracle: Oracle,
    calls: impl IntoIterator<Item = Call>,
) -> Result<usize, Failures> {
    let mut result = Failures { implementation: implementation.name(), cases: 0, failures: Vec::new() };
    for call in calls {
        result.cases += 1;
        if let Err(failure) = check(implementation, oracle, &call) {
            result.failures.push(failure);
            if result.failures.len() == MAX_FAILURES {
                break;
            }
        }
    }
    if result.cases > 0 && result.failures.is_empty() { Ok(result.cases) } else { Err(result) }
}

/// Runs one call.
///
/// # Errors
/// The first way in which it failed.
pub fn check(implementation: &dyn PerTensor, oracle: Oracle, call: &Call) -> Result<(), Failure> {
    let failure = |kernel, reason| Failure { case: call.name.clone(), kernel, reason };
    let expected = expected(oracle, call).map_err(|error| failure(None, Reason::BrokenCase(error)))?;
    let mut actual = expected.clone();
    poison(call, &mut actual);
    let ran = implementation.quantize(call, &mut actual).map_err(Reason::Refused);
    ran.and_then(|()| compare("s", &expected.s, &actual.s, f32::to_bits, |index| place(call, "s", index)))
        .and_then(|()| compare("q", &expected.q, &actual.q, u32::from, |index| place(call, "q", index)))
        .map_err(|reason| failure(actual.kernel, reason))
}

/// What the output buffers must hold in the end.
fn expected(oracle: Oracle, call: &Call) -> Result<Output, ShapeError> {
    let mut out = call.output();
    match oracle {
        Oracle::Scalar => cpu::scalar(call, &mut out)?,
        Oracle::Rayon => cpu::fast(call, &mut out)?,
    }
    Ok(out)
}

/// Complements every bit that the call makes up. The complement of a scale is negative: a scale that is not set to zero
/// before it is raised stays wrong, whether bits are compared with their sign or without.
fn poison(call: &Call, out: &mut Output) {
    if call.elements() == 0 {
        return;
    }
    for code in out.q.operand_mut() {
        *code = !*code;
    }
    if call.scale.source() == Scale::Dynamic {
        for scale in out.s.operand_mut() {
            *scale = f32::from_bits(!scale.to_bits());
        }
    }
}

/// What lies at `index` elements from the start of an output.
fn place(call: &Call, operand: &'static str, index: isize) -> Place {
    let codes = operand == "q";
    let elements = if codes { call.elements() } else { 1 };
    match usize::try_from(index) {
        Ok(element) if element < elements => Place::Row {
            row: 0,
            column: codes.then_some(element),
            kind: String::new(),
            x: codes.then(|| call.x.bits(element)),
        },
        _ => Place::Guard { index },
    }
}
