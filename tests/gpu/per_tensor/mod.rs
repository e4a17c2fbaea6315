//! Per-tensor quantization: its suite through every variation, and what only a GPU can show of it.

mod large;
mod serving;
mod streams;
mod subject;

pub use streams::CHILDREN;

use crate::errors::{expect, precise};
use crate::form::Form;
use crate::variation::Variation;
use crate::{Outcome, Test};
use per_token_quant_fp8::cust::memory::{DeviceBuffer, DevicePointer, DeviceSlice};
use per_token_quant_fp8::{Error, Quantizer, Scale, ShapeError, ZeroRows};
use ptq_suite::per_tensor::{Call, FAMILIES, cases, run};
use ptq_suite::{Budget, Oracle};
use std::num::NonZeroU32;
use subject::Subject;

/// Of what is repeated with other ways to launch.
const SMALL: Budget = Budget { rows: usize::MAX, elements: 1 << 17 };

/// The suite.
pub fn tests(variations: &[Variation], form: Form) -> Vec<Test> {
    let mut tests = Vec::new();
    for variation in variations {
        for family in FAMILIES {
            let v = variation.clone();
            tests.push(Test::new(format!("{}::per_tensor_{}", v.name(), family.name), move || {
                let calls = of(&v, family.calls(form.budget()));
                run(&Subject::new(&v)?, Oracle::Rayon, form.some(calls))?;
                Ok(())
            }));
        }
        let small = || cases::sizes(SMALL).chain(cases::off_alignment(SMALL)).chain(cases::largest_at_each_part(SMALL));
        let v = variation.clone();
        tests.push(Test::new(format!("{}::per_tensor_raw_entry", v.name()), move || {
            run(&Subject::new(&v)?.raw(), Oracle::Rayon, form.some(of(&v, small())))?;
            Ok(())
        }));
        for ctas in [1, 3] {
            let v = variation.clone();
            tests.push(Test::new(format!("{}::per_tensor_grids_of_{ctas}", v.name()), move || {
                let limit = NonZeroU32::new(ctas).ok_or("it is not zero")?;
                let limited = |quantizer: Quantizer| quantizer.with_grid_limit(limit);
                run(&Subject::new(&v)?.map(limited), Oracle::Rayon, form.some(of(&v, small())))?;
                Ok(())
            }));
        }
    }
    tests
}

/// What the suite does not hold.
pub fn others() -> Vec<Test> {
    let mut tests = vec![Test::new("per_tensor::errors", errors)];
    tests.extend(streams::tests());
    tests.extend(serving::tests());
    tests.extend(large::tests());
    tests
}

/// The calls of the variation's math modes.
fn of(variation: &Variation, calls: impl Iterator<Item = Call>) -> impl Iterator<Item = Call> {
    calls.filter(|call| variation.math.contains(&call.math))
}

fn errors() -> Outcome {
    let quantizer = precise()?;
    let x = DeviceBuffer::<f32>::zeroed(8)?;
    let (mut q, mut s) = (DeviceBuffer::<u8>::zeroed(8)?, DeviceBuffer::<f32>::zeroed(1)?);
    let (scale, zero_scale) = (Scale::Dynamic, ZeroRows::Legacy);
    let mut long = DeviceBuffer::<u8>::zeroed(9)?;
    expect("another length of q", quantizer.prepare_per_tensor(&x, &mut long, &mut s, scale, zero_scale), |e| {
        *e == Error::Shape(ShapeError::Len { kernel: "per_tensor", operand: "q", expected: 8, actual: 9 })
    })?;
    let mut two = DeviceBuffer::<f32>::zeroed(2)?;
    expect("two scales", quantizer.prepare_per_tensor(&x, &mut q, &mut two, scale, zero_scale), |e| {
        *e == Error::Shape(ShapeError::Len { kernel: "per_tensor", operand: "s", expected: 1, actual: 2 })
    })?;
    let host = [0.0_f32; 8];
    let pointer = DevicePointer::from_raw(host.as_ptr() as u64);
    // SAFETY: nothing reads through the address: the call is refused.
    let host = unsafe { DeviceSlice::from_raw_parts(pointer, host.len()) };
    // SAFETY: the buffers live in this function, and nobody else has them.
    let prepared = unsafe { quantizer.prepare_per_tensor_slices::<f32>(host, *q, *s, scale, zero_scale) };
    expect("host memory", prepared, |e| matches!(e, Error::NotDeviceMemory { operand: "x", .. }))
}
