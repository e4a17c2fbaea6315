//! One call: input, scale, parameters, and the buffers it writes.

use crate::case::{UNTOUCHED_CODE, UNTOUCHED_SCALE};
use crate::{Buffer, Output, Tensor};
use ptq_spec::{MathMode, Scale, ZeroRows};
use std::iter;
use std::sync::Arc;

/// Where the scale comes from, and of a given one what it is.
#[derive(Debug, Clone, Copy)]
pub enum GivenScale {
    /// The caller's.
    Static(f32),
    /// The tensor's.
    Dynamic,
}

/// One call.
#[derive(Debug, Clone)]
pub struct Call {
    /// What it is about, with element, size and math mode.
    pub name: String,
    /// The input, any number of elements.
    pub x: Arc<Tensor>,
    /// The scale.
    pub scale: GivenScale,
    /// How scale, inverse and product are rounded.
    pub math: MathMode,
    /// What becomes of a zero scale.
    pub zero_scale: ZeroRows,
    /// Bytes by which `q` is off a vector's alignment.
    pub(crate) q_offset: usize,
}

impl GivenScale {
    /// Without the number.
    pub const fn source(self) -> Scale {
        match self {
            Self::Static(_) => Scale::Static,
            Self::Dynamic => Scale::Dynamic,
        }
    }
}

impl Call {
    /// A call that keeps the reference's bytes, with an aligned output.
    pub(crate) fn new(what: &str, x: &Arc<Tensor>, scale: GivenScale, math: MathMode) -> Self {
        let shown = match scale {
            GivenScale::Static(s) => format!("scale {s:e} ({:#010x})", s.to_bits()),
            GivenScale::Dynamic => "dynamic".to_owned(),
        };
        Self {
            name: format!("{what}: {} [{}], {shown}, {math}", x.element(), x.elements()),
            x: x.clone(),
            scale,
            math,
            zero_scale: ZeroRows::Legacy,
            q_offset: 0,
        }
    }

    /// The same with a guarded zero scale.
    pub(crate) fn guarded(self) -> Self {
        Self { name: self.name + ", guarded", zero_scale: ZeroRows::Guarded, ..self }
    }

    /// Elements of `x` and of `q`.
    pub fn elements(&self) -> usize {
        self.x.elements()
    }

    /// Buffers of the call's size that nobody wrote to; `s` holds the scale where it is given.
    pub fn output(&self) -> Output {
        let scale = match self.scale {
            GivenScale::Static(scale) => scale,
            GivenScale::Dynamic => UNTOUCHED_SCALE,
        };
        Output {
            kernel: None,
            q: Buffer::new(iter::repeat_n(UNTOUCHED_CODE, self.elements()), self.q_offset, UNTOUCHED_CODE),
            // Aligned to a scale and to nothing wider.
            s: Buffer::new(iter::once(scale), 1, UNTOUCHED_SCALE),
        }
    }

    /// Bytes by which `x` and `q` lie off a vector's alignment, in buffers that are themselves aligned.
    pub fn offsets(&self) -> (usize, usize) {
        (self.x.offset() * self.x.element().bytes(), self.q_offset)
    }
}
