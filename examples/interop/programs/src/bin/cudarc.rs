//! cudarc: its context is the device's primary one, its slices give the addresses, its stream takes the call.
//!
//! `cargo run --manifest-path examples/interop/Cargo.toml --bin cudarc`

use cudarc::driver::{CudaContext, DevicePtr, DevicePtrMut};
use interop::{HIDDEN, Outcome, POISON, POISON_SCALE, ROWS, check, has_device, input, shape};
use per_token_quant_fp8::cpu::Params;
use per_token_quant_fp8::{Element, Options, RawArgs, quantizer};

/// The whole program.
pub fn main() -> Outcome {
    // Before the first call of cudarc, which panics where there is no driver.
    if !has_device()? {
        return Ok(());
    }
    let context = CudaContext::new(0)?; // current on this thread; on another: `bind_to_thread`
    let stream = context.new_stream()?;
    let x = stream.clone_htod(&input())?; // x[rows, hidden]
    let mut q = stream.clone_htod(&vec![POISON; ROWS * HIDDEN])?; // q[rows, hidden]
    let mut s = stream.clone_htod(&vec![POISON_SCALE; ROWS])?; // s[rows]

    let quantizer = quantizer()?; // once
    let options = Options::default();
    {
        // cudarc keeps the order with its other streams while these guards live.
        let ((x, _read), (q, _codes), (s, _scales)) =
            (x.device_ptr(&stream), q.device_ptr_mut(&stream), s.device_ptr_mut(&stream));
        let args = RawArgs { options, ..RawArgs::new(Element::Bf16, x, q, s, shape()?) };
        // SAFETY: slices of that shape, borrowed above, in a stream of the current context.
        unsafe { quantizer.quantize_raw(args, stream.cu_stream().cast()) }?;
    }

    let (codes, scales) = (stream.clone_dtoh(&q)?, stream.clone_dtoh(&s)?);
    stream.synchronize()?;
    check(&codes, &scales, Params { math: quantizer.math(), options, sm_count: quantizer.sm_count() })
}
