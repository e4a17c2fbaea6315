//! candle: a function on its tensors, on whichever device they are.
//!
//! `cargo run --manifest-path examples/interop/Cargo.toml --bin candle`; with `--features cuda` also on a GPU.

#[cfg(feature = "cuda")]
mod cuda;

use candle_core::op::BackpropOp;
use candle_core::{CpuStorage, D, Device, Error, Result, Storage, Tensor, bail};
use half::{bf16, f16};
use per_token_quant_fp8::cpu::{self, Input, Params};
use per_token_quant_fp8::{MathMode, Quantizer, Shape};

/// `x[rows, hidden]` of F16, BF16 or F32 to codes `[rows, hidden]` in F8E4M3 and scales `[rows, 1]` in F32, on the device of
/// `x`. A tensor on a GPU takes a quantizer made in its context.
fn per_token_quant_fp8(x: &Tensor, quantizer: Option<&Quantizer>) -> Result<(Tensor, Tensor)> {
    let x = x.contiguous()?;
    let (rows, hidden) = x.dims2()?;
    let shape = Shape::new(rows as u64, hidden as u64).map_err(Error::wrap)?;
    let (storage, layout) = x.storage_and_layout();
    let elements = layout.start_offset()..layout.start_offset() + rows * hidden;
    let (q, s) = match (&*storage, quantizer) {
        (Storage::Cpu(CpuStorage::F16(x)), _) => on_cpu::<f16>(&x[elements], shape)?,
        (Storage::Cpu(CpuStorage::BF16(x)), _) => on_cpu::<bf16>(&x[elements], shape)?,
        (Storage::Cpu(CpuStorage::F32(x)), _) => on_cpu::<f32>(&x[elements], shape)?,
        #[cfg(feature = "cuda")]
        (Storage::Cuda(x), Some(quantizer)) => cuda::quantize(x, elements, shape, quantizer)?,
        _ => bail!(
            "{:?} on {:?}: expected F16, BF16 or F32 on the CPU, or on a GPU with a quantizer",
            x.dtype(),
            x.device()
        ),
    };
    let tensor = |storage, columns| Tensor::from_storage(storage, (rows, columns), BackpropOp::none(), false);
    Ok((tensor(q, hidden), tensor(s, 1)))
}

/// Codes and scales on the CPU.
fn on_cpu<T: Input>(x: &[T], shape: Shape) -> Result<(Storage, Storage)> {
    let (mut q, mut s) = (vec![0; x.len()], vec![0.0; shape.rows() as usize]);
    cpu::quantize(x, &mut q, &mut s, shape, Params::new(MathMode::Precise)).map_err(Error::wrap)?;
    Ok((Storage::Cpu(CpuStorage::F8E4M3(bytemuck::cast_vec(q))), Storage::Cpu(CpuStorage::F32(s))))
}

/// Compares the function on `x` with the scalar CPU implementation on `values`, which `x` was made of.
fn check<T: Input>(x: &Tensor, values: &[T], quantizer: Option<&Quantizer>) -> Result<()> {
    let (rows, hidden) = x.dims2()?;
    let (q, s) = per_token_quant_fp8(x, quantizer)?;
    let q: Vec<u8> = bytemuck::cast_vec(q.flatten_all()?.to_vec1::<float8::F8E4M3>()?);
    let s: Vec<f32> = s.squeeze(D::Minus1)?.to_vec1()?;
    let mut params = Params::new(MathMode::Precise);
    if let Some(quantizer) = quantizer {
        (params.math, params.sm_count) = (quantizer.math(), quantizer.sm_count());
    }
    let (mut want_q, mut want_s) = (vec![0; rows * hidden], vec![0.0; rows]);
    let shape = Shape::new(rows as u64, hidden as u64).map_err(Error::wrap)?;
    cpu::scalar::quantize(values, &mut want_q, &mut want_s, shape, params).map_err(Error::wrap)?;
    let bits = |s: &[f32]| s.iter().map(|s| s.to_bits()).collect::<Vec<_>>();
    if q != want_q || bits(&s) != bits(&want_s) {
        bail!("{:?} on {:?}: other bytes than those of the CPU implementation", x.dtype(), x.device());
    }
    println!("{:?} {rows} x {hidden} on {:?}: every byte is that of the CPU implementation", x.dtype(), x.device());
    Ok(())
}

/// Every element type, and views that do not start where their memory does, or are not contiguous.
fn check_all(device: &Device, quantizer: Option<&Quantizer>) -> Result<()> {
    const ROWS: usize = 33;
    const HIDDEN: usize = 1368;
    let values: Vec<f32> =
        (0..ROWS * HIDDEN).map(|i| (i as f32 * 0.37).sin() * ((i / HIDDEN) as f32 - 16.0).exp2()).collect();
    let x = Tensor::from_slice(&values, (ROWS, HIDDEN), device)?;
    check::<f32>(&x, &values, quantizer)?;
    check::<f32>(&x.narrow(0, 2, 7)?, &values[2 * HIDDEN..9 * HIDDEN], quantizer)?;
    let left: Vec<f32> = values.chunks_exact(HIDDEN).flat_map(|row| &row[..512]).copied().collect();
    check::<f32>(&x.narrow(1, 0, 512)?, &left, quantizer)?;
    let halves: Vec<f16> = values.iter().copied().map(f16::from_f32).collect();
    check(&Tensor::from_slice(&halves, x.shape(), device)?, &halves, quantizer)?;
    let brains: Vec<bf16> = values.iter().copied().map(bf16::from_f32).collect();
    check(&Tensor::from_slice(&brains, x.shape(), device)?, &brains, quantizer)
}

fn main() -> Result<()> {
    check_all(&Device::Cpu, None)?;
    #[cfg(feature = "cuda")]
    cuda::check()?;
    Ok(())
}
