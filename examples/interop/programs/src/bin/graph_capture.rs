//! A call captured into a CUDA graph: loaded before, replayed on what the buffers hold by then.
//!
//! `cargo run --manifest-path examples/interop/Cargo.toml --bin graph_capture`

use interop::{HIDDEN, Outcome, POISON, POISON_SCALE, ROWS, check, has_device, input, shape};
use per_token_quant_fp8::cpu::Params;
use per_token_quant_fp8::cust::memory::{CopyDestination, DeviceBuffer};
use per_token_quant_fp8::cust::stream::{Stream, StreamFlags};
use per_token_quant_fp8::cust::sys::{self, CUgraph, CUgraphExec, CUresult, CUstreamCaptureMode};
use per_token_quant_fp8::{Bf16, Element, Kernel, RawArgs, cust, quantizer};
use std::ptr;

/// The whole program.
pub fn main() -> Outcome {
    if !has_device()? {
        return Ok(());
    }
    let _context = cust::quick_init()?;
    let stream = Stream::new(StreamFlags::DEFAULT, None)?;
    let mut x = DeviceBuffer::from_slice(&[Bf16::default(); ROWS * HIDDEN])?;
    let mut q = DeviceBuffer::from_slice(&[0; ROWS * HIDDEN])?;
    let mut s = DeviceBuffer::from_slice(&[0.0; ROWS])?;
    let args = RawArgs::new(
        Element::Bf16,
        x.as_device_ptr().as_raw(),
        q.as_device_ptr().as_raw(),
        s.as_device_ptr().as_raw(),
        shape()?,
    );

    let quantizer = quantizer()?;
    quantizer.load(Kernel::PerToken, Element::Bf16)?; // before the capture, which does not allow it
    let mode = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
    // SAFETY: the stream exists and is not being captured.
    done(unsafe { sys::cuStreamBeginCapture_v2(stream.as_inner(), mode) })?;
    // SAFETY: the buffers are of that shape; they outlive the graph, and nobody else uses them while it runs.
    let captured = unsafe { quantizer.quantize_raw(args, stream.as_inner()) };
    let (mut graph, mut replay): (CUgraph, CUgraphExec) = (ptr::null_mut(), ptr::null_mut());
    // SAFETY: the stream is being captured; one handle is written.
    done(unsafe { sys::cuStreamEndCapture(stream.as_inner(), &mut graph) })?;
    captured?;
    // SAFETY: the graph was captured above; one handle is written.
    done(unsafe { sys::cuGraphInstantiateWithFlags(&mut replay, graph, 0) })?;

    // A replay reads what is in `x` by then.
    x.copy_from(bytemuck::cast_slice::<_, Bf16>(&input()))?;
    q.copy_from(&[POISON; ROWS * HIDDEN])?;
    s.copy_from(&[POISON_SCALE; ROWS])?;
    // SAFETY: the graph was instantiated above, and its buffers are still there.
    done(unsafe { sys::cuGraphLaunch(replay, stream.as_inner()) })?;
    stream.synchronize()?;

    let (mut codes, mut scales) = (vec![0; ROWS * HIDDEN], vec![0.0; ROWS]);
    q.copy_to(&mut codes)?;
    s.copy_to(&mut scales)?;
    // SAFETY: the handle was instantiated above, has run, and is destroyed once.
    done(unsafe { sys::cuGraphExecDestroy(replay) })?;
    // SAFETY: the handle was captured above and is destroyed once.
    done(unsafe { sys::cuGraphDestroy(graph) })?;
    check(&codes, &scales, Params { math: quantizer.math(), options: args.options, sm_count: quantizer.sm_count() })
}

fn done(code: CUresult) -> Outcome {
    if code == CUresult::CUDA_SUCCESS { Ok(()) } else { Err(format!("{code:?}").into()) }
}
