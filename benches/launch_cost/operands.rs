//! One short row on the device, and a stream.

use crate::BoxError;
use per_token_quant_fp8::cust::context::CurrentContext;
use per_token_quant_fp8::cust::memory::{CopyDestination, DeviceBuffer};
use per_token_quant_fp8::cust::stream::{Stream, StreamFlags};
use per_token_quant_fp8::{GpuElement, MathMode, RawArgs, Shape, ShapeError, cpu};

/// Elements of the row: so few that the device keeps up with the host.
const HIDDEN: usize = 512;

/// A row of ones; the outputs are poisoned.
pub struct Operands<T: GpuElement> {
    pub x: DeviceBuffer<T>,
    pub q: DeviceBuffer<u8>,
    pub s: DeviceBuffer<f32>,
    pub shape: Shape,
    pub stream: Stream,
}

impl<T: GpuElement> Operands<T> {
    /// `one` is 1.
    pub fn new(one: T) -> Result<Self, BoxError> {
        let operands = Self {
            x: DeviceBuffer::from_slice(&[one; HIDDEN])?,
            q: DeviceBuffer::from_slice(&[0xFF; HIDDEN])?,
            s: DeviceBuffer::from_slice(&[f32::NAN])?,
            shape: Shape::new(1, HIDDEN as u64)?,
            stream: Stream::new(StreamFlags::NON_BLOCKING, None)?,
        };
        // The copies are in the default stream, for which a non-blocking one does not wait.
        CurrentContext::synchronize()?;
        Ok(operands)
    }

    /// The call by addresses.
    pub fn args(&self) -> RawArgs {
        RawArgs::new(
            T::ELEMENT,
            self.x.as_device_ptr().as_raw(),
            self.q.as_device_ptr().as_raw(),
            self.s.as_device_ptr().as_raw(),
            self.shape,
        )
    }

    /// Checks the outputs; the stream is idle.
    ///
    /// # Errors
    /// Where a byte is another than the CPU's.
    pub fn check(&self, math: MathMode) -> Result<(), BoxError> {
        let (want_q, want_s) = expected(self.shape, math)?;
        let (mut q, mut s) = ([0; HIDDEN], [0.0]);
        self.q.copy_to(&mut q)?;
        self.s.copy_to(&mut s)?;
        if q == want_q && s.map(f32::to_bits) == want_s.map(f32::to_bits) {
            Ok(())
        } else {
            Err(format!("other bytes than the CPU's: scale {s:?}, expected {want_s:?}; codes {q:02x?}").into())
        }
    }
}

/// One is the same number in every element type.
fn expected(shape: Shape, math: MathMode) -> Result<([u8; HIDDEN], [f32; 1]), ShapeError> {
    let (mut q, mut s) = ([0; HIDDEN], [0.0]);
    cpu::quantize(&[1.0_f32; HIDDEN], &mut q, &mut s, shape, cpu::Params::new(math))?;
    Ok((q, s))
}
