//! Bit-exact CPU implementation of per-token quantization, and of [per-tensor](per_tensor) quantization.
//!
//! `x[rows, hidden]` of f16, bf16 or f32 becomes E4M3 codes `q[rows_out, hidden]`, one byte each, and scales
//! `s[rows_out]` in f32; `q * s` dequantizes. Both [`MathMode`](ptq_spec::MathMode)s, on any machine.
//!
//! [`quantize_extended`] takes row strides and bounds on the scales.
//!
//! Two implementations of the same bits: [`scalar`] reads like the contract and judges every other one;
//! [`quantize`] is the fast one, compiled for each [`Isa`] and run by the best that the machine has.
//!
//! With the feature `rayon`, on by default, it takes the threads of the current rayon pool; without, the calling thread.
#![deny(unsafe_code)]

pub mod e4m3;
mod input;
mod isa;
mod params;
pub mod per_tensor;
mod per_token;
mod row;
mod rows;
pub mod scalar;

pub use input::Input;
pub use isa::Isa;
pub use params::Params;
pub use per_token::{quantize, quantize_extended, quantize_with};
