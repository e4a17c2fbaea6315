//! Per-tensor quantization: `x`, any number of elements, to as many E4M3 codes `q` under one scale `s`.

use crate::launch::TensorLaunch;
use crate::quantizer::{Home, Quantizer};
use crate::tensor_policy::{TensorCall, TensorPass, passes};
use crate::{Backend, Error, GpuElement, driver};
use cust::memory::{DeviceBuffer, DeviceSlice};
use cust::stream::Stream;
use cust::sys::CUstream;
use ptq_spec::per_tensor::{check_addresses, check_lens};
use ptq_spec::{Element, Kernel, MathMode, Scale, Target, ZeroRows, artifact_stem};
use std::marker::PhantomData;
use std::ptr;

/// One call by addresses, for [`Quantizer::quantize_per_tensor_raw`].
#[derive(Debug, Clone, Copy)]
pub struct PerTensorArgs {
    /// Element type of `x`.
    pub element: Element,
    /// Device address of `x[elements]`, a multiple of the element's size.
    pub x: u64,
    /// Device address of `q[elements]`, one byte each.
    pub q: u64,
    /// Device address of the scale, f32, a multiple of 4: read with [`Scale::Static`], written with [`Scale::Dynamic`].
    pub s: u64,
    /// Elements of `x` and of `q`.
    pub elements: u64,
    /// Where the scale comes from.
    pub scale: Scale,
    /// What becomes of a zero scale: [`ZeroRows::Legacy`] is the reference, which never guards.
    pub zero_scale: ZeroRows,
}

/// What a per-tensor call came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TensorChoice {
    /// The kernel that takes the absmax; `None`: the scale is given.
    pub absmax: Option<TensorPass>,
    /// The kernel that quantizes.
    pub quantize: TensorPass,
    /// Target of the artifact.
    pub target: &'static Target,
    /// Math mode of the artifact.
    pub math: MathMode,
    /// Cubin ([`Backend::Aot`]) or PTX ([`Backend::Jit`]).
    pub backend: Backend,
}

/// One per-tensor call, checked: three buffers that it borrows, and the kernels for them.
///
/// Launching it allocates nothing, takes no lock and waits for nothing but, in [`PreparedTensor::run`], the stream.
#[derive(Debug)]
#[must_use = "nothing runs before `run` or `launch`"]
pub struct PreparedTensor<'a> {
    /// `None`: no elements.
    work: Option<(TensorLaunch, TensorChoice)>,
    home: Home,
    buffers: PhantomData<&'a mut [u8]>,
}

