//! Several contexts of one device, contexts that end, and one that a kernel broke.

use crate::bare::Bare;
use crate::child::Body;
use crate::errors::{expect, precise};
use crate::events::{Count, LOADED};
use crate::{Outcome, Test, child, enter, open};
use per_token_quant_fp8::cust::context::legacy::{Context, ContextFlags, CurrentContext};
use per_token_quant_fp8::cust::device::Device;
use per_token_quant_fp8::cust::error::CudaError;
use per_token_quant_fp8::cust::memory::DeviceBuffer;
use per_token_quant_fp8::cust::module::Module;
use per_token_quant_fp8::cust::stream::{Stream, StreamFlags};
use per_token_quant_fp8::cust::{launch, sys};
use per_token_quant_fp8::{Element, Error, Kernel, Options, Quantizer, Shape};
use std::error;
use std::ptr;

/// A kernel that writes to address 0.
const BREAKS: &str = "
.version 7.0
.target sm_80
.address_size 64
.visible .entry breaks()
{
    .reg .b64 %address;
    mov.u64 %address, 0;
    st.global.u32 [%address], 1;
    ret;
}
";

/// What runs in a process of its own.
pub const CHILDREN: &[Body] = &[Body { name: "contexts::broken_by_a_kernel", variable: None, run: broken_by_a_kernel }];

pub fn tests() -> Vec<Test> {
    let mut tests = vec![
        Test::new("contexts::two_at_once", two_at_once),
        Test::new("contexts::one_after_the_other", one_after_the_other),
        Test::new("contexts::memory_of_another", memory_of_another),
    ];
    tests.extend(CHILDREN.iter().map(child::test));
    tests
}

/// A new context of the tests' device, current on this thread.
fn create(ordinal: u32) -> Result<Context, Box<dyn error::Error>> {
    Ok(Context::create_and_push(ContextFlags::empty(), Device::get_device(ordinal)?)?)
}

/// Runs `body`, then makes the tests' context current again.
fn elsewhere(body: impl FnOnce(u32) -> Outcome) -> Outcome {
    let ordinal = precise()?.device().ordinal as u32;
    let outcome = body(ordinal);
    enter()?;
    outcome
}

/// One call in the current context, in its default stream.
fn round(quantizer: &Quantizer, bare: &mut Bare, seed: u32) -> Outcome {
    // SAFETY: the null stream is the current context's, which is that of quantizer and buffers: the callers see to it.
    unsafe { bare.round(quantizer, seed, ptr::null_mut()) }
}

fn two_at_once() -> Outcome {
    elsewhere(|ordinal| {
        let contexts = [create(ordinal)?, create(ordinal)?];
        let mut work = Vec::new();
        for context in &contexts {
            CurrentContext::set_current(context)?;
            work.push((precise()?, Bare::new(129, 1368)?));
        }
        for seed in 0..4 {
            for (context, (quantizer, bare)) in contexts.iter().zip(&mut work) {
                CurrentContext::set_current(context)?;
                round(quantizer, bare, seed)?;
            }
        }
        // The first one's quantizer in the second.
        let (quantizer, bare) = &work[0];
        // SAFETY: nothing is launched in another context than the quantizer's.
        let launched = unsafe { bare.quantize(quantizer, ptr::null_mut()) };
        expect("a launch", launched, |e| matches!(e, Error::ContextMismatch { .. }))?;
        let loaded = quantizer.load(Kernel::PerToken, Element::F32);
        expect("load", loaded, |e| matches!(e, Error::ContextMismatch { .. }))?;
        for context in &contexts {
            CurrentContext::set_current(context)?;
            drop(work.remove(0));
        }
        Ok(())
    })
}

/// A context may get the address of one that is gone, and its modules are not there.
fn one_after_the_other() -> Outcome {
    elsewhere(|ordinal| {
        let mut before: Option<Quantizer> = None;
        for seed in 0..4 {
            let context = create(ordinal)?;
            let mut bare = Bare::new(65, 512)?;
            if let Some(quantizer) = before {
                // SAFETY: nothing is launched in another context than the quantizer's.
                let launched = unsafe { bare.quantize(&quantizer, ptr::null_mut()) };
                expect("of a context that is gone", launched, |e| matches!(e, Error::ContextMismatch { .. }))?;
            }
            let (quantizer, loads) = (precise()?, Count::of(LOADED));
            loads.during(|| round(&quantizer, &mut bare, seed))?;
            if loads.get() != 1 {
                return Err(format!("context {seed} loaded {} modules, expected 1 of its own", loads.get()).into());
            }
            before = Some(quantizer);
            drop(bare);
            drop(context);
        }
        Ok(())
    })
}

