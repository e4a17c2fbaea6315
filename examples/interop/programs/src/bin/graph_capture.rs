//! A call captured into a CUDA graph: loaded before, replayed on what the buffers hold by then.
//!
//! `cargo run --manifest-path examples/interop/Cargo.toml --bin graph_capture`

use interop::graph::Graph;
use interop::{HIDDEN, Outcome, POISON, POISON_SCALE, ROWS, check, has_device, input, shape};
use per_token_quant_fp8::cpu::Params;
use per_token_quant_fp8::cust::memory::{CopyDestination, DeviceBuffer};
use per_token_quant_fp8::cust::stream::{Stream, StreamFlags};
use per_token_quant_fp8::{Bf16, Element, Kernel, RawArgs, cust, quantizer};

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
    // SAFETY: the buffers are of that shape; they outlive the graph, and nobody else uses them while it runs.
    let graph = Graph::capture(&stream, || unsafe { quantizer.quantize_raw(args, stream.as_inner()) })?;

    // A replay reads what is in `x` by then.
    x.copy_from(bytemuck::cast_slice::<_, Bf16>(&input()))?;
    q.copy_from(&[POISON; ROWS * HIDDEN])?;
    s.copy_from(&[POISON_SCALE; ROWS])?;
    // SAFETY: its buffers are still there, and nobody else uses them.
    unsafe { graph.replay(&stream) }?;
    stream.synchronize()?;

    let (mut codes, mut scales) = (vec![0; ROWS * HIDDEN], vec![0.0; ROWS]);
    q.copy_to(&mut codes)?;
    s.copy_to(&mut scales)?;
    check(&codes, &scales, Params { math: quantizer.math(), options: args.options, sm_count: quantizer.sm_count() })
}
