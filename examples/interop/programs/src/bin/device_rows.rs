//! One captured call for batches of any size: the device says how many tokens there are, rows lie apart, scales have a floor.
//!
//! `cargo run --manifest-path examples/interop/Cargo.toml --bin device_rows`

use half::bf16;
use interop::graph::Graph;
use interop::{HIDDEN, Outcome, POISON, POISON_SCALE, ROWS, compare, has_device, input, shape};
use per_token_quant_fp8::cpu::{self, Params};
use per_token_quant_fp8::cust::memory::{CopyDestination, DeviceBuffer};
use per_token_quant_fp8::cust::stream::{Stream, StreamFlags};
use per_token_quant_fp8::{
    Bf16, Element, Extended, Kernel, MIN_SCALE, Options, RawArgs, Shape, ZeroRows, cust, quantizer,
};

/// Elements per row of what an earlier layer wrote; its first `HIDDEN` are x.
const WIDE: usize = HIDDEN + 776;

/// The whole program.
pub fn main() -> Outcome {
    if !has_device()? {
        return Ok(());
    }
    let _context = cust::quick_init()?;
    let stream = Stream::new(StreamFlags::DEFAULT, None)?;
    let mut rows = vec![bf16::INFINITY; ROWS * WIDE];
    for (wide, row) in rows.chunks_exact_mut(WIDE).zip(input().chunks_exact(HIDDEN)) {
        wide[..HIDDEN].copy_from_slice(row);
    }
    let x = DeviceBuffer::<Bf16>::from_slice(bytemuck::cast_slice(&rows))?;
    let mut q = DeviceBuffer::from_slice(&[POISON; ROWS * HIDDEN])?;
    let mut s = DeviceBuffer::from_slice(&[POISON_SCALE; ROWS])?;
    let mut tokens = DeviceBuffer::from_slice(&[0_u32])?;
    let (x_address, q_address, s_address) =
        (x.as_device_ptr().as_raw(), q.as_device_ptr().as_raw(), s.as_device_ptr().as_raw());

    let quantizer = quantizer()?;
    quantizer.load(Kernel::PerTokenExtended, Element::Bf16)?; // before the capture, which does not allow it
    // Guarded: no byte depends on how many rows the graph was captured for.
    let options = Options { zero_rows: ZeroRows::Guarded, ..Options::default() };
    let extended = Extended { x_stride: WIDE as u64, min_scale: Some(MIN_SCALE), ..Extended::default() };
    let device_rows = tokens.as_device_ptr().as_raw(); // one u32
    let largest = RawArgs::new(Element::Bf16, x_address, q_address, s_address, shape()?);
    let args = RawArgs { options, extended, device_rows, ..largest };
    // SAFETY: the buffers are of that shape; they outlive the graph, and nobody else uses them while it runs.
    let graph = Graph::capture(&stream, || unsafe { quantizer.quantize_raw(args, stream.as_inner()) })?;

    let params = Params { math: quantizer.math(), options, sm_count: quantizer.sm_count() };
    for count in [7, ROWS, 0, ROWS + 1] {
        q.copy_from(&[POISON; ROWS * HIDDEN])?;
        s.copy_from(&[POISON_SCALE; ROWS])?;
        tokens.copy_from(&[count as u32])?; // an engine has a kernel write it
        // SAFETY: its buffers are still there, and nobody else uses them.
        unsafe { graph.replay(&stream) }?;
        stream.synchronize()?;
        let (mut codes, mut scales) = (vec![0; ROWS * HIDDEN], vec![0.0; ROWS]);
        q.copy_to(&mut codes)?;
        s.copy_to(&mut scales)?;

        // Rows from the count on keep their bytes.
        let count = count.min(ROWS);
        let (mut want_q, mut want_s) = (vec![POISON; ROWS * HIDDEN], vec![POISON_SCALE; ROWS]);
        let (first_q, first_s) = (&mut want_q[..count * HIDDEN], &mut want_s[..count]);
        let counted = Shape::new(count as u64, HIDDEN as u64)?;
        cpu::scalar::quantize_extended(&rows, first_q, first_s, counted, params, extended)?;
        compare(&codes, &scales, &want_q, &want_s)?;
    }
    Ok(())
}
