//! The reference's serving entry: one value says which quantization a call is, and tells the shapes of its outputs.
//!
//! `cargo run --manifest-path examples/interop/Cargo.toml --bin scaled_fp8_quant`

use half::bf16;
use interop::{HIDDEN, Outcome, POISON, POISON_SCALE, ROWS, compare, has_device, input};
use per_token_quant_fp8::cpu::{self, Params};
use per_token_quant_fp8::cust::memory::{CopyDestination, DeviceBuffer};
use per_token_quant_fp8::{
    Bf16, Element, Error, Executor, Granularity, Kernel, ScaledFp8Quant, ScaledFp8QuantArgs, Shape, cust,
};
use std::ptr;

/// Rows of the outputs.
const PADDED: usize = ROWS + 7;
/// A scale that the engine knows from calibration.
const STATIC_SCALE: f32 = 0.37;

/// The whole program.
pub fn main() -> Outcome {
    has_device()?;
    let context = cust::quick_init();
    let executor = Executor::new(None)?;
    executor.load(Kernel::PerToken, Element::Bf16)?;
    executor.load(Kernel::PerTensor, Element::Bf16)?;
    // An infinity would be the tensor's scale, and hide the rest.
    let x: Vec<bf16> = input().into_iter().map(|x| if x.is_finite() { x } else { bf16::ONE }).collect();

    for granularity in Granularity::ALL {
        let call = ScaledFp8Quant { num_token_padding: Some(PADDED as u64), ..ScaledFp8Quant::new(granularity) };
        let shape = call.output_shape(ROWS as u64, HIDDEN as u64)?; // before there is any memory
        let mut q = vec![POISON; (shape.rows_out * shape.hidden) as usize]; // q[rows_out, hidden]
        let mut s = match granularity {
            Granularity::Static => vec![STATIC_SCALE],      // s[1], read
            _ => vec![POISON_SCALE; shape.scales as usize], // s[rows_out] or s[1], written
        };
        let (want_q, want_s) = expected(&executor, call, &x, q.clone(), s.clone())?;
        quantize(&executor, call, &x, &mut q, &mut s)?;
        println!("{granularity:?}, backend {}", executor.backend());
        compare(&q, &s, &want_q, &want_s)?;
    }
    drop(context);
    Ok(())
}

/// One call where the executor works, on copies on the device or in place.
fn quantize(executor: &Executor, call: ScaledFp8Quant, x: &[bf16], q: &mut [u8], s: &mut [f32]) -> Outcome {
    match executor {
        Executor::Gpu(_) => {
            let x = DeviceBuffer::<Bf16>::from_slice(bytemuck::cast_slice(x))?;
            let (codes, scales) = (DeviceBuffer::from_slice(q)?, DeviceBuffer::from_slice(s)?);
            let addresses =
                [x.as_device_ptr().as_raw(), codes.as_device_ptr().as_raw(), scales.as_device_ptr().as_raw()];
            // SAFETY: device memory of those shapes, used in the default stream alone.
            unsafe { by_addresses(executor, call, addresses) }?;
            codes.copy_to(q)?;
            scales.copy_to(s)?;
        }
        Executor::Cpu { .. } => {
            let addresses = [x.as_ptr() as u64, q.as_mut_ptr() as u64, s.as_mut_ptr() as u64];
            // SAFETY: host memory of those shapes, which nobody else uses.
            unsafe { by_addresses(executor, call, addresses) }?;
        }
    }
    Ok(())
}

/// # Safety
/// Addresses of `x[ROWS, HIDDEN]` in bf16, and of q and s as `output_shape` says, in host memory for the CPU, else on the
/// device; in use by nobody else.
unsafe fn by_addresses(executor: &Executor, call: ScaledFp8Quant, [x, q, s]: [u64; 3]) -> Result<(), Error> {
    let (rows, hidden) = (ROWS as u64, HIDDEN as u64);
    let args = ScaledFp8QuantArgs { element: Element::Bf16, x, q, s, rows, hidden };
    // SAFETY: as the caller promises; the null stream is the default one.
    unsafe { executor.scaled_fp8_quant_raw(call, args, ptr::null_mut()) }
}

/// What the scalar CPU implementation makes of the outputs; the padding keeps its bytes.
fn expected(
    executor: &Executor,
    call: ScaledFp8Quant,
    x: &[bf16],
    mut q: Vec<u8>,
    mut s: Vec<f32>,
) -> Result<(Vec<u8>, Vec<f32>), Error> {
    let (math, zero_rows) = (executor.math(), call.options.zero_rows);
    match call.granularity {
        Granularity::PerToken => {
            let shape = Shape::padded(ROWS as u64, PADDED as u64, HIDDEN as u64)?;
            let params = Params { math, options: call.options, sm_count: executor.sm_count() };
            cpu::scalar::quantize(x, &mut q, &mut s, shape, params)?;
        }
        Granularity::PerTensor => {
            cpu::per_tensor::scalar::quantize_dynamic(x, &mut q[..x.len()], &mut s[0], math, zero_rows)?;
        }
        Granularity::Static => {
            cpu::per_tensor::scalar::quantize_static(x, &mut q[..x.len()], s[0], math, zero_rows)?;
        }
    }
    Ok((q, s))
}
