//! The one test suite, generic over an implementation.
//!
//! Whoever quantizes implements [`Implementation`] and passes the cases of [`golden`] and [`cases`] through [`run`].
//! Bytes are compared, never values: outputs are poisoned with the complement of what is expected, so that an element
//! left unwritten fails, and every buffer lies between guards, so that a write beyond it fails too.
//!
//! ```
//! use ptq_suite::{Oracle, cases, cpu, golden, run};
//!
//! run(&cpu::Rayon, Oracle::Scalar, golden::cases()).unwrap();
//! run(&cpu::Rayon, Oracle::Scalar, cases::padded()).unwrap();
//! ```
#![forbid(unsafe_code)]

mod buffer;
mod case;
pub mod cases;
mod check;
pub mod cpu;
mod fill;
pub mod golden;
mod sample;

pub use buffer::Buffer;
pub use case::{Case, Output, Tensor};
pub use check::{Failure, Failures, Implementation, Mismatch, Oracle, Place, Reason, check, run};
pub use fill::random_rows;
