//! The GPU runtime as the suite's subject.

use per_token_quant_fp8::cust::memory::{CopyDestination, DeviceBuffer, DeviceSlice};
use per_token_quant_fp8::cust::stream::{Stream, StreamFlags};
use per_token_quant_fp8::{Bf16, Extended, F16, GpuElement, Options, Quantizer, RawArgs, Shape};
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
    /// Through [`Quantizer::prepare`] and [`Quantizer::prepare_extended`].
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
}

impl Implementation for Subject {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn quantize(&self, case: &Case, out: &mut Output) -> Result<(), Box<dyn Error>> {
        on_device(self, &case.x, case, out)
    }
}

impl OnDevice<Case> for Subject {
    fn quantize<T: GpuElement>(&self, operands: &mut Operands<T>, case: &Case) -> Result<(), Box<dyn Error>> {
        let quantizer = self.quantizer.clone().with_math(case.params.math)?.with_sm_count(case.params.sm_count);
        let (shape, options, extended) = (case.shape, case.params.options, case.extended);
        // A count of rows goes by address alone.
        if self.raw || case.device_rows.is_some() {
            let count = case.device_rows.map(|count| DeviceBuffer::from_slice(&[count])).transpose()?;
            let device_rows = count.as_ref().map_or(0, |count| count.as_device_ptr().as_raw());
            let args = RawArgs { extended, device_rows, ..operands.raw(shape, options) };
            operands.kernel = quantizer.choose(&args)?.map(|choice| choice.plan.entry.name);
            // SAFETY: the operands are slices of the shape's size, which live until the stream is done below, as the
            // count does, and nobody else has them.
            unsafe { quantizer.quantize_raw(args, self.stream.as_inner()) }?;
            self.stream.synchronize()?;
        } else {
            let Operands { x, q, s, kernel } = operands;
            // SAFETY: the slices are of buffers that live until the stream is done below, and nobody else has them,
            // here and below.
            let prepare = || unsafe { quantizer.prepare_slices(*x, *q, *s, shape, options) };
            // SAFETY: as above.
            let prepare_extended =
                || unsafe { quantizer.prepare_extended_slices(*x, *q, *s, shape, options, extended) };
            let plain = extended == Extended::default();
            let mut prepared = if plain { prepare() } else { prepare_extended() }?;
            *kernel = prepared.plan().map(|choice| choice.plan.entry.name);
            prepared.run(&self.stream)?;
        }
        Ok(())
    }
}

/// Something that quantizes operands on the device, as a case of the suite says or a per-tensor call.
pub trait OnDevice<C> {
    /// Quantizes them as the call says, and waits until that is done.
    fn quantize<T: GpuElement>(&self, operands: &mut Operands<T>, call: &C) -> Result<(), Box<dyn Error>>;
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
    pub fn raw(&self, shape: Shape, options: Options) -> RawArgs {
        let (x, q, s) = (self.x.as_device_ptr(), self.q.as_device_ptr(), self.s.as_device_ptr());
        RawArgs { options, ..RawArgs::new(T::ELEMENT, x.as_raw(), q.as_raw(), s.as_raw(), shape) }
    }
}

/// Copies the buffers of a call to the device, guards included, and the outputs back.
pub fn on_device<C>(subject: &impl OnDevice<C>, x: &Tensor, call: &C, out: &mut Output) -> Result<(), Box<dyn Error>> {
    match x {
        Tensor::F16(x) => of::<C, F16>(subject, bytemuck::cast_slice(x.whole()), x.range(), call, out),
        Tensor::Bf16(x) => of::<C, Bf16>(subject, bytemuck::cast_slice(x.whole()), x.range(), call, out),
        Tensor::F32(x) => of::<C, f32>(subject, x.whole(), x.range(), call, out),
    }
}

fn of<C, T: GpuElement>(
    subject: &impl OnDevice<C>,
    x: &[T],
    range: Range<usize>,
    call: &C,
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
