//! The GPU: what there is, and chunks quantized on it.

use crate::backend::Ran;
use crate::chunks::elements;
use per_token_quant_fp8::cust::context::Context;
use per_token_quant_fp8::cust::device::Device;
use per_token_quant_fp8::cust::error::CudaError;
use per_token_quant_fp8::cust::memory::{CopyDestination, DeviceBuffer};
use per_token_quant_fp8::cust::stream::{Stream, StreamFlags};
use per_token_quant_fp8::{self as ptq, Backend, Bf16, DeviceInfo, Driver, Element, F16, GpuElement, MathMode};
use per_token_quant_fp8::{Options, Quantizer, Shape};
use std::fmt;
use std::time::Instant;

/// Driver and devices, or which of them is missing.
#[derive(Debug)]
pub enum Presence {
    /// A driver with at least one device.
    Present(Driver),
    /// No driver or no device.
    Absent(ptq::Error),
}

impl Presence {
    /// The device that is used: the first that the driver shows.
    pub fn device(self) -> Option<DeviceInfo> {
        match self {
            Self::Present(driver) => driver.devices.into_iter().next(),
            Self::Absent(_) => None,
        }
    }
}

/// What this machine has.
///
/// # Errors
/// [`Error::Runtime`] for a driver that does not work.
pub fn presence() -> Result<Presence, Error> {
    match ptq::probe() {
        Ok(driver) => Ok(Presence::Present(driver)),
        Err(absence @ (ptq::Error::NoDriver { .. } | ptq::Error::NoDevice { .. })) => Ok(Presence::Absent(absence)),
        Err(error) => Err(error.into()),
    }
}

/// What can fail on a device.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The GPU runtime refuses or fails.
    #[error(transparent)]
    Runtime(#[from] ptq::Error),
    /// The driver refuses or fails.
    #[error("{doing} failed: {source}; --backend cpu does without the GPU")]
    Driver {
        /// What was tried.
        doing: &'static str,
        /// The driver's answer.
        source: CudaError,
    },
}

/// Turns the driver's answer into an error that says what was tried.
fn driver(doing: &'static str) -> impl Fn(CudaError) -> Error {
    move |source| Error::Driver { doing, source }
}

/// A device that is in use.
pub struct Gpu {
    quantizer: Quantizer,
    stream: Stream,
    /// Last, so that it outlives the stream.
    _context: Context,
}

impl fmt::Debug for Gpu {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gpu").field("quantizer", &self.quantizer).finish_non_exhaustive()
    }
}

impl Gpu {
    /// Opens `device` for one backend and math mode, on this thread.
    ///
    /// # Errors
    /// [`Error`], also for a math mode that is not proved for the device.
    pub fn open(device: &DeviceInfo, backend: Backend, math: MathMode) -> Result<Self, Error> {
        let handle = Device::get_device(device.ordinal as u32).map_err(driver("opening the device"))?;
        let context = Context::new(handle).map_err(driver("creating a context on the device"))?;
        // Not a non-blocking one: copies and fills below run in the default stream, where the end of the call is not always
        // the end of the work, and this stream waits for it.
        let stream = Stream::new(StreamFlags::DEFAULT, None).map_err(driver("creating a stream on the device"))?;
        let quantizer = ptq::quantizer()?.with_backend(backend).with_math(math)?;
        Ok(Self { quantizer, stream, _context: context })
    }

    /// Quantizes `x[rows, hidden]`, bytes of `element` at any address, to `q[rows, hidden]` and `s[rows]`.
    ///
    /// # Errors
    /// [`Error`].
    pub fn quantize(
        &self,
        element: Element,
        x: &[u8],
        q: &mut [u8],
        s: &mut [f32],
        shape: Shape,
        options: Options,
    ) -> Result<Ran, Error> {
        match element {
            Element::F16 => self.run::<F16>(&elements(x), q, s, shape, options),
            Element::Bf16 => self.run::<Bf16>(&elements(x), q, s, shape, options),
            Element::F32 => self.run::<f32>(&elements(x), q, s, shape, options),
        }
    }

    fn run<T: GpuElement>(
        &self,
        x: &[T],
        q: &mut [u8],
        s: &mut [f32],
        shape: Shape,
        options: Options,
    ) -> Result<Ran, Error> {
        let device_x = DeviceBuffer::from_slice(x).map_err(driver("copying a chunk to the device"))?;
        let mut device_q = DeviceBuffer::<u8>::zeroed(q.len()).map_err(driver("allocating the codes on the device"))?;
        let mut device_s =
            DeviceBuffer::<f32>::zeroed(s.len()).map_err(driver("allocating the scales on the device"))?;
        let mut prepared = self.quantizer.prepare(&device_x, &mut device_q, &mut device_s, shape, options)?;
        let backend = prepared.plan().map_or(self.quantizer.backend(), |choice| choice.backend);
        let start = Instant::now();
        prepared.run(&self.stream)?;
        let time = start.elapsed();
        device_q.copy_to(q).map_err(driver("copying the codes back"))?;
        device_s.copy_to(s).map_err(driver("copying the scales back"))?;
        Ok(Ran { backend: backend.name(), time })
    }
}
