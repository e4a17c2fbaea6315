//! An engine with device memory and a stream of its own: addresses and the stream's handle are all that a call takes.
//!
//! `cargo run --manifest-path examples/interop/Cargo.toml --bin raw_pointers`

use interop::{HIDDEN, Outcome, POISON, POISON_SCALE, ROWS, check, has_device, input, shape};
use per_token_quant_fp8::cpu::Params;
use per_token_quant_fp8::cust::memory::{CopyDestination, DeviceBuffer};
use per_token_quant_fp8::cust::stream::{Stream, StreamFlags};
use per_token_quant_fp8::{Bf16, Element, Kernel, Options, RawArgs, cust, quantizer};

/// The whole program.
pub fn main() -> Outcome {
    if !has_device()? {
        return Ok(());
    }
    // The engine's own: its context is current, its buffers hold x, q and s.
    let _context = cust::quick_init()?;
    let stream = Stream::new(StreamFlags::DEFAULT, None)?;
    let x = DeviceBuffer::<Bf16>::from_slice(bytemuck::cast_slice(&input()))?;
    let q = DeviceBuffer::from_slice(&[POISON; ROWS * HIDDEN])?;
    let s = DeviceBuffer::from_slice(&[POISON_SCALE; ROWS])?;
    let (x_address, q_address, s_address) =
        (x.as_device_ptr().as_raw(), q.as_device_ptr().as_raw(), s.as_device_ptr().as_raw());

    // Once, when the engine starts.
    let quantizer = quantizer()?; // on the device of the current context
    quantizer.load(Kernel::PerToken, Element::Bf16)?;

    // For each call. Nothing waits, nothing is allocated.
    let options = Options::default(); // zero rows as the reference; `ZeroRows::Guarded` gives zeros
    let args = RawArgs { options, ..RawArgs::new(Element::Bf16, x_address, q_address, s_address, shape()?) };
    // SAFETY: the addresses are those of buffers of that shape, which nobody else uses before `synchronize` returns.
    unsafe { quantizer.quantize_raw(args, stream.as_inner()) }?;

    stream.synchronize()?;
    let (mut codes, mut scales) = (vec![0; ROWS * HIDDEN], vec![0.0; ROWS]);
    q.copy_to(&mut codes)?;
    s.copy_to(&mut scales)?;
    check(&codes, &scales, Params { math: quantizer.math(), options, sm_count: quantizer.sm_count() })
}
