//! Quantizes two rows on the CPU and dequantizes them again.
//!
//! `cargo run --example quantize_cpu`

use float8::F8E4M3;
use half::bf16;
use per_token_quant_fp8::cpu::{self, Params};
use per_token_quant_fp8::{MathMode, Shape, ShapeError};

fn main() -> Result<(), ShapeError> {
    // x[rows, hidden]: each row gets a scale of its own, so the large values of one cost the other nothing.
    let x = [0.5, -1.0, 0.25, 0.03, 80.0, -3.0, 448.0, 0.0].map(bf16::from_f32);
    let shape = Shape::new(2, 4)?;

    let mut q = [0u8; 8]; // E4M3 codes, [rows, hidden]
    let mut s = [0f32; 2]; // scales, [rows]
    cpu::quantize(&x, &mut q, &mut s, shape, Params::new(MathMode::Precise))?;

    for ((x, q), s) in x.chunks_exact(4).zip(q.chunks_exact(4)).zip(s) {
        println!("scale {s}");
        for (x, &code) in x.iter().zip(q) {
            println!("  {x:>6} -> {code:#04x} -> {}", F8E4M3::from_bits(code).to_f32() * s);
        }
    }
    Ok(())
}
