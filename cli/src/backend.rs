//! Who computes, and the options that depend on the device.

use crate::args::QuantizeArgs;
use crate::chunks::elements;
use crate::error::Error;
use crate::gpu::{self, Gpu, Presence};
use crate::record::Recipe;
use half::{bf16, f16};
use per_token_quant_fp8::cpu::{Input, Params};
use per_token_quant_fp8::spec::per_token::DEFAULT_SM_COUNT;
use per_token_quant_fp8::{Backend, DeviceInfo, Element, MathMode, Options, Shape, ShapeError};
use std::time::{Duration, Instant};

/// Who computes.
#[derive(Debug)]
pub enum Engine {
    /// This process, on every core.
    Cpu,
    /// A GPU.
    Gpu(Box<Gpu>),
}

/// Who computed a chunk and for how long.
#[derive(Debug, Clone, Copy)]
pub struct Ran {
    /// Name as on the command line.
    pub backend: &'static str,
    /// Time of the computation alone.
    pub time: Duration,
}

/// Why a chunk was not computed.
#[derive(Debug, thiserror::Error)]
pub enum ComputeError {
    /// A precondition is not met.
    #[error(transparent)]
    Shape(#[from] ShapeError),
    /// The GPU runtime failed.
    #[error(transparent)]
    Gpu(#[from] gpu::Error),
}

/// The device that options and backend may depend on; `None` where there is none, or it does not matter.
///
/// # Errors
/// [`Error::NoDevice`] when a GPU is asked for and there is none, [`Error::Gpu`] when the driver does not work.
pub fn device(args: &QuantizeArgs, backend: Backend) -> Result<Option<DeviceInfo>, Error> {
    // Nothing is left to the device: do not even look, for it may be broken.
    if backend == Backend::Cpu && args.math.is_some() && args.sm_count.is_some() {
        return Ok(None);
    }
    match (gpu::presence().map_err(|source| Error::Gpu { source })?, backend) {
        (Presence::Absent(absence), Backend::Aot | Backend::Jit) => {
            Err(Error::NoDevice { backend: backend.name(), absence })
        }
        (presence, _) => Ok(presence.device()),
    }
}

/// Resolves what the command line leaves to the device.
pub fn recipe(args: &QuantizeArgs, device: Option<&DeviceInfo>) -> Recipe {
    let params = Params {
        math: args.math.unwrap_or_else(|| device.map_or(MathMode::Precise, DeviceInfo::math)),
        options: Options { zero_rows: args.zero_rows, dispatch: args.dispatch },
        sm_count: args.sm_count.unwrap_or_else(|| device.map_or(DEFAULT_SM_COUNT, |device| device.sm_count)),
    };
    Recipe { params, select: args.select.clone() }
}

impl Engine {
    /// Opens what `backend` says, on `device`, which is there if a GPU is asked for.
    ///
    /// # Errors
    /// [`Error::Gpu`] for a device that does not work, or not in this math mode.
    pub fn open(backend: Backend, device: Option<&DeviceInfo>, math: MathMode) -> Result<Self, Error> {
        match device.filter(|device| on_gpu(backend, device)) {
            Some(device) => {
                let gpu = Gpu::open(device, backend, math).map_err(|source| Error::Gpu { source })?;
                Ok(Self::Gpu(Box::new(gpu)))
            }
            None => Ok(Self::Cpu),
        }
    }

    /// Quantizes `x[rows, hidden]`, bytes of `element` at any address, to `q[rows, hidden]` and `s[rows]`.
    ///
    /// # Errors
    /// [`ComputeError`].
    pub fn quantize(
        &self,
        element: Element,
        x: &[u8],
        q: &mut [u8],
        s: &mut [f32],
        shape: Shape,
        params: Params,
    ) -> Result<Ran, ComputeError> {
        match self {
            Self::Gpu(gpu) => Ok(gpu.quantize(element, x, q, s, shape, params.options)?),
            Self::Cpu => match element {
                Element::F16 => on_cpu::<f16>(&elements(x), q, s, shape, params),
                Element::Bf16 => on_cpu::<bf16>(&elements(x), q, s, shape, params),
                Element::F32 => on_cpu::<f32>(&elements(x), q, s, shape, params),
            },
        }
    }
}

/// Whether the device computes; `auto` takes the CPU beside one that no target runs on.
fn on_gpu(backend: Backend, device: &DeviceInfo) -> bool {
    match backend {
        Backend::Cpu => false,
        Backend::Auto => device.has_target(),
        Backend::Aot | Backend::Jit => true,
    }
}

fn on_cpu<T: Input>(x: &[T], q: &mut [u8], s: &mut [f32], shape: Shape, params: Params) -> Result<Ran, ComputeError> {
    let start = Instant::now();
    per_token_quant_fp8::cpu::quantize(x, q, s, shape, params)?;
    Ok(Ran { backend: Backend::Cpu.name(), time: start.elapsed() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use per_token_quant_fp8::ComputeCapability;

    #[test]
    fn auto_is_the_cpu_beside_a_device_that_is_no_target() {
        let device = |major, minor| DeviceInfo {
            ordinal: 0,
            name: String::new(),
            capability: ComputeCapability(major, minor),
            sm_count: 40,
        };
        for (major, minor, auto) in [(6, 1, false), (7, 5, false), (8, 0, true), (9, 0, true), (12, 1, true)] {
            let device = device(major, minor);
            assert_eq!(on_gpu(Backend::Auto, &device), auto, "{major}.{minor}");
            // Who asks for the GPU hears why it does not serve.
            assert!(on_gpu(Backend::Aot, &device) && on_gpu(Backend::Jit, &device));
            assert!(!on_gpu(Backend::Cpu, &device));
        }
    }
}
