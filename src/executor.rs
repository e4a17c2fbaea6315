//! One operation on either implementation, for a caller that chooses by one value and branches nowhere else.

use crate::cpu::{self, Input, Params};
use crate::spec::per_tensor::check_addresses;
use crate::spec::per_token::DEFAULT_SM_COUNT;
use crate::spec::per_token_extended::Layout;
use crate::{
    Backend, DeviceInfo, Element, Error, Extended, Granularity, Kernel, MathMode, PerTensorArgs, Quantizer, RawArgs,
    Scale, ScaledFp8Quant, Shape, probe, quantizer,
};
use half::{bf16, f16};
use ptq_host::cust::sys::CUstream;
use std::slice;

/// Quantizes where its [`Backend`] says: on the device of the current context, or on the CPU. The bits are the same.
///
/// ```
/// use per_token_quant_fp8::{Backend, Element, Executor, Kernel, RawArgs, Shape};
///
/// let executor = Executor::new(Some(Backend::Cpu))?; // `None`: as PTQ_BACKEND says, else what there is
/// executor.load(Kernel::PerToken, Element::F32)?;
/// let x = [7.0_f32, -3.5, 0.0, 1.75]; // x[1, 4]
/// let (mut q, mut s) = ([0_u8; 4], [0.0_f32; 1]); // q[1, 4], s[1]
/// let (x, q_, s_) = (x.as_ptr() as u64, q.as_mut_ptr() as u64, s.as_mut_ptr() as u64);
/// let args = RawArgs::new(Element::F32, x, q_, s_, Shape::new(1, 4)?);
/// // SAFETY: host memory of that shape, which nobody else uses.
/// unsafe { executor.quantize_raw(args, std::ptr::null_mut()) }?;
/// assert_eq!((q, s), ([0x7E, 0xF6, 0x00, 0x6E], [7.0 / 448.0]));
/// # Ok::<(), per_token_quant_fp8::Error>(())
/// ```
#[derive(Debug, Clone)]
pub enum Executor {
    /// On the device; operands are device memory.
    Gpu(Quantizer),
    /// On the CPU; operands are host memory, and a call is done when it returns.
    Cpu {
        /// Math mode.
        math: MathMode,
        /// Multiprocessor count whose threshold legacy zero rows follow.
        sm_count: u32,
    },
}

impl Executor {
    /// With the backend that is given, else that of `PTQ_BACKEND`, else [`Backend::Auto`].
    ///
    /// `Auto` takes the device of the current context, and the CPU where there is no driver, no device, or no target that
    /// runs on it. The CPU computes the bits of the current context's device, else of the first device, else those of
    /// precise math and [`DEFAULT_SM_COUNT`].
    ///
    /// # Errors
    /// - [`Error::UnknownBackend`] for `PTQ_BACKEND`, where no backend is given.
    /// - Those of [`Quantizer::new`]. [`Error::NoContext`] also with `Auto`: where there is a device, operands by address
    ///   are in its memory.
    pub fn new(backend: Option<Backend>) -> Result<Self, Error> {
        let backend = match backend {
            Some(backend) => backend,
            None => Backend::of_environment()?.unwrap_or_default(),
        };
        if backend == Backend::Cpu {
            let of_context = quantizer().ok().map(|quantizer| quantizer.device().clone());
            let first = || probe().ok().and_then(|driver| driver.devices.into_iter().next());
            return Ok(Self::cpu(of_context.or_else(first).as_ref(), "the backend asked for"));
        }
        match quantizer() {
            Ok(quantizer) if backend != Backend::Auto || quantizer.device().has_target() => {
                Ok(Self::Gpu(quantizer.with_backend(backend)))
            }
            Ok(quantizer) => Ok(Self::cpu(Some(quantizer.device()), "no target runs on the device")),
            Err(reason @ (Error::NoDriver { .. } | Error::NoDevice { .. })) if backend == Backend::Auto => {
                Ok(Self::cpu(None, &reason.to_string()))
            }
            Err(error) => Err(error),
        }
    }

    fn cpu(device: Option<&DeviceInfo>, reason: &str) -> Self {
        let math = device.map_or(MathMode::Precise, DeviceInfo::math);
        let sm_count = device.map_or(DEFAULT_SM_COUNT, |device| device.sm_count);
        tracing::debug!(reason, %math, sm_count, "the CPU quantizes");
        Self::Cpu { math, sm_count }
    }

