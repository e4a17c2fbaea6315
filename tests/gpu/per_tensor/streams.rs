//! Capture into a graph, and replay with other data: the memset of the scale is part of it.

use crate::child::{self, Body};
use crate::errors::precise;
use crate::graph::{Graph, check};
use crate::{Outcome, Test, allocations, enter, open};
use per_token_quant_fp8::cpu::per_tensor::quantize_dynamic;
use per_token_quant_fp8::cust::memory::DeviceBuffer;
use per_token_quant_fp8::cust::stream::{Stream, StreamFlags};
use per_token_quant_fp8::cust::sys::{self, CUstream};
use per_token_quant_fp8::{Element, Kernel, MathMode, PerTensorArgs, Quantizer, Scale, ZeroRows};
use ptq_suite::random_rows;
use std::ptr;

/// Bytes of the outputs before: as a code and as a scale a NaN, which no input gives.
const POISON: u8 = 0xFF;
/// Several CTAs, and elements after the last vector.
const ELEMENTS: usize = 300_001;

/// What runs in a process of its own: while a stream is captured that waits for the default stream, nobody may use the
/// default stream.
pub const CHILDREN: &[Body] =
    &[Body { name: "per_tensor::replay_with_other_data", variable: None, run: replay_with_other_data }];

pub fn tests() -> Vec<Test> {
    let mut tests = vec![Test::new("per_tensor::calls_allocate_nothing", calls_allocate_nothing)];
    tests.extend(CHILDREN.iter().map(child::test));
    tests
}

struct Buffers {
    x: DeviceBuffer<f32>,
    q: DeviceBuffer<u8>,
    s: DeviceBuffer<f32>,
    input: Vec<f32>,
}

impl Buffers {
    fn new() -> Result<Self, Box<dyn std::error::Error>> {
        let (x, q, s) = (DeviceBuffer::zeroed(ELEMENTS)?, DeviceBuffer::zeroed(ELEMENTS)?, DeviceBuffer::zeroed(1)?);
        // The zeros are written in the default stream, for which a non-blocking stream does not wait.
        // SAFETY: the null stream always exists.
        check(unsafe { sys::cuStreamSynchronize(ptr::null_mut()) })?;
        Ok(Self { x, q, s, input: vec![0.0; ELEMENTS] })
    }

    fn args(&self) -> PerTensorArgs {
        PerTensorArgs {
            element: Element::F32,
            x: self.x.as_device_ptr().as_raw(),
            q: self.q.as_device_ptr().as_raw(),
            s: self.s.as_device_ptr().as_raw(),
            elements: ELEMENTS as u64,
            scale: Scale::Dynamic,
            zero_scale: ZeroRows::Legacy,
        }
    }

    /// Enqueues new input, of magnitudes up to 2^`exponent`, and poison over the outputs.
    ///
    /// # Safety
    /// `stream` is one of the current context.
    unsafe fn fill(&mut self, seed: u32, exponent: i32, stream: CUstream) -> Outcome {
        random_rows(&mut self.input, 1, seed);
        let most = 2.0_f32.powi(exponent);
        for x in &mut self.input {
            // The mantissa of what is larger, NaN too.
            if x.is_nan() || x.abs() > most {
                *x = (f32::from_bits(x.to_bits() & 0x007F_FFFF | 0x3F80_0000) / 2.0 * most).copysign(*x);
            }
        }
        let PerTensorArgs { x, q, s, .. } = self.args();
        let bytes = size_of_val(&*self.input);
        // SAFETY: both buffers have that many bytes. The driver is done with pageable memory when it returns.
        check(unsafe { sys::cuMemcpyHtoDAsync_v2(x, self.input.as_ptr().cast(), bytes, stream) })?;
        // SAFETY: `q` has that many bytes.
        check(unsafe { sys::cuMemsetD8Async(q, POISON, ELEMENTS, stream) })?;
        // SAFETY: `s` has that many bytes.
        check(unsafe { sys::cuMemsetD8Async(s, POISON, size_of::<f32>(), stream) })
    }

