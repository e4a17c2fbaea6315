//! Dynamic per-token FP8 E4M3 quantization, bit-exact with SGLang's `sgl_per_token_quant_fp8`, on NVIDIA GPUs and CPUs.
//!
//! `x[rows, hidden]` of f16, bf16 or f32 becomes E4M3 codes `q[rows, hidden]`, one byte each, and scales `s[rows]` in f32.
//! For each row (each token):
//!
//! ```text
//! s = max |x| / 448            448 is the largest finite E4M3 value
//! q = e4m3(clamp(x * (1 / s), ±448))
//! ```
//!
//! so that `q * s` is close to `x`. How scale, inverse and product are rounded is the [`MathMode`], which the reference
//! takes from the device. What becomes of rows whose scale is 0 is the [`Options`]. The bits depend on nothing else: not on
//! the device, the kernel or the backend. `hidden` is a multiple of 4; the outputs may have more rows than the input, which
//! keep their bytes ([`Shape::padded`]). Rows may lie apart from each other and scales may be bounded, as vLLM does:
//! [`Extended`], which other kernels serve.
//!
//! One scale for a whole tensor, the caller's or the tensor's: [`spec::per_tensor`] says what is computed,
//! [`cpu::per_tensor`] computes it on the CPU. The reference's serving entry, which chooses between all three, is
//! [`ScaledFp8Quant`].
//!
//! # On the CPU
//!
//! ```
//! use half::bf16;
//! use per_token_quant_fp8::cpu::{self, Params};
//! use per_token_quant_fp8::{MathMode, Shape, ShapeError};
//!
//! let x = [7.0, -3.5, 0.0, 1.75].map(bf16::from_f32); // x[1, 4]
//! let (mut q, mut s) = ([0; 4], [0.0; 1]); // q[1, 4], s[1]
//! cpu::quantize(&x, &mut q, &mut s, Shape::new(1, 4)?, Params::new(MathMode::Precise))?;
//! assert_eq!(s, [7.0 / 448.0]);
//! assert_eq!(q, [0x7E, 0xF6, 0x00, 0x6E]); // 448, -224, 0, 112
//! # Ok::<(), ShapeError>(())
//! ```
#![cfg_attr(
    feature = "cuda",
    doc = r#"
# On a GPU

With the feature `cuda`, on whatever context is current:

```no_run
use per_token_quant_fp8::cust::memory::DeviceBuffer;
use per_token_quant_fp8::cust::stream::{Stream, StreamFlags};
use per_token_quant_fp8::{Bf16, Options, Shape, cust, probe, quantizer};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    probe()?; // says what is missing, be it driver or device
    let _context = cust::quick_init()?;
    let stream = Stream::new(StreamFlags::DEFAULT, None)?;
    let quantizer = quantizer()?;

    let shape = Shape::new(16, 4096)?;
    let x = DeviceBuffer::from_slice(&vec![Bf16(half::bf16::ONE); 16 * 4096])?; // x[16, 4096]
    let mut q = DeviceBuffer::<u8>::zeroed(16 * 4096)?; // q[16, 4096]
    let mut s = DeviceBuffer::<f32>::zeroed(16)?; // s[16]
    quantizer.prepare(&x, &mut q, &mut s, shape, Options::default())?.run(&stream)?;
    Ok(())
}
```

An engine with pointers of its own calls [`Quantizer::quantize_raw`]. Streams, capture and threads: [`ptq_host`].

Where there is no driver or no device, [`probe`] and [`quantizer`] say so as an [`Error`], and the program can take [`cpu`]
instead: give it the [`Params`](cpu::Params) of the device whose bits are wanted. An [`Executor`] makes that choice by one
value, a [`Backend`] or the environment variable `PTQ_BACKEND`, and then takes the same calls.
"#
)]
#![cfg_attr(
    not(feature = "cuda"),
    doc = "\n# On a GPU\n\nThe feature `cuda` brings the GPU runtime; see the README for what it needs at build time."
)]

#[doc(inline)]
pub use ptq_cpu as cpu;
#[doc(inline)]
pub use ptq_spec as spec;
pub use ptq_spec::{
    ComputeCapability, Dispatch, Element, Extended, Granularity, Kernel, MIN_SCALE, MathMode, Options, OutputShape,
    Scale, ScaledFp8Quant, Shape, ShapeError, TARGETS, Target, ZeroRows,
};

#[cfg(feature = "cuda")]
pub use ptq_host::{
    Artifact, Artifacts, Backend, Bf16, Choice, DeviceInfo, Driver, DriverError, DriverVersion, Error, F16, GpuElement,
    Image, PerTensorArgs, Plan, PlanError, Prepared, PreparedTensor, Quantizer, RawArgs, TensorChoice, TensorPass,
    cust, probe,
};

#[cfg(feature = "cuda")]
mod executor;
#[cfg(feature = "cuda")]
pub use executor::{Executor, ScaledFp8QuantArgs};

#[cfg(feature = "cuda")]
include!(concat!(env!("OUT_DIR"), "/artifacts.rs"));

/// A quantizer with the embedded [`ARTIFACTS`], on the device of the current context.
///
/// # Errors
/// Those of [`Quantizer::new`].
#[cfg(feature = "cuda")]
pub fn quantizer() -> Result<Quantizer, Error> {
    Quantizer::new(ARTIFACTS)
}

/// The README's examples, compiled and run.
#[cfg(all(doctest, feature = "cuda"))]
#[doc = include_str!("../README.md")]
struct Readme;
