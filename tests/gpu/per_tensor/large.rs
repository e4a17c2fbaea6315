//! More elements than 32 bits count: an index or an offset that wraps reads another element or leaves one unwritten.

use crate::{Outcome, Skip, Test, heavy};
use per_token_quant_fp8::cpu::per_tensor::quantize_dynamic;
use per_token_quant_fp8::cust::memory::{CopyDestination, DeviceBuffer, mem_get_info};
use per_token_quant_fp8::cust::stream::{Stream, StreamFlags};
use per_token_quant_fp8::{Bf16, Element, Scale, ZeroRows, cpu, quantizer};
use ptq_suite::{Tensor, cases};

/// Different elements, over and over. An odd number, so that an element some power of two away is another one.
const BLOCK: usize = 8_388_619;
/// Whole blocks and a part beyond 2^32 elements, and elements after the last vector.
const ELEMENTS: usize = (1 << 32) + BLOCK + 3;
/// What must be free on the device, in bytes: the operands, and room for what runs beside this.
const DEVICE_BYTES: usize = ELEMENTS * 3 + (4 << 30);
/// Bytes of the outputs before: as a code and as a scale a NaN, which the input does not give.
const POISON: u8 = 0xFF;

pub fn tests() -> Vec<Test> {
    vec![Test::new("large::per_tensor", every_element).skip_when(too_little_memory)]
}

fn too_little_memory() -> Skip {
    let (free, _) = mem_get_info()?;
    Ok((free < DEVICE_BYTES).then(|| format!("{free} bytes of device memory are free, {DEVICE_BYTES} are needed")))
}

/// Every code and the scale are those of the CPU.
fn every_element() -> Outcome {
    let _alone = heavy();
    let quantizer = quantizer()?;
    let math = quantizer.math();
    let case = cases::ordinary(Element::Bf16, 1, BLOCK.next_multiple_of(4), cpu::Params::new(math));
    let Tensor::Bf16(block) = &*case.x else { return Err("another element type".into()) };
    let block = &block.operand()[..BLOCK];
    let (mut block_q, mut block_s) = (vec![0; BLOCK], 0.0_f32);
    quantize_dynamic(block, &mut block_q, &mut block_s, math, ZeroRows::Legacy)?;

    let x = DeviceBuffer::<Bf16>::zeroed(ELEMENTS)?;
    x.index(..BLOCK).copy_from(bytemuck::cast_slice::<_, Bf16>(block))?;
    let mut filled = BLOCK;
    while filled < ELEMENTS {
        // Whole blocks are filled, so what follows goes on with the first element.
        let more = filled.min(ELEMENTS - filled);
        x.index(filled..filled + more).copy_from(&x.index(..more))?;
        filled += more;
    }
    let mut q = DeviceBuffer::<u8>::zeroed(ELEMENTS)?;
    let mut s = DeviceBuffer::<f32>::zeroed(1)?;
    q.set_8(POISON)?;
    s.set_8(POISON)?;
    let stream = Stream::new(StreamFlags::DEFAULT, None)?;
    quantizer.prepare_per_tensor(&x, &mut q, &mut s, Scale::Dynamic, ZeroRows::Legacy)?.run(&stream)?;

    let mut actual_s = [0.0_f32];
    s.copy_to(&mut actual_s)?;
    if actual_s[0].to_bits() != block_s.to_bits() {
        return Err(format!("the scale is {:e}, expected {block_s:e}", actual_s[0]).into());
    }
    let mut actual_q = vec![0; BLOCK];
    for first in (0..ELEMENTS).step_by(BLOCK) {
        let part = &mut actual_q[..BLOCK.min(ELEMENTS - first)];
        q.index(first..first + part.len()).copy_to(part)?;
        if *part != block_q[..part.len()] {
            let at = (0..part.len()).find(|&at| part[at] != block_q[at]).ok_or("codes differ and no code does")?;
            let (actual, expected) = (part[at], block_q[at]);
            return Err(format!("code {}: expected {expected:#04x}, actual {actual:#04x}", first + at).into());
        }
    }
    Ok(())
}
