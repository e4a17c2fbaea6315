//! The GPU runtime as the suite's subject.

use per_token_quant_fp8::cust::memory::{CopyDestination, DeviceBuffer};
use per_token_quant_fp8::cust::stream::{Stream, StreamFlags};
use per_token_quant_fp8::{Bf16, F16, GpuElement, Quantizer, RawArgs};
use ptq_suite::{Case, Implementation, Output, Tensor};
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
    /// Through [`Quantizer::prepare`].
    pub fn new(name: impl Into<String>, quantizer: Quantizer) -> Result<Self, Box<dyn Error>> {
        let stream = Stream::new(StreamFlags::DEFAULT, None)?;
        Ok(Self { name: name.into(), quantizer, stream, raw: false })
    }

    /// Through [`Quantizer::quantize_raw`].
    pub fn raw(self) -> Self {
        Self { raw: true, ..self }
    }

    /// With the quantizer changed.
    pub fn map<E>(self, change: impl FnOnce(Quantizer) -> Result<Quantizer, E>) -> Result<Self, E> {
        Ok(Self { quantizer: change(self.quantizer)?, ..self })
    }

    fn on_device<T: GpuElement>(
        &self,
        x: &[T],
        range: Range<usize>,
        case: &Case,
        out: &mut Output,
    ) -> Result<(), Box<dyn Error>> {
        let quantizer = self.quantizer.clone().with_math(case.params.math)?.with_sm_count(case.params.sm_count);
        let (shape, options) = (case.shape, case.params.options);
        let all_x = DeviceBuffer::from_slice(x)?;
        let all_q = DeviceBuffer::from_slice(out.q.whole())?;
        let all_s = DeviceBuffer::from_slice(out.s.whole())?;
        let x = all_x.index(range);
        let mut q = all_q.index(out.q.range());
        let mut s = all_s.index(out.s.range());
        if self.raw {
            let args = RawArgs {
                element: T::ELEMENT,
                x: x.as_device_ptr().as_raw(),
                q: q.as_device_ptr().as_raw(),
                s: s.as_device_ptr().as_raw(),
                shape,
                options,
            };
            // SAFETY: the addresses are those of slices of the shape's size, which live until the stream is done below,
            // and nobody else has them.
            unsafe { quantizer.quantize_raw(args, self.stream.as_inner()) }?;
            self.stream.synchronize()?;
        } else {
            quantizer.prepare(&x, &mut q, &mut s, shape, options)?.run(&self.stream)?;
        }
        all_q.copy_to(out.q.whole_mut())?;
        all_s.copy_to(out.s.whole_mut())?;
        Ok(())
    }
}

impl Implementation for Subject {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn quantize(&self, case: &Case, out: &mut Output) -> Result<(), Box<dyn Error>> {
        match &*case.x {
            Tensor::F16(x) => self.on_device::<F16>(bytemuck::cast_slice(x.whole()), x.range(), case, out),
            Tensor::Bf16(x) => self.on_device::<Bf16>(bytemuck::cast_slice(x.whole()), x.range(), case, out),
            Tensor::F32(x) => self.on_device::<f32>(x.whole(), x.range(), case, out),
        }
    }
}