impl Quantizer {
    /// Checks a per-tensor call and prepares its launch; the first call for an element type loads the module.
    ///
    /// `x`: any number of elements · `q`: as many E4M3 codes · `s`: one scale, read with [`Scale::Static`], written with
    /// [`Scale::Dynamic`]. No elements: nothing to do, and nothing is asked of the device.
    ///
    /// # Errors
    /// Those of [`Quantizer::prepare`], less [`Error::Plan`]; [`Error::Shape`]: lengths, alignment, overlap.
    pub fn prepare_per_tensor<'a, T: GpuElement>(
        &self,
        x: &'a DeviceBuffer<T>,
        q: &'a mut DeviceBuffer<u8>,
        s: &'a mut DeviceBuffer<f32>,
        scale: Scale,
        zero_scale: ZeroRows,
    ) -> Result<PreparedTensor<'a>, Error> {
        // SAFETY: the buffers own their memory, and are borrowed for 'a, `q` and `s` exclusively.
        unsafe { self.prepare_per_tensor_slices(**x, **q, **s, scale, zero_scale) }
    }

    /// As [`Quantizer::prepare_per_tensor`], on parts of buffers: a `DeviceSlice` is a copyable address that borrows nothing.
    ///
    /// # Safety
    /// Until the end of `'a`, which the caller chooses:
    /// - the memory of the slices exists;
    /// - nothing else writes `x` or `s`, or reads or writes `q`; with [`Scale::Dynamic`] nothing else reads `s`.
    ///
    /// # Errors
    /// As [`Quantizer::prepare_per_tensor`].
    pub unsafe fn prepare_per_tensor_slices<'a, T: GpuElement>(
        &self,
        x: DeviceSlice<T>,
        q: DeviceSlice<u8>,
        s: DeviceSlice<f32>,
        scale: Scale,
        zero_scale: ZeroRows,
    ) -> Result<PreparedTensor<'a>, Error> {
        check_lens(x.len() as u64, q.len() as u64, s.len() as u64)?;
        let args = PerTensorArgs {
            element: T::ELEMENT,
            x: x.as_device_ptr().as_raw(),
            q: q.as_device_ptr().as_raw(),
            s: s.as_device_ptr().as_raw(),
            elements: x.len() as u64,
            scale,
            zero_scale,
        };
        args.check()?;
        let work = if args.elements == 0 {
            None
        } else {
            self.home().check()?;
            for (operand, address) in [("x", args.x), ("q", args.q), ("s", args.s)] {
                self.check_place(operand, address)?;
            }
            Some(self.resolve_per_tensor(&args)?)
        };
        Ok(PreparedTensor { work, home: self.home().clone(), buffers: PhantomData })
    }

    /// Enqueues one per-tensor call by addresses: with [`Scale::Dynamic`] a memset of `s` and two kernels, else one kernel.
    /// Size, alignment and overlap are checked, the buffers' place and size are not. The first call for an element type loads
    /// the module, which must not happen while `stream` is being captured: ask [`Quantizer::load`] before.
    ///
    /// # Safety
    /// - `x`, `q` and `s` are addresses of as many bytes as `args` say in memory that the quantizer's device reads and writes,
    ///   until the kernels are done. With [`Scale::Static`] `s` holds the scale by the time they run.
    /// - Until then nothing else writes `x` or `s`, or reads or writes `q`; with [`Scale::Dynamic`] nothing else reads `s`.
    /// - `stream` is null or a stream of the quantizer's context.
    ///
    /// # Errors
    /// As [`Quantizer::prepare_per_tensor`], less those on the buffers' place and length. After [`Error::Driver`] some of the
    /// work may be enqueued.
    pub unsafe fn quantize_per_tensor_raw(&self, args: PerTensorArgs, stream: CUstream) -> Result<(), Error> {
        args.check()?;
        if args.elements == 0 {
            return Ok(());
        }
        self.home().check()?;
        let (launch, _) = self.resolve_per_tensor(&args)?;
        // SAFETY: the context was checked above, the entries suit the addresses; the rest is what this function's caller
        // promises.
        unsafe { launch.enqueue(stream) }
    }

    /// What a per-tensor call by addresses would come to; `None`: there are no elements. Launches nothing and looks at no
    /// buffer, but loads the module.
    ///
    /// # Errors
    /// As [`Quantizer::quantize_per_tensor_raw`].
    pub fn choose_per_tensor(&self, args: &PerTensorArgs) -> Result<Option<TensorChoice>, Error> {
        args.check()?;
        if args.elements == 0 {
            return Ok(None);
        }
        self.home().check()?;
        let (_, choice) = self.resolve_per_tensor(args)?;
        Ok(Some(choice))
    }

    /// Finds the kernels for at least one element, in the quantizer's context, which is current.
    fn resolve_per_tensor(&self, args: &PerTensorArgs) -> Result<(TensorLaunch, TensorChoice), Error> {
        let PerTensorArgs { element, x, q, s, elements, scale, zero_scale } = *args;
        let module = self.module(Kernel::PerTensor, element)?;
        let artifact = module.artifact();
        let (sm_count, grid_limit) = (self.device().sm_count, self.grid_limit());
        let call = TensorCall { element, elements, scale, x, q, sm_count, grid_limit };
        let (absmax, quantize) = passes(artifact.target, call);
        let kernel = |pass: TensorPass| Ok::<_, Error>((module.function(pass.entry.name)?, pass));
        let launch = TensorLaunch {
            absmax: absmax.map(kernel).transpose()?,
            quantize: kernel(quantize)?,
            x,
            q,
            s,
            elements,
            guard: zero_scale == ZeroRows::Guarded,
        };
        let (target, math, backend) = (artifact.target, artifact.math, module.backend());
        let choice = TensorChoice { absmax, quantize, target, math, backend };
        report(args, &choice, self);
        Ok((launch, choice))
    }
}

