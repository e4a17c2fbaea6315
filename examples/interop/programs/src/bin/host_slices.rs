//! Host memory of any origin: bits become elements and codes by casts, without a copy.
//!
//! `cargo run --manifest-path examples/interop/Cargo.toml --bin host_slices`

use float8::F8E4M3;
use half::bf16;
use interop::{HIDDEN, Outcome, POISON, POISON_SCALE, ROWS, check, input, shape};
use per_token_quant_fp8::cpu::{self, Params};
use per_token_quant_fp8::{MathMode, Options, ZeroRows};

/// The whole program.
pub fn main() -> Outcome {
    // As it comes out of a file or from another library: bf16 as u16.
    let bits: Vec<u16> = input().into_iter().map(bf16::to_bits).collect();
    let mut codes = vec![F8E4M3::from_bits(POISON); ROWS * HIDDEN];
    let mut scales = vec![POISON_SCALE; ROWS];

    // A row of zeros gets zeros, which the reference gives only for large inputs.
    let options = Options { zero_rows: ZeroRows::Guarded, ..Options::default() };
    let params = Params { options, ..Params::new(MathMode::Precise) };
    let x: &[bf16] = bytemuck::cast_slice(&bits); // x[rows, hidden]
    let q: &mut [u8] = bytemuck::cast_slice_mut(&mut codes); // q[rows, hidden]
    cpu::quantize(x, q, &mut scales, shape()?, params)?;

    // Not F8E4M3::MAX, which is 416: the largest code is 0x7E, 448.
    let largest = codes.iter().map(|code| code.to_f32()).fold(0.0, f32::max);
    if largest != 448.0 {
        return Err(format!("the largest code is {largest}, expected 448").into());
    }
    check(bytemuck::cast_slice(&codes), &scales, params)
}
