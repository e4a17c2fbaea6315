//! An engine that also runs without a GPU: one value says who computes, and the bits are the same.
//!
//! `PTQ_BACKEND=cpu cargo run --manifest-path examples/interop/Cargo.toml --bin executor`

use half::bf16;
use interop::{HIDDEN, Outcome, POISON, POISON_SCALE, ROWS, check, has_device, input, shape};
use per_token_quant_fp8::cpu::Params;
use per_token_quant_fp8::cust::memory::{CopyDestination, DeviceBuffer};
use per_token_quant_fp8::{Bf16, Element, Error, Executor, Kernel, Options, RawArgs, cust};
use std::ptr;
use tracing_subscriber::filter::LevelFilter;

/// The whole program.
pub fn main() -> Outcome {
    // Prints what each call comes to: artifact, backend, math mode, kernel, geometry.
    tracing_subscriber::fmt().with_max_level(LevelFilter::DEBUG).init();
    has_device()?;
    // Where there is no device there is no context either, and the executor takes the CPU.
    let context = cust::quick_init();
    let executor = Executor::new(None)?; // as PTQ_BACKEND says, else on the device, else on the CPU
    executor.load(Kernel::PerToken, Element::Bf16)?;

    let (mut codes, mut scales) = (vec![POISON; ROWS * HIDDEN], vec![POISON_SCALE; ROWS]);
    let x: Vec<bf16> = input();
    match &executor {
        Executor::Gpu(_) => {
            let x = DeviceBuffer::<Bf16>::from_slice(bytemuck::cast_slice(&x))?;
            let (q, s) = (DeviceBuffer::from_slice(&codes)?, DeviceBuffer::from_slice(&scales)?);
            let addresses = [x.as_device_ptr().as_raw(), q.as_device_ptr().as_raw(), s.as_device_ptr().as_raw()];
            // SAFETY: device memory of that shape, used in the default stream alone.
            unsafe { quantize(&executor, addresses) }?;
            q.copy_to(&mut codes)?;
            s.copy_to(&mut scales)?;
        }
        Executor::Cpu { .. } => {
            let addresses = [x.as_ptr() as u64, codes.as_mut_ptr() as u64, scales.as_mut_ptr() as u64];
            // SAFETY: host memory of that shape, which nobody else uses.
            unsafe { quantize(&executor, addresses) }?;
        }
    }
    println!("backend {}", executor.backend());
    let params = Params { math: executor.math(), options: Options::default(), sm_count: executor.sm_count() };
    check(&codes, &scales, params)?;
    drop(context);
    Ok(())
}

/// # Safety
/// Addresses of x, q and s of [`shape`], in host memory for the CPU, else on the device; in use by nobody else.
unsafe fn quantize(executor: &Executor, [x, q, s]: [u64; 3]) -> Result<(), Error> {
    let args = RawArgs::new(Element::Bf16, x, q, s, shape()?);
    // SAFETY: as the caller promises; the null stream is the default one.
    unsafe { executor.quantize_raw(args, ptr::null_mut()) }
}
