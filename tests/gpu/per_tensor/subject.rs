//! The GPU runtime as the subject of the per-tensor suite.

use crate::subject::{OnDevice, Operands, on_device};
use crate::variation::Variation;
use per_token_quant_fp8::cust::stream::{Stream, StreamFlags};
use per_token_quant_fp8::{GpuElement, PerTensorArgs, Quantizer, Scale, ZeroRows, quantizer};
use ptq_suite::Output;
use ptq_suite::per_tensor::{Call, PerTensor};
use std::error::Error;

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
        on_device(self, &call.x, call, out)
    }
}

impl OnDevice<Call> for Subject {
    fn quantize<T: GpuElement>(&self, operands: &mut Operands<T>, call: &Call) -> Result<(), Box<dyn Error>> {
        let quantizer = self.quantizer.clone().with_math(call.math)?;
        let (scale, zero_scale) = (call.scale.source(), call.zero_scale);
        if self.raw {
            // SAFETY: the operands are slices of the call's size, which live until the stream is done below, and nobody
            // else has them.
            unsafe {
                quantizer.quantize_per_tensor_raw(operands.per_tensor(scale, zero_scale), self.stream.as_inner())
            }?;
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

impl<T: GpuElement> Operands<T> {
    /// A per-tensor call of them, by addresses.
    pub fn per_tensor(&self, scale: Scale, zero_scale: ZeroRows) -> PerTensorArgs {
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
