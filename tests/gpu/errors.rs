//! Errors that take a device to be seen. The others are tested beside the code.

use crate::{Outcome, Test, enter};
use per_token_quant_fp8::cust::context::legacy;
use per_token_quant_fp8::cust::device::Device;
use per_token_quant_fp8::cust::memory::{CopyDestination, DeviceBuffer, DevicePointer, DeviceSlice};
use per_token_quant_fp8::spec::per_token::{Entry, Strategy};
use per_token_quant_fp8::{
    Backend, Element, Error, MathMode, Options, Plan, PlanError, Quantizer, RawArgs, Shape, ShapeError, quantizer,
};
use std::ptr;

const ROWS: usize = 3;
const HIDDEN: usize = 64;

/// Buffers of one call.
struct Buffers {
    x: DeviceBuffer<f32>,
    q: DeviceBuffer<u8>,
    s: DeviceBuffer<f32>,
}

impl Buffers {
    fn new() -> Result<Self, Box<dyn std::error::Error>> {
        Ok(Self {
            x: DeviceBuffer::zeroed(ROWS * HIDDEN)?,
            q: DeviceBuffer::zeroed(ROWS * HIDDEN)?,
            s: DeviceBuffer::zeroed(ROWS)?,
        })
    }
}

fn shape() -> Result<Shape, ShapeError> {
    Shape::new(ROWS as u64, HIDDEN as u64)
}

/// A quantizer in the mode that every target has.
pub fn precise() -> Result<Quantizer, Error> {
    quantizer()?.with_math(MathMode::Precise)
}

/// Fails unless `result` is an error of the kind that `is` says.
pub fn expect<T>(what: &str, result: Result<T, Error>, is: impl FnOnce(&Error) -> bool) -> Outcome {
    match result {
        Err(error) if is(&error) => Ok(()),
        Err(error) => Err(format!("{what}: another error: {error}").into()),
        Ok(_) => Err(format!("{what}: no error").into()),
    }
}

pub fn tests() -> Vec<Test> {
    vec![
        Test::new("errors::lengths", lengths),
        Test::new("errors::overlap", overlap),
        Test::new("errors::misaligned", misaligned),
        Test::new("errors::host_memory", host_memory),
        Test::new("errors::no_context", no_context),
        Test::new("errors::another_context", another_context),
        Test::new("errors::forced_plan", forced_plan),
        Test::new("errors::fast_math", fast_math),
        Test::new("errors::no_rows_ask_for_nothing", no_rows_ask_for_nothing),
        Test::new("errors::refusals_write_nothing", refusals_write_nothing),
    ]
}

fn lengths() -> Outcome {
    let Buffers { x, mut q, mut s } = Buffers::new()?;
    let quantizer = precise()?;
    let longer = Shape::padded(ROWS as u64, ROWS as u64 + 1, HIDDEN as u64)?;
    let prepared = quantizer.prepare(&x, &mut q, &mut s, longer, Options::default());
    expect("q too short", prepared, |e| matches!(e, Error::Shape(ShapeError::Len { operand: "q", .. })))?;
    // SAFETY: nothing is launched, here and below.
    let prepared = unsafe { quantizer.prepare_slices(*x, *q, s.index(1..), shape()?, Options::default()) };
    expect("s too short", prepared, |e| matches!(e, Error::Shape(ShapeError::Len { operand: "s", .. })))
}

fn overlap() -> Outcome {
    let Buffers { x, q, .. } = Buffers::new()?;
    // The last scales of x's own memory.
    let inside = x.index(ROWS * HIDDEN - ROWS..);
    // SAFETY: nothing is launched.
    let prepared = unsafe { precise()?.prepare_slices(*x, *q, inside, shape()?, Options::default()) };
    expect("s inside x", prepared, |e| matches!(e, Error::Shape(ShapeError::Overlap { operand: "x", other: "s", .. })))
}

fn misaligned() -> Outcome {
    let Buffers { x, q, s } = Buffers::new()?;
    let (x, q, s) = (x.as_device_ptr().as_raw(), q.as_device_ptr().as_raw(), s.as_device_ptr().as_raw());
    let aligned = RawArgs::new(Element::F32, x, q, s, Shape::new(1, HIDDEN as u64)?);
    let quantizer = precise()?;
    for (operand, args) in
        [("x", RawArgs { x: aligned.x + 2, ..aligned }), ("s", RawArgs { s: aligned.s + 2, ..aligned })]
    {
        // SAFETY: one row from two bytes on lies within the three rows of each buffer, which nobody else uses.
        let result = unsafe { quantizer.quantize_raw(args, ptr::null_mut()) };
        let is = |e: &Error| matches!(e, Error::Shape(ShapeError::Misaligned { operand: o, .. }) if *o == operand);
        expect(operand, result, is)?;
    }
    Ok(())
}

fn host_memory() -> Outcome {
    let Buffers { x, q, s } = Buffers::new()?;
    let quantizer = precise()?;
    let host = vec![0.0_f32; ROWS * HIDDEN];
    let address = host.as_ptr() as u64;
    // SAFETY: nothing reads through it: the runtime has to find out first.
    let as_device = unsafe { DeviceSlice::from_raw_parts(DevicePointer::<f32>::from_raw(address), ROWS * HIDDEN) };
    // SAFETY: nothing is launched, here and below.
    let prepared = unsafe { quantizer.prepare_slices(as_device, *q, *s, shape()?, Options::default()) };
    let expected = Error::NotDeviceMemory { operand: "x", address };
    expect("x on the host", prepared, |e| *e == expected)?;
    let as_scales = as_device.index(..ROWS);
    // SAFETY: as above.
    let prepared = unsafe { quantizer.prepare_slices(*x, *q, as_scales, shape()?, Options::default()) };
    let expected = Error::NotDeviceMemory { operand: "s", address };
    expect("s on the host", prepared, |e| *e == expected)
}

