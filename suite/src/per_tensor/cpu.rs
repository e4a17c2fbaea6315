//! The CPU implementations as subjects.

use super::{Call, GivenScale, PerTensor};
use crate::{Output, Tensor};
use ptq_cpu::{Input, Isa, per_tensor};
use ptq_spec::ShapeError;
use std::error::Error;

/// [`ptq_cpu::per_tensor::scalar`].
#[derive(Debug, Clone, Copy)]
pub struct Scalar;

/// [`ptq_cpu::per_tensor`].
#[derive(Debug, Clone, Copy)]
pub struct Rayon;

/// [`ptq_cpu::per_tensor`] by one instruction set. An error where this machine lacks it.
#[derive(Debug, Clone, Copy)]
pub struct With(pub Isa);

impl PerTensor for Scalar {
    fn name(&self) -> String {
        "cpu scalar".into()
    }

    fn quantize(&self, call: &Call, out: &mut Output) -> Result<(), Box<dyn Error>> {
        Ok(scalar(call, out)?)
    }
}

impl PerTensor for Rayon {
    fn name(&self) -> String {
        "cpu rayon".into()
    }

    fn quantize(&self, call: &Call, out: &mut Output) -> Result<(), Box<dyn Error>> {
        Ok(fast(call, out)?)
    }
}

impl PerTensor for With {
    fn name(&self) -> String {
        format!("cpu {}", self.0)
    }

    fn quantize(&self, call: &Call, out: &mut Output) -> Result<(), Box<dyn Error>> {
        Ok(with(self.0, call, out).ok_or_else(|| format!("this machine has no {}", self.0))??)
    }
}

/// `$body` with the alias `$x` for the elements of the input.
macro_rules! with_input {
    ($call:expr, $x:ident => $body:expr) => {
        match &*$call.x {
            Tensor::F16(x) => {
                let $x = x.operand();
                $body
            }
            Tensor::Bf16(x) => {
                let $x = x.operand();
                $body
            }
            Tensor::F32(x) => {
                let $x = x.operand();
                $body
            }
        }
    };
}

pub(super) fn scalar(call: &Call, out: &mut Output) -> Result<(), ShapeError> {
    fn of<T: Input>(x: &[T], call: &Call, out: &mut Output) -> Result<(), ShapeError> {
        let (q, s) = (out.q.operand_mut(), &mut out.s.operand_mut()[0]);
        match call.scale {
            GivenScale::Static(_) => per_tensor::scalar::quantize_static(x, q, *s, call.math, call.zero_scale),
            GivenScale::Dynamic => per_tensor::scalar::quantize_dynamic(x, q, s, call.math, call.zero_scale),
        }
    }
    with_input!(call, x => of(x, call, out))
}

pub(super) fn fast(call: &Call, out: &mut Output) -> Result<(), ShapeError> {
    fn of<T: Input>(x: &[T], call: &Call, out: &mut Output) -> Result<(), ShapeError> {
        let (q, s) = (out.q.operand_mut(), &mut out.s.operand_mut()[0]);
        match call.scale {
            GivenScale::Static(_) => per_tensor::quantize_static(x, q, *s, call.math, call.zero_scale),
            GivenScale::Dynamic => per_tensor::quantize_dynamic(x, q, s, call.math, call.zero_scale),
        }
    }
    with_input!(call, x => of(x, call, out))
}

fn with(isa: Isa, call: &Call, out: &mut Output) -> Option<Result<(), ShapeError>> {
    fn of<T: Input>(isa: Isa, x: &[T], call: &Call, out: &mut Output) -> Option<Result<(), ShapeError>> {
        let (q, s) = (out.q.operand_mut(), &mut out.s.operand_mut()[0]);
        match call.scale {
            GivenScale::Static(_) => per_tensor::quantize_static_with(isa, x, q, *s, call.math, call.zero_scale),
            GivenScale::Dynamic => per_tensor::quantize_dynamic_with(isa, x, q, s, call.math, call.zero_scale),
        }
    }
    with_input!(call, x => of(isa, x, call, out))
}
