//! Constants and plain types that device code, the GPU runtime and the CPU implementation all read.
//!
//! No number of the contract is written twice: whatever two rooms must agree on lives here. `no_std`, no dependencies,
//! no behaviour beyond checks and table look-ups, so that it compiles for `nvptx64-nvidia-cuda` as it is.
#![no_std]
#![forbid(unsafe_code)]

pub mod artifact;
pub mod element;
pub mod error;
pub mod fp8;
pub mod kernel;
pub mod math_mode;
pub mod per_tensor;
pub mod per_token;
pub mod per_token_extended;
pub mod rcp;
pub mod scaled_fp8_quant;
pub mod shape;
pub mod target;
pub mod zero_rows;

pub use artifact::{ArtifactStem, artifact_stem, every_artifact};
pub use element::Element;
pub use error::ShapeError;
pub use kernel::Kernel;
pub use math_mode::MathMode;
pub use per_tensor::Scale;
pub use per_token_extended::{Extended, MIN_SCALE};
pub use scaled_fp8_quant::{Granularity, OutputShape, ScaledFp8Quant};
pub use shape::Shape;
pub use target::{ComputeCapability, TARGETS, Target};
pub use zero_rows::{Dispatch, Options, ZeroRows};