fn no_context() -> Outcome {
    let quantizer = precise()?;
    let results = std::thread::scope(|scope| {
        let elsewhere = scope.spawn(|| {
            let args = RawArgs::new(Element::F32, 1 << 20, 2 << 20, 3 << 20, Shape::new(1, 4)?);
            // SAFETY: nothing is launched without a context.
            let raw = unsafe { quantizer.quantize_raw(args, ptr::null_mut()) };
            Ok::<_, Error>((precise().map(|_| ()), raw))
        });
        elsewhere.join()
    });
    let (new, raw) = results.map_err(|_| "the thread panicked")??;
    expect("new", new, |e| *e == Error::NoContext)?;
    expect("raw", raw, |e| *e == Error::NoContext)
}

fn another_context() -> Outcome {
    let Buffers { x, mut q, mut s } = Buffers::new()?;
    let quantizer = precise()?;
    let ordinal = quantizer.device().ordinal as u32;
    // Becomes current on this thread.
    let another = legacy::Context::create_and_push(legacy::ContextFlags::empty(), Device::get_device(ordinal)?)?;
    let prepared = quantizer.prepare(&x, &mut q, &mut s, shape()?, Options::default());
    let outcome = expect("prepare", prepared, |e| matches!(e, Error::ContextMismatch { .. }));
    drop(another);
    enter()?;
    outcome
}

fn forced_plan() -> Outcome {
    let Buffers { x, mut q, mut s } = Buffers::new()?;
    let entry = Entry::find(Strategy::Warp, 4, 1).ok_or("the entry exists")?;
    let long = DeviceBuffer::<f32>::zeroed(256)?;
    let mut long_q = DeviceBuffer::<u8>::zeroed(256)?;
    let quantizer = precise()?.with_plan(Plan::new(entry, 32))?;
    let mut one = DeviceBuffer::<f32>::zeroed(1)?;
    let prepared = quantizer.prepare(&long, &mut long_q, &mut one, Shape::new(1, 256)?, Options::default());
    expect("a row too long", prepared, |e| matches!(e, Error::Plan(PlanError::RowTooLong { .. })))?;
    let prepared = quantizer.prepare(&x, &mut q, &mut s, shape()?, Options::default())?;
    let plan = prepared.plan().ok_or("there are rows")?.plan;
    if plan == Plan::new(entry, 32) { Ok(()) } else { Err(format!("another plan: {plan:?}").into()) }
}

fn fast_math() -> Outcome {
    let quantizer = quantizer()?;
    let proved = quantizer.device().math() == MathMode::Fast;
    match quantizer.with_math(MathMode::Fast) {
        Ok(_) if proved => Ok(()),
        Err(Error::UnsupportedMath { .. }) if !proved => Ok(()),
        other => Err(format!("{other:?}").into()),
    }
}

fn no_rows_ask_for_nothing() -> Outcome {
    // Without a context, by addresses of nothing.
    let quantizer = precise()?;
    let args = RawArgs::new(Element::Bf16, 0, 1 << 20, 2 << 20, Shape::padded(0, 7, 8)?);
    let elsewhere = std::thread::scope(|scope| {
        // SAFETY: there are no rows to touch.
        scope.spawn(|| unsafe { quantizer.quantize_raw(args, ptr::null_mut()) }).join()
    });
    Ok(elsewhere.map_err(|_| "the thread panicked")??)
}

/// Whatever the raw entry refuses leaves every byte of the outputs as it was.
fn refusals_write_nothing() -> Outcome {
    const POISON: u8 = 0xFF;
    const BYTES: usize = ROWS * HIDDEN * 4;
    // Both outputs and the input in one block, so that they can be made to overlap.
    let block = DeviceBuffer::from_slice(&[POISON; 3 * BYTES])?;
    let x = block.as_device_ptr().as_raw();
    let (q, s) = (x + BYTES as u64, x + 2 * BYTES as u64);
    let good = RawArgs::new(Element::F32, x, q, s, shape()?);
    let quantizer = precise()?;
    let narrow = Plan::new(Entry::find(Strategy::Warp, 4, 1).ok_or("the entry exists")?, 32);
    let refused: [(&str, Quantizer, RawArgs); _] = [
        ("x misaligned", quantizer.clone(), RawArgs { x: x + 2, ..good }),
        ("s misaligned", quantizer.clone(), RawArgs { s: s + 2, ..good }),
        ("q in x", quantizer.clone(), RawArgs { q: x + BYTES as u64 - 1, ..good }),
        ("s in q", quantizer.clone(), RawArgs { s: q, ..good }),
        ("a backend of host memory", quantizer.clone().with_backend(Backend::Cpu), good),
        ("q misaligned for the forced entry", quantizer.with_plan(narrow)?, RawArgs { q: q + 1, ..good }),
    ];
    for (what, quantizer, args) in refused {
        // SAFETY: every access, were there one, is within `block`, which nobody else uses.
        let result = unsafe { quantizer.quantize_raw(args, ptr::null_mut()) };
        expect(what, result, |e| matches!(e, Error::Shape(_) | Error::Plan(_) | Error::CpuBackend))?;
    }
    let mut bytes = vec![0; 3 * BYTES];
    // In the default stream, after whatever was launched there.
    block.copy_to(&mut bytes)?;
    match bytes.iter().position(|&byte| byte != POISON) {
        Some(at) => Err(format!("byte {at} was written").into()),
        None => Ok(()),
    }
}