    /// With another math mode.
    ///
    /// # Errors
    /// On a device those of [`Quantizer::with_math`]; the CPU has both.
    pub fn with_math(self, math: MathMode) -> Result<Self, Error> {
        match self {
            Self::Gpu(quantizer) => quantizer.with_math(math).map(Self::Gpu),
            Self::Cpu { sm_count, .. } => Ok(Self::Cpu { math, sm_count }),
        }
    }

    /// With another multiprocessor count for the threshold that legacy zero rows follow.
    #[must_use]
    pub fn with_sm_count(self, sm_count: u32) -> Self {
        match self {
            Self::Gpu(quantizer) => Self::Gpu(quantizer.with_sm_count(sm_count)),
            Self::Cpu { math, .. } => Self::Cpu { math, sm_count },
        }
    }

    /// [`Backend::Cpu`], or what the quantizer was told.
    pub fn backend(&self) -> Backend {
        match self {
            Self::Gpu(quantizer) => quantizer.backend(),
            Self::Cpu { .. } => Backend::Cpu,
        }
    }

    /// The math mode.
    pub fn math(&self) -> MathMode {
        match self {
            Self::Gpu(quantizer) => quantizer.math(),
            Self::Cpu { math, .. } => *math,
        }
    }

    /// The multiprocessor count that legacy zero rows follow.
    pub fn sm_count(&self) -> u32 {
        match self {
            Self::Gpu(quantizer) => quantizer.sm_count(),
            Self::Cpu { sm_count, .. } => *sm_count,
        }
    }

    /// Loads the kernels of an operation for an element type, as [`Quantizer::load`] does; the CPU has nothing to load.
    ///
    /// # Errors
    /// Those of [`Quantizer::load`].
    pub fn load(&self, kernel: Kernel, element: Element) -> Result<(), Error> {
        match self {
            Self::Gpu(quantizer) => quantizer.load(kernel, element),
            Self::Cpu { .. } => Ok(()),
        }
    }

    /// One call by addresses: [`Quantizer::quantize_raw`], or the same on host memory, where `stream` means nothing and the
    /// call is done on return.
    ///
    /// # Safety
    /// On a device that of [`Quantizer::quantize_raw`]. On the CPU:
    /// - `x`, `q` and `s` are addresses of as many initialised bytes as `shape` and the strides say, the outputs
    ///   writable; so is `device_rows` of a u32, unless it is 0;
    /// - during the call nothing else writes `x` or the count, or reads or writes the first `rows` rows of `q` and `s`.
    ///   The gaps between rows belong to the rows, though they are left alone.
    ///
    /// # Errors
    /// On a device those of [`Quantizer::quantize_raw`]. On the CPU [`Error::Shape`]: strides, bounds, alignment,
    /// overlap.
    pub unsafe fn quantize_raw(&self, args: RawArgs, stream: CUstream) -> Result<(), Error> {
        let params = match self {
            // SAFETY: as the caller promises.
            Self::Gpu(quantizer) => return unsafe { quantizer.quantize_raw(args, stream) },
            Self::Cpu { math, sm_count } => Params { math: *math, sm_count: *sm_count, options: args.options },
        };
        let layout = args.check()?;
        let shape = args.shape;
        // Also because the addresses of nothing may be null.
        if shape.rows() == 0 {
            return Ok(());
        }
        tracing::debug!(backend = %Backend::Cpu, math = %params.math, rows = shape.rows(), hidden = shape.hidden(), "resolved a call");
        match args.element {
            // SAFETY: the operands were checked above; the rest is what the caller promises, here and below.
            Element::F16 => unsafe { on_cpu::<f16>(args, layout, params) },
            // SAFETY: as above.
            Element::Bf16 => unsafe { on_cpu::<bf16>(args, layout, params) },
            // SAFETY: as above.
            Element::F32 => unsafe { on_cpu::<f32>(args, layout, params) },
        }
    }
}