    /// Enqueues copies of the outputs, waits for them, and compares every byte with the CPU's.
    ///
    /// # Safety
    /// As [`Buffers::fill`].
    unsafe fn check(&self, math: MathMode, stream: CUstream) -> Outcome {
        let (mut q, mut s) = (vec![0_u8; ELEMENTS], 0.0_f32);
        let args = self.args();
        // SAFETY: both buffers have that many bytes, and the host's lives until the stream is done, below.
        let first = check(unsafe { sys::cuMemcpyDtoHAsync_v2(q.as_mut_ptr().cast(), args.q, ELEMENTS, stream) });
        // SAFETY: as above.
        let second = check(unsafe { sys::cuMemcpyDtoHAsync_v2((&raw mut s).cast(), args.s, size_of::<f32>(), stream) });
        // SAFETY: the stream exists, as the caller promises.
        check(unsafe { sys::cuStreamSynchronize(stream) })?;
        first.and(second)?;
        let (mut want_q, mut want_s) = (vec![0; ELEMENTS], 0.0);
        quantize_dynamic(&self.input, &mut want_q, &mut want_s, math, ZeroRows::Legacy)?;
        if s.to_bits() != want_s.to_bits() {
            return Err(format!("the scale is {s:e}, expected {want_s:e}").into());
        }
        match (0..ELEMENTS).find(|&i| q[i] != want_q[i]) {
            Some(i) => Err(format!("code {i} is {:#04x}, expected {:#04x}", q[i], want_q[i]).into()),
            None => Ok(()),
        }
    }

    /// Enqueues the call.
    ///
    /// # Safety
    /// `stream` is one of the quantizer's context.
    unsafe fn quantize(&self, quantizer: &Quantizer, stream: CUstream) -> Result<(), per_token_quant_fp8::Error> {
        // SAFETY: the buffers have the call's size, and whatever else uses them is in `stream`.
        unsafe { quantizer.quantize_per_tensor_raw(self.args(), stream) }
    }
}

/// A scale that shrinks from one replay to the next: one that is not set to zero again would stay too large.
fn replay_with_other_data() -> Outcome {
    open()?;
    enter()?;
    let quantizer = precise()?;
    quantizer.load(Kernel::PerTensor, Element::F32)?;
    for flags in [StreamFlags::NON_BLOCKING, StreamFlags::DEFAULT] {
        let stream = Stream::new(flags, None)?;
        let mut buffers = Buffers::new()?;
        // SAFETY: the stream is one of the quantizer's context.
        let enqueue = || unsafe { buffers.quantize(&quantizer, stream.as_inner()) };
        // SAFETY: the stream lives in this function and is captured here alone.
        let graph = unsafe { Graph::capture(stream.as_inner(), enqueue) }?;
        for (seed, exponent) in [(1, 20), (2, 3), (3, -40), (4, 100)] {
            // SAFETY: the stream lives in this function; the context is the tests', here and below.
            unsafe { buffers.fill(seed, exponent, stream.as_inner()) }?;
            // SAFETY: the buffers of the captured call are used in this stream alone.
            unsafe { graph.launch(stream.as_inner()) }?;
            // SAFETY: as above.
            unsafe { buffers.check(MathMode::Precise, stream.as_inner()) }
                .map_err(|e| format!("magnitudes up to 2^{exponent}: {e}"))?;
        }
    }
    Ok(())
}

fn calls_allocate_nothing() -> Outcome {
    let quantizer = precise()?;
    let stream = Stream::new(StreamFlags::NON_BLOCKING, None)?;
    let mut buffers = Buffers::new()?;
    // What is loaded or registered at the first call is no part of the others.
    // SAFETY: the stream lives in this function; the context is the tests', here and below.
    unsafe { buffers.fill(1, 4, stream.as_inner()) }?;
    // SAFETY: as above.
    unsafe { buffers.quantize(&quantizer, stream.as_inner()) }?;
    // SAFETY: as above.
    unsafe { buffers.check(MathMode::Precise, stream.as_inner()) }?;
    // SAFETY: as above.
    unsafe { buffers.fill(2, 2, stream.as_inner()) }?;
    // SAFETY: as above.
    let (count, enqueued) = allocations::during(|| unsafe { buffers.quantize(&quantizer, stream.as_inner()) });
    enqueued?;
    // SAFETY: as above.
    unsafe { buffers.check(MathMode::Precise, stream.as_inner()) }?;
    if count == 0 { Ok(()) } else { Err(format!("a call allocated {count} times").into()) }
}
