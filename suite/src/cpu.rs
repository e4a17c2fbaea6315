//! The CPU implementations as the suite's subjects.

use crate::{Case, Implementation, Output, Tensor};
use ptq_cpu::{Isa, Params};
use ptq_spec::{Shape, ShapeError};
use std::error::Error;

/// [`ptq_cpu::scalar::quantize_extended`].
#[derive(Debug, Clone, Copy)]
pub struct Scalar;

/// [`ptq_cpu::quantize_extended`].
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

/// Shape and parameters of the rows that the case quantizes: the CPU's are counted by the caller. What becomes of zero
/// scales follows all rows.
fn counted(case: &Case) -> Result<(Shape, Params), ShapeError> {
    let Case { shape, params, .. } = *case;
    let counted = Shape::padded(case.quantized_rows(), shape.rows_out(), shape.hidden())?;
    Ok((counted, Params { options: params.options.decided(shape.rows(), params.sm_count), ..params }))
}

pub(crate) fn scalar(case: &Case, out: &mut Output) -> Result<(), ShapeError> {
    let (q, s) = (out.q.operand_mut(), out.s.operand_mut());
    let (shape, params) = counted(case)?;
    match &*case.x {
        Tensor::F16(x) => ptq_cpu::scalar::quantize_extended(x.operand(), q, s, shape, params, case.extended),
        Tensor::Bf16(x) => ptq_cpu::scalar::quantize_extended(x.operand(), q, s, shape, params, case.extended),
        Tensor::F32(x) => ptq_cpu::scalar::quantize_extended(x.operand(), q, s, shape, params, case.extended),
    }
}

pub(crate) fn rayon(case: &Case, out: &mut Output) -> Result<(), ShapeError> {
    let (q, s) = (out.q.operand_mut(), out.s.operand_mut());
    let (shape, params) = counted(case)?;
    match &*case.x {
        Tensor::F16(x) => ptq_cpu::quantize_extended(x.operand(), q, s, shape, params, case.extended),
        Tensor::Bf16(x) => ptq_cpu::quantize_extended(x.operand(), q, s, shape, params, case.extended),
        Tensor::F32(x) => ptq_cpu::quantize_extended(x.operand(), q, s, shape, params, case.extended),
    }
}

fn with(isa: Isa, case: &Case, out: &mut Output) -> Option<Result<(), ShapeError>> {
    let (q, s) = (out.q.operand_mut(), out.s.operand_mut());
    let (shape, params) = match counted(case) {
        Ok(counted) => counted,
        Err(e) => return Some(Err(e)),
    };
    match &*case.x {
        Tensor::F16(x) => ptq_cpu::quantize_with(isa, x.operand(), q, s, shape, params, case.extended),
        Tensor::Bf16(x) => ptq_cpu::quantize_with(isa, x.operand(), q, s, shape, params, case.extended),
        Tensor::F32(x) => ptq_cpu::quantize_with(isa, x.operand(), q, s, shape, params, case.extended),
    }
}
