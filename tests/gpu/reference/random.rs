//! More than 10^9 random f32 elements through both of SGLang's kernels and through ours.

use crate::sglang::Sglang;
use crate::{Outcome, heavy};
use per_token_quant_fp8::cust::memory::{CopyDestination, DeviceBuffer};
use per_token_quant_fp8::cust::stream::{Stream, StreamFlags};
use per_token_quant_fp8::{Dispatch, Element, MathMode, Options, RawArgs, Shape, ZeroRows, quantizer};
use ptq_suite::random_rows;
use std::error::Error;
use std::path::Path;

/// Elements of one input.
const ELEMENTS: usize = 1 << 27;
/// Row lengths, one input of each: short rows for many scales, long ones for many elements under one scale.
const HIDDEN: [usize; 8] = [4, 8, 16, 64, 512, 1024, 4096, 16384];
/// Most rows of an input.
const MAX_ROWS: usize = ELEMENTS / HIDDEN[0];

const _: () = assert!(ELEMENTS * HIDDEN.len() >= 1_000_000_000);

/// Outputs of one implementation, on the device and as they are copied from there.
struct Output {
    device_q: DeviceBuffer<u8>,
    device_s: DeviceBuffer<f32>,
    q: Vec<u8>,
    s: Vec<f32>,
}

impl Output {
    fn new() -> Result<Self, Box<dyn Error>> {
        let (q, s) = (vec![0; ELEMENTS], vec![0.0; MAX_ROWS]);
        Ok(Self { device_q: DeviceBuffer::zeroed(ELEMENTS)?, device_s: DeviceBuffer::zeroed(MAX_ROWS)?, q, s })
    }

    /// Overwrites what is on the device.
    fn poison(&mut self, byte: u8) -> Result<(), Box<dyn Error>> {
        self.device_q.set_8(byte)?;
        self.device_s.set_8(byte)?;
        Ok(())
    }

    /// Copies it back: all codes, and the scales of that many rows.
    fn fetch(&mut self, rows: usize) -> Result<(), Box<dyn Error>> {
        self.device_q.copy_to(&mut self.q)?;
        self.device_s.index(..rows).copy_to(&mut self.s[..rows])?;
        Ok(())
    }
}

/// Ours and SGLang's bytes are the same.
pub fn same_bytes(folder: &Path, math: MathMode) -> Outcome {
    let _alone = heavy();
    let sglang = Sglang::load(folder, math)?;
    let quantizer = quantizer()?.with_math(math)?;
    let stream = Stream::new(StreamFlags::DEFAULT, None)?;
    let mut x = vec![0.0; ELEMENTS];
    let mut device_x = DeviceBuffer::<f32>::zeroed(ELEMENTS)?;
    let (mut ours, mut theirs) = (Output::new()?, Output::new()?);
    for hidden in HIDDEN {
        random_rows(&mut x, hidden, hidden as u32);
        device_x.copy_from(&x)?;
        let rows = ELEMENTS / hidden;
        let shape = Shape::new(rows as u64, hidden as u64)?;
        for dispatch in [Dispatch::Cta, Dispatch::Warp] {
            let options = Options { zero_rows: ZeroRows::Legacy, dispatch };
            // Different bytes, so that an element that both leave unwritten differs.
            ours.poison(0xA5)?;
            theirs.poison(0x5A)?;
            let s = ours.device_s.index(..rows);
            // SAFETY: the buffers live until the stream is done, which `run` waits for, and nobody else has them.
            unsafe { quantizer.prepare_slices(*device_x, *ours.device_q, s, shape, options) }?.run(&stream)?;
            let (q, s) = (theirs.device_q.as_device_ptr().as_raw(), theirs.device_s.as_device_ptr().as_raw());
            let args = RawArgs::new(Element::F32, device_x.as_device_ptr().as_raw(), q, s, shape);
            let args = RawArgs { options, ..args };
            let kernel = sglang.kernel(&args, quantizer.sm_count())?;
            // SAFETY: the kernel was chosen for these arguments; the buffers have the shape's size at least, live until the
            // stream is done below, and nobody else has them.
            unsafe { kernel.launch(&args, &stream) }?;
            stream.synchronize()?;
            ours.fetch(rows)?;
            theirs.fetch(rows)?;
            compare(&x, hidden, &ours, &theirs)
                .map_err(|difference| format!("hidden {hidden}, {dispatch}: {difference}"))?;
        }
    }
    Ok(())
}

/// Compares the bytes of an input's rows.
fn compare(x: &[f32], hidden: usize, ours: &Output, theirs: &Output) -> Result<(), String> {
    let rows = x.len() / hidden;
    if bytemuck::cast_slice::<f32, u8>(&ours.s[..rows]) != bytemuck::cast_slice::<f32, u8>(&theirs.s[..rows]) {
        let differs = |row: &usize| ours.s[*row].to_bits() != theirs.s[*row].to_bits();
        let row = (0..rows).find(differs).ok_or("bytes differ and bits do not")?;
        let (ours, theirs) = (ours.s[row].to_bits(), theirs.s[row].to_bits());
        return Err(format!("scale of row {row}: ours {ours:#010x}, SGLang's {theirs:#010x}"));
    }
    if ours.q != theirs.q {
        let at = (0..x.len()).find(|&i| ours.q[i] != theirs.q[i]).ok_or("bytes differ and codes do not")?;
        let (row, column, x) = (at / hidden, at % hidden, x[at].to_bits());
        let (ours, theirs) = (ours.q[at], theirs.q[at]);
        return Err(format!("row {row}, column {column}, x = {x:#010x}: ours {ours:#04x}, SGLang's {theirs:#04x}"));
    }
    Ok(())
}
