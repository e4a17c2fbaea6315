//! Dynamic per-token FP8 E4M3 quantization.

pub use ptq_cpu as cpu;
pub use ptq_spec::{Dispatch, Element, MathMode, Options, Shape, ShapeError, ZeroRows};
