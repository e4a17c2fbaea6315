//! One call: input, shape, parameters, and the buffers it writes.

use crate::Buffer;
use half::{bf16, f16};
use ptq_cpu::Params;
use ptq_spec::per_token_extended::Layout;
use ptq_spec::{Element, Extended, Kernel, Shape};
use std::sync::Arc;

/// What rows beyond the input's, gaps between rows, and guards, hold before and must hold after.
pub(crate) const UNTOUCHED_CODE: u8 = 0xA5;
/// The same for scales: no scale is negative.
pub(crate) const UNTOUCHED_SCALE: f32 = -1234.5;

/// An input `x[rows, hidden]`, with the gaps between its rows. They and its guards are infinite: reading one as an
/// element shows in the scale.
#[derive(Debug, Clone, PartialEq)]
pub enum Tensor {
    /// Of IEEE binary16.
    F16(Buffer<f16>),
    /// Of bfloat16.
    Bf16(Buffer<bf16>),
    /// Of IEEE binary32.
    F32(Buffer<f32>),
}

impl Tensor {
    /// Type of the elements.
    pub const fn element(&self) -> Element {
        match self {
            Self::F16(_) => Element::F16,
            Self::Bf16(_) => Element::Bf16,
            Self::F32(_) => Element::F32,
        }
    }

    /// Elements by which the operand was moved in its buffer.
    pub(crate) fn offset(&self) -> usize {
        match self {
            Self::F16(x) => x.offset(),
            Self::Bf16(x) => x.offset(),
            Self::F32(x) => x.offset(),
        }
    }

    /// Elements from the first to the last, gaps and all.
    pub(crate) fn elements(&self) -> usize {
        match self {
            Self::F16(x) => x.range().len(),
            Self::Bf16(x) => x.range().len(),
            Self::F32(x) => x.range().len(),
        }
    }

    /// Bits of the element at `index` from the first, gaps and all.
    pub(crate) fn bits(&self, index: usize) -> u32 {
        match self {
            Self::F16(x) => x.operand()[index].to_bits().into(),
            Self::Bf16(x) => x.operand()[index].to_bits().into(),
            Self::F32(x) => x.operand()[index].to_bits(),
        }
    }
}

/// One call.
#[derive(Debug, Clone)]
pub struct Case {
    /// What the case is about, with element, shape and math mode.
    pub name: String,
    /// `x[rows, hidden]`.
    pub x: Arc<Tensor>,
    /// Shape of the three operands.
    pub shape: Shape,
    /// What the bits depend on besides.
    pub params: Params,
    /// Row strides and bounds.
    pub extended: Extended,
    /// Rows that a count in device memory leaves; `None`: there is no such count.
    pub device_rows: Option<u32>,
    /// Bytes by which `q` is off a vector's alignment.
    pub(crate) q_offset: usize,
    /// What each row is, for failures; empty where they are all alike.
    pub(crate) row_kinds: Arc<[String]>,
    /// Codes `[rows, hidden]` and scales `[rows]` that were recorded; `None`: the oracle computes them.
    pub(crate) recorded: Option<(Vec<u8>, Vec<f32>)>,
}

/// The buffers that a call writes.
#[derive(Debug, Clone, PartialEq)]
pub struct Output {
    /// Name of the kernel that an implementation of several chose, for failures.
    pub kernel: Option<&'static str>,
    /// Codes `q[rows_out, hidden]`, with the gaps between rows.
    pub q: Buffer<u8>,
    /// Scales `s[rows_out]`.
    pub s: Buffer<f32>,
}

impl Case {
    /// Buffers of the case's size that nobody wrote to.
    pub fn output(&self) -> Output {
        let rows_out = self.shape.rows_out() as usize;
        let codes = self.layout().q_elements() as usize;
        Output {
            kernel: None,
            q: Buffer::new(std::iter::repeat_n(UNTOUCHED_CODE, codes), self.q_offset, UNTOUCHED_CODE),
            // Aligned to a scale and to nothing wider.
            s: Buffer::new(std::iter::repeat_n(UNTOUCHED_SCALE, rows_out), 1, UNTOUCHED_SCALE),
        }
    }

    /// Strides and bounds.
    ///
    /// # Panics
    /// Where the case is broken.
    pub fn layout(&self) -> Layout {
        self.extended.layout(self.shape).expect("a case has valid strides and bounds")
    }

    /// The operation that the call is one of.
    pub fn kernel(&self) -> Kernel {
        let plain = self.layout().is_plain() && self.device_rows.is_none();
        if plain { Kernel::PerToken } else { Kernel::PerTokenExtended }
    }

    /// Rows that the call quantizes.
    pub fn quantized_rows(&self) -> u64 {
        self.device_rows.map_or(self.shape.rows(), |count| self.shape.rows().min(count.into()))
    }

    /// Bytes by which `x` and `q` lie off a vector's alignment, in buffers that are themselves aligned.
    pub fn offsets(&self) -> (usize, usize) {
        (self.x.offset() * self.x.element().bytes(), self.q_offset)
    }

    /// Bytes that the call reads and writes at least.
    pub fn bytes(&self) -> u64 {
        let (rows, hidden) = (self.shape.rows(), self.shape.hidden());
        rows * hidden * (self.x.element().bytes() as u64 + 1) + rows * size_of::<f32>() as u64
    }
}

impl Output {
    /// Complements every bit that the rows which the case quantizes make up.
    pub(crate) fn complement(&mut self, case: &Case) {
        let rows = case.quantized_rows() as usize;
        for q in self.q.operand_mut().chunks_mut(case.layout().q_stride() as usize).take(rows) {
            for code in &mut q[..case.shape.hidden() as usize] {
                *code = !*code;
            }
        }
        for scale in &mut self.s.operand_mut()[..rows] {
            *scale = f32::from_bits(!scale.to_bits());
        }
    }
}
