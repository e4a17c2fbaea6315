//! The one test suite, generic over an implementation.
//!
//! Whoever quantizes implements [`Implementation`] and passes the cases of every family of [`FAMILIES`] through [`run`], and
//! generated calls through [`property`]; [`for_each_family`] stamps one test per family.
//! Bytes are compared, never values: outputs are poisoned with the complement of what is expected, so that an element
//! left unwritten fails, and every buffer lies between guards, so that a write beyond it fails too.
//!
//! Per-tensor quantization has a suite of its own in [`per_tensor`], of the same making.
//!
//! ```
//! use ptq_suite::{Budget, FAMILIES, Oracle, cpu, run};
//!
//! let small = Budget { rows: 64, elements: 1 << 16 };
//! for family in FAMILIES.iter().filter(|family| ["padded", "zero_scales"].contains(&family.name)) {
//!     run(&cpu::Rayon, Oracle::Scalar, family.cases(small)).unwrap();
//! }
//! ```
#![forbid(unsafe_code)]

mod buffer;
mod case;
pub mod cases;
mod check;
pub mod cpu;
mod family;
mod fill;
pub mod golden;
pub mod per_tensor;
mod property;
mod sample;

pub use buffer::Buffer;
pub use case::{Case, Output, Tensor};
pub use check::{Failure, Failures, Implementation, Mismatch, Oracle, Place, Reason, check, run};
pub use family::{Budget, Cases, FAMILIES, Family};
pub use fill::random_rows;
pub use property::{Falsified, property};
