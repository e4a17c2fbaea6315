//! One call by addresses on a bare stream handle: copies and kernel in the order of the stream, with buffers of its own.

use crate::Outcome;
use crate::graph::check;
use per_token_quant_fp8::cpu::{self, Params};
use per_token_quant_fp8::cust::memory::DeviceBuffer;
use per_token_quant_fp8::cust::sys::{self, CUstream};
use per_token_quant_fp8::{Element, Error, Quantizer, RawArgs, Shape};
use ptq_suite::random_rows;
use std::ptr;

/// Bytes of the outputs before: as a code and as a scale a NaN, which no input gives.
const POISON: u8 = 0xFF;

pub struct Bare {
    x: DeviceBuffer<f32>,
    q: DeviceBuffer<u8>,
    s: DeviceBuffer<f32>,
    /// Rows to quantize, in device memory and as that memory was last told; `None`: all.
    count: Option<(DeviceBuffer<u32>, u32)>,
    shape: Shape,
    /// The input on the host.
    input: Vec<f32>,
    seed: u32,
}

impl Bare {
    /// Buffers in the current context.
    pub fn new(rows: usize, hidden: usize) -> Result<Self, Box<dyn std::error::Error>> {
        let bare = Self {
            x: DeviceBuffer::zeroed(rows * hidden)?,
            q: DeviceBuffer::zeroed(rows * hidden)?,
            s: DeviceBuffer::zeroed(rows)?,
            count: None,
            shape: Shape::new(rows as u64, hidden as u64)?,
            input: vec![0.0; rows * hidden],
            seed: 0,
        };
        // The zeros are written in the default stream, for which a non-blocking stream does not wait.
        // SAFETY: the null stream always exists.
        check(unsafe { sys::cuStreamSynchronize(ptr::null_mut()) })?;
        Ok(bare)
    }

    /// With a count of rows in device memory, which [`Bare::set_count`] changes.
    pub fn counted(self) -> Result<Self, Box<dyn std::error::Error>> {
        let counted = Self { count: Some((DeviceBuffer::from_slice(&[0])?, 0)), ..self };
        // As in `new`.
        // SAFETY: the null stream always exists.
        check(unsafe { sys::cuStreamSynchronize(ptr::null_mut()) })?;
        Ok(counted)
    }

    /// The call.
    pub fn args(&self) -> RawArgs {
        let (x, q, s) = (self.x.as_device_ptr(), self.q.as_device_ptr(), self.s.as_device_ptr());
        let device_rows = self.count.as_ref().map_or(0, |(buffer, _)| buffer.as_device_ptr().as_raw());
        RawArgs { device_rows, ..RawArgs::new(Element::F32, x.as_raw(), q.as_raw(), s.as_raw(), self.shape) }
    }

    /// Enqueues another count.
    ///
    /// # Safety
    /// As [`Bare::fill`].
    pub unsafe fn set_count(&mut self, count: u32, stream: CUstream) -> Outcome {
        let (buffer, told) = self.count.as_mut().ok_or("the call has no count")?;
        *told = count;
        // SAFETY: the buffer has one u32.
        check(unsafe { sys::cuMemsetD32Async(buffer.as_device_ptr().as_raw(), count, 1, stream) })
    }

    /// Enqueues new input, that of `seed`, and poison over the outputs.
    ///
    /// # Safety
    /// `stream` is one of the current context, which is that of the buffers.
    pub unsafe fn fill(&mut self, seed: u32, stream: CUstream) -> Outcome {
        self.seed = seed;
        random_rows(&mut self.input, self.shape.hidden() as usize, seed);
        let RawArgs { x, q, s, .. } = self.args();
        let bytes = size_of_val(&*self.input);
        // SAFETY: both buffers have that many bytes. The driver is done with pageable memory when it returns.
        check(unsafe { sys::cuMemcpyHtoDAsync_v2(x, self.input.as_ptr().cast(), bytes, stream) })?;
        // SAFETY: `q` has that many bytes.
        check(unsafe { sys::cuMemsetD8Async(q, POISON, self.q.len(), stream) })?;
        // SAFETY: `s` has that many bytes.
        check(unsafe { sys::cuMemsetD8Async(s, POISON, self.s.len() * size_of::<f32>(), stream) })
    }

