//! The GPU runtime as the subject of the per-tensor suite.

use crate::variation::Variation;
use per_token_quant_fp8::cust::memory::{CopyDestination, DeviceBuffer, DeviceSlice};
use per_token_quant_fp8::cust::stream::{Stream, StreamFlags};
use per_token_quant_fp8::{Bf16, F16, GpuElement, PerTensorArgs, Quantizer, Scale, ZeroRows, quantizer};
use ptq_suite::per_tensor::{Call, PerTensor};
use ptq_suite::{Output, Tensor};
use std::error::Error;
use std::ops::Range;

/// A quantizer whose buffers are copied to the device, guards included, and back.
pub struct Subject {
    name: String,
    quantizer: Quantizer,
    stream: Stream,
    raw: bool,
}

impl Subject {
    /// Through [`Quantizer::prepare_per_tensor_slices`].
    pub fn new(variation: &Variation) -> Result<Self, Box<dyn Error>> {
        let quantizer = quantizer()?.with_backend(variation.backend).with_target(variation.target.name)?;
        let stream = Stream::new(StreamFlags::DEFAULT, None)?;
        Ok(Self { name: variation.name(), quantizer, stream, raw: false })
    }

    /// Through [`Quantizer::quantize_per_tensor_raw`].
    pub fn raw(self) -> Self {
        Self { raw: true, ..self }
    }

    /// With the quantizer changed.
    pub fn map(self, change: impl FnOnce(Quantizer) -> Quantizer) -> Self {
        Self { quantizer: change(self.quantizer), ..self }
    }
}

impl PerTensor for Subject {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn quantize(&self, call: &Call, out: &mut Output) -> Result<(), Box<dyn Error>> {
        on_device(self, call, out)
    }
}

impl OnDevice for Subject {
    fn quantize<T: GpuElement>(&self, operands: &mut Operands<T>, call: &Call) -> Result<(), Box<dyn Error>> {
        let quantizer = self.quantizer.clone().with_math(call.math)?;
        let (scale, zero_scale) = (call.scale.source(), call.zero_scale);
        if self.raw {
            // SAFETY: the operands are slices of the call's size, which live until the stream is done below, and nobody
            // else has them.
            unsafe { quantizer.quantize_per_tensor_raw(operands.raw(scale, zero_scale), self.stream.as_inner()) }?;
            self.stream.synchronize()?;
        } else {
            let Operands { x, q, s, kernel } = operands;
            // SAFETY: the slices are of buffers that live until the stream is done below, and nobody else has them.
            let mut prepared = unsafe { quantizer.prepare_per_tensor_slices(*x, *q, *s, scale, zero_scale) }?;
            *kernel = prepared.plan().map(|choice| choice.quantize.entry.name);
            prepared.run(&self.stream)?;
        }
        Ok(())
    }
}

/// Something that quantizes operands on the device.
pub trait OnDevice {
    /// Quantizes them as the call says, and waits until that is done.
    fn quantize<T: GpuElement>(&self, operands: &mut Operands<T>, call: &Call) -> Result<(), Box<dyn Error>>;
}

/// The operands of one call, on the device.
pub struct Operands<T: GpuElement> {
    pub x: DeviceSlice<T>,
    pub q: DeviceSlice<u8>,
    pub s: DeviceSlice<f32>,
    /// Name of the kernel that was chosen, for failures.
    pub kernel: Option<&'static str>,
}

impl<T: GpuElement> Operands<T> {
    /// The same by addresses.
    pub fn raw(&self, scale: Scale, zero_scale: ZeroRows) -> PerTensorArgs {
        PerTensorArgs {
            element: T::ELEMENT,
            x: self.x.as_device_ptr().as_raw(),
            q: self.q.as_device_ptr().as_raw(),
            s: self.s.as_device_ptr().as_raw(),
            elements: self.x.len() as u64,
            scale,
            zero_scale,
        }
    }
}

/// Copies the buffers of a call to the device, guards included, and the outputs back.
pub fn on_device(subject: &impl OnDevice, call: &Call, out: &mut Output) -> Result<(), Box<dyn Error>> {
    match &*call.x {
        Tensor::F16(x) => of::<F16>(subject, bytemuck::cast_slice(x.whole()), x.range(), call, out),
        Tensor::Bf16(x) => of::<Bf16>(subject, bytemuck::cast_slice(x.whole()), x.range(), call, out),
        Tensor::F32(x) => of::<f32>(subject, x.whole(), x.range(), call, out),
    }
}

fn of<T: GpuElement>(
    subject: &impl OnDevice,
    x: &[T],
    range: Range<usize>,
    call: &Call,
    out: &mut Output,
) -> Result<(), Box<dyn Error>> {
    let x = DeviceBuffer::from_slice(x)?;
    let q = DeviceBuffer::from_slice(out.q.whole())?;
    let s = DeviceBuffer::from_slice(out.s.whole())?;
    let (q_range, s_range) = (out.q.range(), out.s.range());
    let mut operands = Operands { x: x.index(range), q: q.index(q_range), s: s.index(s_range), kernel: None };
    let quantized = subject.quantize(&mut operands, call);
    out.kernel = operands.kernel;
    quantized?;
    q.copy_to(out.q.whole_mut())?;
    s.copy_to(out.s.whole_mut())?;
    Ok(())
}