/// Operands of [`Executor::scaled_fp8_quant_raw`] by addresses.
#[derive(Debug, Clone, Copy)]
pub struct ScaledFp8QuantArgs {
    /// Element type of `x`.
    pub element: Element,
    /// Address of `x[rows, hidden]`, contiguous, a multiple of the element's size.
    pub x: u64,
    /// Address of `q[rows_out, hidden]`, one byte each.
    pub q: u64,
    /// Address of the scales, f32, a multiple of 4: as many as [`crate::OutputShape::scales`] says, read with
    /// [`Granularity::Static`], else written.
    pub s: u64,
    /// Rows of `x`.
    pub rows: u64,
    /// Elements per row.
    pub hidden: u64,
}

impl Executor {
    /// The reference's serving entry, `scaled_fp8_quant`, by addresses: [`ScaledFp8Quant`] says which quantization it is. Rows
    /// of the outputs from `rows` on keep their bytes. Without rows nothing is written.
    ///
    /// ```
    /// use per_token_quant_fp8::{Backend, Element, Executor, Granularity, ScaledFp8Quant, ScaledFp8QuantArgs};
    ///
    /// let executor = Executor::new(Some(Backend::Cpu))?;
    /// let call = ScaledFp8Quant { num_token_padding: Some(2), ..ScaledFp8Quant::new(Granularity::PerTensor) };
    /// let shape = call.output_shape(1, 4)?; // before there is any memory
    /// assert_eq!((shape.rows_out, shape.scales), (2, 1));
    /// let x = [7.0_f32, -3.5, 0.0, 1.75]; // x[1, 4]
    /// let (mut q, mut s) = ([0xAA_u8; 8], [0.0_f32; 1]); // q[2, 4], s[1]
    /// let args = ScaledFp8QuantArgs {
    ///     element: Element::F32,
    ///     x: x.as_ptr() as u64,
    ///     q: q.as_mut_ptr() as u64,
    ///     s: s.as_mut_ptr() as u64,
    ///     rows: 1,
    ///     hidden: 4,
    /// };
    /// // SAFETY: host memory of those shapes, which nobody else uses.
    /// unsafe { executor.scaled_fp8_quant_raw(call, args, std::ptr::null_mut()) }?;
    /// assert_eq!((q, s), ([0x7E, 0xF6, 0x00, 0x6E, 0xAA, 0xAA, 0xAA, 0xAA], [7.0 / 448.0]));
    /// # Ok::<(), per_token_quant_fp8::Error>(())
    /// ```
    ///
    /// # Safety
    /// As [`Executor::quantize_raw`], for outputs of the shapes that [`ScaledFp8Quant::output_shape`] says. On a device, with
    /// one scale for the tensor, as [`Quantizer::quantize_per_tensor_raw`].
    ///
    /// # Errors
    /// - [`Error::Shape`]: those of [`ScaledFp8Quant::output_shape`]; alignment, overlap.
    /// - On a device those of [`Quantizer::quantize_raw`] and [`Quantizer::quantize_per_tensor_raw`].
    pub unsafe fn scaled_fp8_quant_raw(
        &self,
        call: ScaledFp8Quant,
        args: ScaledFp8QuantArgs,
        stream: CUstream,
    ) -> Result<(), Error> {
        let ScaledFp8QuantArgs { element, x, q, s, rows, hidden } = args;
        let output = call.output_shape(rows, hidden)?;
        let scale = match call.granularity {
            Granularity::PerToken => {
                let shape = Shape::padded(rows, output.rows_out, hidden)?;
                let args = RawArgs { options: call.options, ..RawArgs::new(element, x, q, s, shape) };
                // SAFETY: the caller's duties.
                return unsafe { self.quantize_raw(args, stream) };
            }
            Granularity::PerTensor => Scale::Dynamic,
            Granularity::Static => Scale::Static,
        };
        // `output_shape` found that the product fits. The rows after the input's are nobody's.
        let elements = rows * hidden;
        let args = PerTensorArgs { element, x, q, s, elements, scale, zero_scale: call.options.zero_rows };
        match self {
            // SAFETY: the caller's duties.
            Self::Gpu(quantizer) => unsafe { quantizer.quantize_per_tensor_raw(args, stream) },
            // SAFETY: the caller's duties.
            Self::Cpu { math, .. } => unsafe { per_tensor_on_cpu(args, *math) },
        }
    }
}

