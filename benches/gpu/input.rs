//! What is quantized: one block of rows, of which inputs are a part or repetitions, so that neither making them nor the
//! CPU's answer takes long.

use crate::gpu::BoxError;
use per_token_quant_fp8::{Element, MathMode};
use ptq_cpu::Params;
use ptq_suite::{Tensor, cases};

/// Elements of a block, about.
const BLOCK_ELEMENTS: usize = 1 << 20;

/// Inputs of any number of rows: `x[block, hidden]`, over and over or as far as it is needed.
pub struct Input {
    /// Element type.
    pub element: Element,
    /// Elements per row.
    pub hidden: u64,
    /// Bytes of the block.
    pub x: Vec<u8>,
    /// What the contract says of the block.
    pub contract: Expected,
}

/// Bytes of the outputs for the block: `q[block, hidden]` and `s[block]`.
pub struct Expected {
    pub q: Vec<u8>,
    pub s: Vec<u8>,
}

impl Input {
    /// Ordinary values; no row has scale zero, so that neither options nor dispatch show.
    pub fn new(element: Element, hidden: u64, math: MathMode) -> Result<Self, BoxError> {
        // Odd, so that rows which a kernel works on together begin everywhere in the block.
        let block = (BLOCK_ELEMENTS / hidden as usize) | 1;
        let case = cases::ordinary(element, block, hidden as usize, Params::new(math));
        let (mut q, mut s) = (vec![0; block * hidden as usize], vec![0.0_f32; block]);
        let x: &[u8] = match &*case.x {
            Tensor::F16(x) => {
                ptq_cpu::quantize(x.operand(), &mut q, &mut s, case.shape, case.params)?;
                bytemuck::cast_slice(x.operand())
            }
            Tensor::Bf16(x) => {
                ptq_cpu::quantize(x.operand(), &mut q, &mut s, case.shape, case.params)?;
                bytemuck::cast_slice(x.operand())
            }
            Tensor::F32(x) => {
                ptq_cpu::quantize(x.operand(), &mut q, &mut s, case.shape, case.params)?;
                bytemuck::cast_slice(x.operand())
            }
        };
        let contract = Expected { q, s: bytemuck::cast_slice(&s).to_vec() };
        Ok(Self { element, hidden, x: x.to_vec(), contract })
    }
}