    /// Enqueues the call.
    ///
    /// # Safety
    /// `stream` is null, a default stream's handle, or one of the quantizer's context.
    pub unsafe fn quantize(&self, quantizer: &Quantizer, stream: CUstream) -> Result<(), Error> {
        // SAFETY: the buffers have the size of the shape, and whatever else uses them is in `stream`.
        unsafe { quantizer.quantize_raw(self.args(), stream) }
    }

    /// Enqueues copies of the outputs, waits for them, and compares every byte with the CPU's.
    ///
    /// # Safety
    /// As [`Bare::fill`].
    pub unsafe fn check(&self, quantizer: &Quantizer, stream: CUstream) -> Outcome {
        let (mut q, mut s) = (vec![0_u8; self.q.len()], vec![0.0_f32; self.s.len()]);
        let args = self.args();
        // SAFETY: both buffers have that many bytes, and the host's lives until the stream is done, below.
        let first = check(unsafe { sys::cuMemcpyDtoHAsync_v2(q.as_mut_ptr().cast(), args.q, q.len(), stream) });
        let bytes = size_of_val(&*s);
        // SAFETY: as above.
        let second = check(unsafe { sys::cuMemcpyDtoHAsync_v2(s.as_mut_ptr().cast(), args.s, bytes, stream) });
        // SAFETY: the stream exists, as the caller promises.
        check(unsafe { sys::cuStreamSynchronize(stream) })?;
        first.and(second)?;

        // Rows that are not quantized keep their poison.
        let poison = f32::from_bits(u32::from_ne_bytes([POISON; 4]));
        let (mut want_q, mut want_s) = (vec![POISON; q.len()], vec![poison; s.len()]);
        let (all, sm_count) = (self.shape.rows(), quantizer.sm_count());
        let rows = self.count.as_ref().map_or(all, |(_, count)| all.min((*count).into()));
        let params = Params { math: quantizer.math(), options: args.options.decided(all, sm_count), sm_count };
        let shape = Shape::padded(rows, all, self.shape.hidden())?;
        let x = &self.input[..(rows * shape.hidden()) as usize];
        cpu::quantize(x, &mut want_q, &mut want_s, shape, params)?;
        let hidden = self.shape.hidden() as usize;
        for (row, (got, want)) in q.chunks_exact(hidden).zip(want_q.chunks_exact(hidden)).enumerate() {
            if let Some(column) = (0..hidden).find(|&column| got[column] != want[column]) {
                let (got, want) = (got[column], want[column]);
                return Err(format!(
                    "{:?}, seed {}: code at row {row} column {column} is {got:#04x}, expected {want:#04x}",
                    self.shape, self.seed
                )
                .into());
            }
        }
        match (0..s.len()).find(|&row| s[row].to_bits() != want_s[row].to_bits()) {
            Some(row) => Err(format!(
                "{:?}, seed {}: scale of row {row} is {:e}, expected {:e}",
                self.shape, self.seed, s[row], want_s[row]
            )
            .into()),
            None => Ok(()),
        }
    }

    /// All of it, once.
    ///
    /// # Safety
    /// As [`Bare::fill`].
    pub unsafe fn round(&mut self, quantizer: &Quantizer, seed: u32, stream: CUstream) -> Outcome {
        // SAFETY: as the caller promises, here and below.
        unsafe { self.fill(seed, stream) }?;
        // SAFETY: as above.
        unsafe { self.quantize(quantizer, stream) }?;
        // SAFETY: as above.
        unsafe { self.check(quantizer, stream) }
    }
}