/// Says what a call came to, and what was asked for.
fn report(args: &PerTensorArgs, choice: &TensorChoice, asked: &Quantizer) {
    tracing::debug!(
        artifact = %artifact_stem(Kernel::PerTensor, args.element, choice.target, choice.math),
        backend = %choice.backend,
        backend_asked = %asked.backend(),
        target_forced = asked.forced().target,
        math = %choice.math,
        math_of_device = %asked.device().math(),
        scale = %args.scale,
        absmax_entry = choice.absmax.map(|pass| pass.entry.name),
        absmax_ctas = choice.absmax.map(|pass| pass.ctas),
        entry = choice.quantize.entry.name,
        ctas = choice.quantize.ctas,
        threads = choice.quantize.threads,
        elements = args.elements,
        guard = args.zero_scale == ZeroRows::Guarded,
        "resolved a call"
    );
}

impl PerTensorArgs {
    fn check(&self) -> Result<(), Error> {
        Ok(check_addresses(self.element, self.elements, self.x, self.q, self.s)?)
    }
}

impl PreparedTensor<'_> {
    /// Launches the kernels in `stream` and waits until the stream is done; before, for what the default stream holds.
    ///
    /// # Errors
    /// [`Error::NoContext`], [`Error::ContextMismatch`], [`Error::Driver`].
    pub fn run(&mut self, stream: &Stream) -> Result<(), Error> {
        // `cust` fills and copies buffers in the default stream and may return before that is done; a non-blocking stream
        // would not wait for it.
        // SAFETY: the null stream always exists.
        unsafe { driver::synchronize(ptr::null_mut()) }?;
        // SAFETY: the buffers are borrowed, `q` and `s` exclusively, until this function returns, and the stream is done
        // by then.
        let launched = unsafe { self.launch(stream) };
        // Also after an error: a part may be in flight.
        // SAFETY: the stream exists while it is borrowed.
        let done = unsafe { driver::synchronize(stream.as_inner()) };
        launched.and(done)
    }

    /// Launches the kernels in `stream` and does not wait.
    ///
    /// # Safety
    /// Until the stream has passed the kernels, even after this `PreparedTensor` is gone:
    /// - the three buffers exist;
    /// - nothing else writes `x` or `s`, or reads or writes `q`, launches of this `PreparedTensor` in other streams included;
    ///   with [`Scale::Dynamic`] nothing else reads `s`.
    ///
    /// # Errors
    /// [`Error::NoContext`], [`Error::ContextMismatch`], [`Error::Driver`]. After the last some of the work may be enqueued.
    pub unsafe fn launch(&self, stream: &Stream) -> Result<(), Error> {
        let Some((launch, _)) = &self.work else { return Ok(()) };
        self.home.check()?;
        // SAFETY: the context was checked above, sizes, place and entries by `prepare_per_tensor`, and a stream of another
        // context is refused by the driver; the rest is what this function's caller promises.
        unsafe { launch.enqueue(stream.as_inner()) }
    }

    /// What the call came to; `None`: there are no elements.
    pub fn plan(&self) -> Option<TensorChoice> {
        self.work.map(|(_, choice)| choice)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::quantizer::tests::h200;
    use ptq_spec::ShapeError;

    fn args(elements: u64) -> PerTensorArgs {
        let (element, scale, zero_scale) = (Element::Bf16, Scale::Dynamic, ZeroRows::Legacy);
        PerTensorArgs { element, x: 0x1000, q: 0x2000, s: 0x3000, elements, scale, zero_scale }
    }

    /// Before the context, hence the device, is looked at.
    #[test]
    fn bad_arguments_are_told_first() {
        let quantizer = h200();
        let choose = |args: PerTensorArgs| quantizer.choose_per_tensor(&args);
        let shape = |args| match choose(args) {
            Err(Error::Shape(error)) => error,
            other => panic!("{other:?}"),
        };
        let kernel = "per_tensor";
        let misaligned = |operand, expected, actual| ShapeError::Misaligned { kernel, operand, expected, actual };
        assert_eq!(shape(PerTensorArgs { x: 0x1001, ..args(9) }), misaligned("x", 2, 0x1001));
        assert_eq!(shape(PerTensorArgs { s: 0x3002, ..args(9) }), misaligned("s", 4, 0x3002));
        assert_eq!(
            shape(PerTensorArgs { q: 0x1010, ..args(9) }),
            ShapeError::Overlap { kernel, operand: "x", other: "q" }
        );
        assert_eq!(shape(args(1 << 62)), ShapeError::Overflow { kernel, operand: "x", rows: 1, hidden: 1 << 62 });
        assert_eq!(choose(args(0)), Ok(None), "nothing to do needs no context");
    }
}