fn memory_of_another() -> Outcome {
    let quantizer = precise()?;
    let mut foreign = None;
    elsewhere(|ordinal| {
        let context = create(ordinal)?;
        foreign = Some((context, DeviceBuffer::<f32>::zeroed(64)?));
        Ok(())
    })?;
    let (context, x) = foreign.ok_or("it was made above")?;
    let (mut q, mut s) = (DeviceBuffer::<u8>::zeroed(64)?, DeviceBuffer::<f32>::zeroed(1)?);
    let prepared = quantizer.prepare(&x, &mut q, &mut s, Shape::new(1, 64)?, Options::default());
    let outcome = expect("x of another context", prepared, |e| *e == Error::WrongContext { operand: "x" });
    CurrentContext::set_current(&context)?;
    drop(x);
    drop(context);
    enter()?;
    outcome
}

/// After an illegal access nothing works in that context, everything says so, and nothing of it is left in the cache.
fn broken_by_a_kernel() -> Outcome {
    open()?;
    enter()?;
    let ordinal = precise()?.device().ordinal as u32;
    let context = create(ordinal)?;
    let quantizer = precise()?;
    let mut bare = Bare::new(65, 512)?;
    round(&quantizer, &mut bare, 0)?;
    let (x, mut q, mut s) = (DeviceBuffer::<f32>::zeroed(64)?, DeviceBuffer::zeroed(64)?, DeviceBuffer::zeroed(1)?);
    let mut prepared = quantizer.prepare(&x, &mut q, &mut s, Shape::new(1, 64)?, Options::default())?;
    let stream = Stream::new(StreamFlags::NON_BLOCKING, None)?;

    let module = Module::from_ptx(BREAKS, &[])?;
    let breaks = module.get_function("breaks")?;
    // SAFETY: the kernel takes no arguments; what it does to this context is the test.
    unsafe { launch!(breaks<<<1, 1, 0, stream>>>()) }?;
    match stream.synchronize() {
        Err(CudaError::IllegalAddress) => {}
        other => return Err(format!("expected an illegal access, got {other:?}").into()),
    }

    const ILLEGAL_ADDRESS: u32 = sys::CUresult::CUDA_ERROR_ILLEGAL_ADDRESS as u32;
    let is =
        |e: &Error| matches!(e, Error::Driver { code, .. } | Error::Load { code, .. } if code.0 == ILLEGAL_ADDRESS);
    // Twice: the first does not take the error away.
    for _ in 0..2 {
        expect("run", prepared.run(&stream), is)?;
        // SAFETY: the null stream is the current context's.
        expect("quantize_raw", unsafe { bare.quantize(&quantizer, ptr::null_mut()) }, is)?;
        // Not loaded yet.
        expect("load", quantizer.load(Kernel::PerToken, Element::F16), is)?;
    }

    drop((module, stream, x, q, s, bare));
    drop(context);
    // The driver does not promise that the process can go on: then there is nothing left to see.
    let copied = create(ordinal).and_then(|context| Ok((context, DeviceBuffer::from_slice(&[1.0_f32; 64])?)));
    let (_context, _buffer) = match copied {
        Ok(works) => works,
        Err(error) => {
            println!("after the illegal access the driver has no new context for this process: {error}");
            return Ok(());
        }
    };
    let mut bare = Bare::new(65, 512)?;
    // SAFETY: nothing is launched in another context than the quantizer's.
    let launched = unsafe { bare.quantize(&quantizer, ptr::null_mut()) };
    expect("the broken context's quantizer", launched, |e| matches!(e, Error::ContextMismatch { .. }))?;
    let (quantizer, loads) = (precise()?, Count::of(LOADED));
    loads.during(|| round(&quantizer, &mut bare, 1))?;
    if loads.get() != 1 {
        return Err(format!("the new context loaded {} modules, expected 1 of its own", loads.get()).into());
    }
    println!("after the illegal access a new context works");
    Ok(())
}
