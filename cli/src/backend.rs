//! Who computes, and the options that depend on the device.

use crate::args::{Backend, QuantizeArgs};
use crate::chunks::elements;
use crate::error::Error;
use crate::gpu::{self, Gpu, Presence};
use crate::record::Recipe;
use half::{bf16, f16};
use per_token_quant_fp8::cpu::{Input, Params};
use per_token_quant_fp8::spec::per_token::DEFAULT_SM_COUNT;
use per_token_quant_fp8::{DeviceInfo, Element, MathMode, Options, Shape, ShapeError};
use std::time::{Duration, Instant};

/// Who computes.
#[derive(Debug)]
pub enum Engine {
    /// This process, on every core.
    Cpu,
    /// A GPU.
    Gpu(Gpu),
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

/// Resolves what the command line leaves to the device, and opens the backend.
///
/// # Errors
/// [`Error::NoDevice`] when a GPU is asked for and there is none, [`Error::Gpu`] when there is one that does not work.
pub fn resolve(args: &QuantizeArgs) -> Result<(Engine, Recipe), Error> {
    let failed = |source| Error::Gpu { source };
    let device = match args.backend {
        // Nothing is left to the device: do not even look, for it may be broken.
        Backend::Cpu if args.math.is_some() && args.sm_count.is_some() => None,
        Backend::Cpu | Backend::Auto => gpu::presence().map_err(failed)?.device(),
        Backend::Aot | Backend::Jit => match gpu::presence().map_err(failed)? {
            Presence::Absent(absence) => return Err(Error::NoDevice { backend: args.backend.name(), absence }),
            present => present.device(),
        },
    };
    let math = args.math.unwrap_or_else(|| device.as_ref().map_or(MathMode::Precise, DeviceInfo::math));
    let params = Params {
        math,
        options: Options { zero_rows: args.zero_rows, dispatch: args.dispatch },
        sm_count: args.sm_count.unwrap_or_else(|| device.as_ref().map_or(DEFAULT_SM_COUNT, |d| d.sm_count)),
    };
    let engine = match (args.backend.of_runtime(), device) {
        (Some(backend), Some(device)) => Engine::Gpu(Gpu::open(&device, backend, math).map_err(failed)?),
        _ => Engine::Cpu,
    };
    Ok((engine, Recipe { params, select: args.select.clone() }))
}

impl Engine {
    /// Quantizes `x` [rows, hidden], bytes of `element` at any address, to `q` [rows, hidden] and `s` [rows].
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

fn on_cpu<T: Input>(x: &[T], q: &mut [u8], s: &mut [f32], shape: Shape, params: Params) -> Result<Ran, ComputeError> {
    let start = Instant::now();
    per_token_quant_fp8::cpu::quantize(x, q, s, shape, params)?;
    Ok(Ran { backend: Backend::Cpu.name(), time: start.elapsed() })
}
