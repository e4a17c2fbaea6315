//! Times the CPU implementation on demand, for a program that wants to alternate it with something else:
//! `benches/torch_cpu.py`.
//!
//! `time_cpu ELEMENT ROWS HIDDEN MATH INPUT OUTPUT`: reads `x[rows, hidden]` from the file INPUT, writes codes, then scales,
//! to OUTPUT, and then quantizes once for each line of its standard input: `reuse` into the same buffers, `allocate` into
//! new ones. It answers each with the nanoseconds that took. `RAYON_NUM_THREADS` is the number of threads.

use half::{bf16, f16};
use per_token_quant_fp8::cpu::{self, Params};
use per_token_quant_fp8::{Element, MathMode, Shape};
use std::error::Error;
use std::io::{self, Write};
use std::time::Instant;
use std::{env, fs};

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let [element, rows, hidden, math, input, output] = &arguments[..] else {
        return Err("usage: time_cpu ELEMENT ROWS HIDDEN MATH INPUT OUTPUT".into());
    };
    let shape = Shape::new(rows.parse()?, hidden.parse()?)?;
    let math = MathMode::ALL.into_iter().find(|m| m.to_string() == *math).ok_or("MATH is fast or precise")?;
    let x = fs::read(input)?;
    match Element::ALL.into_iter().find(|e| e.name() == element).ok_or("ELEMENT is f16, bf16 or f32")? {
        Element::F16 => serve::<f16>(&x, shape, math, output),
        Element::Bf16 => serve::<bf16>(&x, shape, math, output),
        Element::F32 => serve::<f32>(&x, shape, math, output),
    }
}

fn serve<T: cpu::Input + bytemuck::Pod>(
    x: &[u8],
    shape: Shape,
    math: MathMode,
    output: &str,
) -> Result<(), Box<dyn Error>> {
    let x: Vec<T> = x.chunks_exact(size_of::<T>()).map(bytemuck::pod_read_unaligned).collect();
    let params = Params::new(math);
    let new = || (vec![0; x.len()], vec![0.0_f32; shape.rows() as usize]);
    let (mut q, mut s) = new();
    cpu::quantize(&x, &mut q, &mut s, shape, params)?;
    let (mut want_q, mut want_s) = new();
    cpu::scalar::quantize(&x, &mut want_q, &mut want_s, shape, params)?;
    if q != want_q || s != want_s {
        return Err("the fast path gives other bytes than the oracle".into());
    }
    fs::write(output, [&q[..], bytemuck::cast_slice(&s)].concat())?;
    println!("ready");
    io::stdout().flush()?;
    for line in io::stdin().lines() {
        let start = Instant::now();
        match &*line? {
            "reuse" => cpu::quantize(&x, &mut q, &mut s, shape, params)?,
            "allocate" => {
                let (mut q, mut s) = new();
                cpu::quantize(&x, &mut q, &mut s, shape, params)?;
            }
            other => return Err(format!("`{other}`: expected `reuse` or `allocate`").into()),
        }
        println!("{}", start.elapsed().as_nanos());
        io::stdout().flush()?;
    }
    Ok(())
}
