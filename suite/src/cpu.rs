//! The CPU implementations as the suite's subjects.

use crate::{Case, Implementation, Output, Tensor};
use ptq_cpu::Isa;
use ptq_spec::ShapeError;
use std::error::Error;

/// [`ptq_cpu::scalar::quantize`].
#[derive(Debug, Clone, Copy)]
pub struct Scalar;

/// [`ptq_cpu::quantize`].
#[derive(Debug, Clone, Copy)]
pub struct Rayon;

/// [`ptq_cpu::quantize_with`] one instruction set. An error where this machine lacks it.
#[derive(Debug, Clone, Copy)]
pub struct With(pub Isa);

impl Implementation for Scalar {
    fn name(&self) -> String {
        "cpu scalar".into()
    }

    fn quantize(&self, case: &Case, out: &mut Output) -> Result<(), Box<dyn Error>> {
        Ok(scalar(case, out)?)
    }
}

impl Implementation for Rayon {
    fn name(&self) -> String {
        "cpu rayon".into()
    }

    fn quantize(&self, case: &Case, out: &mut Output) -> Result<(), Box<dyn Error>> {
        Ok(rayon(case, out)?)
    }
}

impl Implementation for With {
    fn name(&self) -> String {
        format!("cpu {}", self.0)
    }

    fn quantize(&self, case: &Case, out: &mut Output) -> Result<(), Box<dyn Error>> {
        Ok(with(self.0, case, out).ok_or_else(|| format!("this machine has no {}", self.0))??)
    }
}

pub(crate) fn scalar(case: &Case, out: &mut Output) -> Result<(), ShapeError> {
    let (q, s) = (out.q.operand_mut(), out.s.operand_mut());
    match &*case.x {
        Tensor::F16(x) => ptq_cpu::scalar::quantize(x.operand(), q, s, case.shape, case.params),
        Tensor::Bf16(x) => ptq_cpu::scalar::quantize(x.operand(), q, s, case.shape, case.params),
        Tensor::F32(x) => ptq_cpu::scalar::quantize(x.operand(), q, s, case.shape, case.params),
    }
}

pub(crate) fn rayon(case: &Case, out: &mut Output) -> Result<(), ShapeError> {
    let (q, s) = (out.q.operand_mut(), out.s.operand_mut());
    match &*case.x {
        Tensor::F16(x) => ptq_cpu::quantize(x.operand(), q, s, case.shape, case.params),
        Tensor::Bf16(x) => ptq_cpu::quantize(x.operand(), q, s, case.shape, case.params),
        Tensor::F32(x) => ptq_cpu::quantize(x.operand(), q, s, case.shape, case.params),
    }
}

fn with(isa: Isa, case: &Case, out: &mut Output) -> Option<Result<(), ShapeError>> {
    let (q, s) = (out.q.operand_mut(), out.s.operand_mut());
    match &*case.x {
        Tensor::F16(x) => ptq_cpu::quantize_with(isa, x.operand(), q, s, case.shape, case.params),
        Tensor::Bf16(x) => ptq_cpu::quantize_with(isa, x.operand(), q, s, case.shape, case.params),
        Tensor::F32(x) => ptq_cpu::quantize_with(isa, x.operand(), q, s, case.shape, case.params),
    }
}
