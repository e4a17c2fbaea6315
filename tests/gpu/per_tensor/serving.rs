//! The serving entry on the device gives the bytes that it gives on the CPU, padding included.

use crate::{Outcome, Test};
use per_token_quant_fp8::cust::memory::{CopyDestination, DeviceBuffer};
use per_token_quant_fp8::cust::stream::{Stream, StreamFlags};
use per_token_quant_fp8::{Element, Executor, Granularity, MathMode, ScaledFp8Quant, ScaledFp8QuantArgs};
use ptq_suite::random_rows;
use std::ptr;

const ROWS: usize = 39;
const HIDDEN: usize = 1076;
/// Bytes of `q` before; the scale before is an ordinary one, for it may be given.
const UNTOUCHED: u8 = 0xA5;

pub fn tests() -> Vec<Test> {
    vec![Test::new("serving::as_on_the_cpu", as_on_the_cpu)]
}

fn as_on_the_cpu() -> Outcome {
    let on_device = Executor::new(None)?.with_math(MathMode::Precise)?;
    let on_cpu = Executor::Cpu { math: on_device.math(), sm_count: on_device.sm_count() };
    let stream = Stream::new(StreamFlags::DEFAULT, None)?;
    let mut x = vec![0.0_f32; ROWS * HIDDEN];
    random_rows(&mut x, HIDDEN, 11);
    let device_x = DeviceBuffer::from_slice(&x)?;
    for granularity in Granularity::ALL {
        for num_token_padding in [None, Some(64)] {
            let call = ScaledFp8Quant { num_token_padding, ..ScaledFp8Quant::new(granularity) };
            let shape = call.output_shape(ROWS as u64, HIDDEN as u64)?;
            let codes = (shape.rows_out * shape.hidden) as usize;
            let (mut q, mut s) = (vec![UNTOUCHED; codes], vec![0.5_f32; shape.scales as usize]);
            let (device_q, device_s) = (DeviceBuffer::from_slice(&q)?, DeviceBuffer::from_slice(&s)?);
            let (rows, hidden) = (ROWS as u64, HIDDEN as u64);
            let args = ScaledFp8QuantArgs {
                element: Element::F32,
                x: device_x.as_device_ptr().as_raw(),
                q: device_q.as_device_ptr().as_raw(),
                s: device_s.as_device_ptr().as_raw(),
                rows,
                hidden,
            };
            // SAFETY: buffers of the shapes that the call asks for, which live until the stream is done, below.
            unsafe { on_device.scaled_fp8_quant_raw(call, args, stream.as_inner()) }?;
            stream.synchronize()?;
            let (mut got_q, mut got_s) = (vec![0; q.len()], vec![0.0; s.len()]);
            device_q.copy_to(&mut got_q)?;
            device_s.copy_to(&mut got_s)?;

            let (q_address, s_address) = (q.as_mut_ptr() as u64, s.as_mut_ptr() as u64);
            let args = ScaledFp8QuantArgs { x: x.as_ptr() as u64, q: q_address, s: s_address, ..args };
            // SAFETY: vectors of the shapes that the call asks for, which nobody else uses.
            unsafe { on_cpu.scaled_fp8_quant_raw(call, args, ptr::null_mut()) }?;
            let bits = |s: &[f32]| s.iter().map(|s| s.to_bits()).collect::<Vec<_>>();
            if (got_q != q) || bits(&got_s) != bits(&s) {
                return Err(format!("{call:?}: other bytes than on the CPU").into());
            }
            if q[ROWS * HIDDEN..].iter().any(|&code| code != UNTOUCHED) {
                return Err(format!("{call:?}: the rows beyond the input's were written").into());
            }
        }
    }
    Ok(())
}