/// # Safety
/// - `x` and `q` are addresses of `elements` initialised elements, `s` of a scale; `q` is writable, and with
///   [`Scale::Dynamic`] `s`.
/// - During the call nothing else writes `x` or `s`, or reads or writes `q`; with [`Scale::Dynamic`] nothing else reads `s`.
unsafe fn per_tensor_on_cpu(args: PerTensorArgs, math: MathMode) -> Result<(), Error> {
    let PerTensorArgs { element, x, q, s, elements, .. } = args;
    check_addresses(element, elements, x, q, s)?;
    // Also because the addresses of nothing may be null.
    if elements == 0 {
        return Ok(());
    }
    tracing::debug!(backend = %Backend::Cpu, %math, scale = %args.scale, elements, "resolved a call");
    match element {
        // SAFETY: alignment and overlap were checked above; the rest is what the caller promises, here and below.
        Element::F16 => unsafe { per_tensor_of::<f16>(args, math) },
        // SAFETY: as above.
        Element::Bf16 => unsafe { per_tensor_of::<bf16>(args, math) },
        // SAFETY: as above.
        Element::F32 => unsafe { per_tensor_of::<f32>(args, math) },
    }
}

/// # Safety
/// As [`per_tensor_on_cpu`], with at least one element of `T`; size, alignment and overlap are checked.
unsafe fn per_tensor_of<T: Input>(args: PerTensorArgs, math: MathMode) -> Result<(), Error> {
    let elements = args.elements as usize;
    // SAFETY: the caller promises that many elements that nobody writes meanwhile; aligned, of any bits (`Input`).
    let x = unsafe { slice::from_raw_parts(args.x as *const T, elements) };
    // SAFETY: the caller promises that many bytes that nobody else uses meanwhile; `x` and `s` do not overlap them.
    let q = unsafe { slice::from_raw_parts_mut(args.q as *mut u8, elements) };
    let zero_scale = args.zero_scale;
    match args.scale {
        Scale::Static => {
            // SAFETY: the caller promises a scale that nobody writes meanwhile; aligned.
            let s = unsafe { *(args.s as *const f32) };
            Ok(cpu::per_tensor::quantize_static(x, q, s, math, zero_scale)?)
        }
        Scale::Dynamic => {
            // SAFETY: the caller promises a scale that nobody else uses meanwhile; aligned, apart from `x` and `q`.
            let s = unsafe { &mut *(args.s as *mut f32) };
            Ok(cpu::per_tensor::quantize_dynamic(x, q, s, math, zero_scale)?)
        }
    }
}

/// # Safety
/// As [`Executor::quantize_raw`] on the CPU, with at least one row of `T`; `layout` is what `RawArgs::check` returned.
unsafe fn on_cpu<T: Input>(args: RawArgs, layout: Layout, params: Params) -> Result<(), Error> {
    let rows = match args.device_rows {
        0 => args.shape.rows(),
        // SAFETY: the caller promises a u32 there that nobody writes meanwhile; aligned.
        address => args.shape.rows().min(unsafe { *(address as *const u32) }.into()),
    };
    if rows == 0 {
        return Ok(());
    }
    // What becomes of zero scales follows all rows.
    let params = Params { options: params.options.decided(args.shape.rows(), params.sm_count), ..params };
    // Rows of the outputs from `rows` on may be in use by others.
    let shape = Shape::new(rows, args.shape.hidden())?;
    let extended = Extended { x_stride: layout.x_stride(), q_stride: layout.q_stride(), ..args.extended };
    let layout = extended.layout(shape)?;
    // The caller has memory of these sizes.
    let (x_elements, q_elements) = (layout.x_elements() as usize, layout.q_elements() as usize);
    // SAFETY: the caller promises that many elements that nobody writes meanwhile; aligned, of any bits (`Input`).
    let x = unsafe { slice::from_raw_parts(args.x as *const T, x_elements) };
    // SAFETY: the caller promises that many bytes that nobody else uses meanwhile; `x` and `s` do not overlap them.
    let q = unsafe { slice::from_raw_parts_mut(args.q as *mut u8, q_elements) };
    // SAFETY: the caller promises that many scales that nobody else uses meanwhile; aligned, apart from `x` and `q`.
    let s = unsafe { slice::from_raw_parts_mut(args.s as *mut f32, rows as usize) };
    Ok(cpu::quantize_extended(x, q, s, shape, params, extended)?)
}
