//! Buffers of many calls of one shape, so that no launch finds its operands in the L2 cache.

use crate::gpu::arena::Arena;
use crate::gpu::input::{Expected, Input};
use crate::gpu::{BoxError, COLD_BYTES};
use per_token_quant_fp8::{Element, RawArgs, Shape};

/// Slots at most: more launches than that are in no replay. The slots of small calls lie apart, so that they too are
/// spread over [`COLD_BYTES`].
pub const MAX_SLOTS: usize = 2048;

/// The operands of `count` calls, all with the same input.
pub struct Slots {
    x: Arena,
    q: Arena,
    s: Arena,
    element: Element,
    shape: Shape,
    /// Calls.
    pub count: usize,
}

impl Slots {
    /// `rows` rows of the input in every slot.
    pub fn new(input: &Input, rows: u64) -> Result<Self, BoxError> {
        let (element, shape) = (input.element, Shape::new(rows, input.hidden)?);
        let bytes = call_bytes(element, shape);
        let count = COLD_BYTES.div_ceil(bytes).min(MAX_SLOTS);
        let arena = |len: usize| Arena::new(len, count, (COLD_BYTES as f64 * len as f64 / bytes as f64) as usize);
        let codes = (shape.rows() * shape.hidden()) as usize;
        let mut x = arena(codes * element.bytes())?;
        x.fill(&input.x)?;
        let (q, s) = (arena(codes)?, arena(shape.rows() as usize * size_of::<f32>())?);
        Ok(Self { x, q, s, element, shape, count })
    }

    /// Bytes that a call reads and writes at least.
    pub fn bytes(&self) -> usize {
        call_bytes(self.element, self.shape)
    }

    /// The call of one slot.
    pub fn args(&self, slot: usize) -> RawArgs {
        let (x, q, s) = (self.x.address(slot), self.q.address(slot), self.s.address(slot));
        RawArgs::new(self.element, x, q, s, self.shape)
    }

    /// Overwrites every output with bytes that no input gives.
    pub fn poison(&mut self) -> Result<(), BoxError> {
        // As a code a NaN, and as a scale a NaN too.
        self.q.set(0xFF)?;
        self.s.set(0xFF)
    }

    /// Checks the outputs of the first slot and of the last.
    ///
    /// # Errors
    /// Where a byte is another than expected.
    pub fn check(&self, expected: &Expected) -> Result<(), BoxError> {
        let hidden = self.shape.hidden() as usize;
        for slot in [0, self.count - 1] {
            if let Some(at) = self.s.difference(slot, &expected.s)? {
                return Err(format!("slot {slot}: another scale in row {}", at / size_of::<f32>()).into());
            }
            if let Some(at) = self.q.difference(slot, &expected.q)? {
                return Err(format!("slot {slot}: another code in row {}, column {}", at / hidden, at % hidden).into());
            }
        }
        Ok(())
    }
}

fn call_bytes(element: Element, shape: Shape) -> usize {
    let (rows, hidden) = (shape.rows() as usize, shape.hidden() as usize);
    rows * hidden * (element.bytes() + 1) + rows * size_of::<f32>()
}
