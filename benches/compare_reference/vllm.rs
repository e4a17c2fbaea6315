//! What vLLM's kernel makes of an input.

use crate::gpu::input::{Expected, Input};
use crate::vllm_kernel::code;
use half::{bf16, f16};
use per_token_quant_fp8::{Element, MIN_SCALE};
use ptq_spec::fp8::E4M3_MAX;

/// Of an input's block. Read off the kernel's machine code: the scale is `absmax / 448`, rounded to nearest, at least
/// [`MIN_SCALE`].
pub fn expected(input: &Input) -> Expected {
    let x: Vec<f32> = match input.element {
        Element::F16 => input.x.as_chunks().0.iter().map(|&bytes| f16::from_ne_bytes(bytes).to_f32()).collect(),
        Element::Bf16 => input.x.as_chunks().0.iter().map(|&bytes| bf16::from_ne_bytes(bytes).to_f32()).collect(),
        Element::F32 => input.x.as_chunks().0.iter().map(|&bytes| f32::from_ne_bytes(bytes)).collect(),
    };
    let (mut q, mut s) = (Vec::with_capacity(x.len()), Vec::new());
    for row in x.chunks_exact(input.hidden as usize) {
        let absmax = row.iter().fold(0.0_f32, |most, v| most.max(v.abs()));
        let scale = (absmax / E4M3_MAX).max(MIN_SCALE);
        q.extend(row.iter().map(|&v| code(v, scale)));
        s.extend(scale.to_ne_bytes());
    }
    Expected { q, s }
}
