//! The same on a GPU: candle's memory and stream, this library's kernels.

use candle_core::backend::BackendStorage;
use candle_core::cuda::cudarc::driver::{DevicePtr, DevicePtrMut};
use candle_core::cuda::{CudaStorage, CudaStorageSlice};
use candle_core::{Device, Error, Result, Storage, bail};
use per_token_quant_fp8::{Element, Quantizer, RawArgs, Shape, quantizer};
use std::ops::Range;

/// Codes and scales of those elements of `storage`, in the stream of its device.
pub fn quantize(
    storage: &CudaStorage,
    elements: Range<usize>,
    shape: Shape,
    quantizer: &Quantizer,
) -> Result<(Storage, Storage)> {
    let device = storage.device();
    let stream = device.cuda_stream();
    let mut q = device.alloc_zeros::<float8::F8E4M3>(elements.len())?;
    let mut s = device.alloc_zeros::<f32>(shape.rows() as usize)?;
    {
        let ((x, _read), element) = match &storage.slice {
            CudaStorageSlice::F16(x) => (x.device_ptr(&stream), Element::F16),
            CudaStorageSlice::BF16(x) => (x.device_ptr(&stream), Element::Bf16),
            CudaStorageSlice::F32(x) => (x.device_ptr(&stream), Element::F32),
            _ => bail!("{:?}: expected F16, BF16 or F32", storage.dtype()),
        };
        let x = x + (elements.start * element.bytes()) as u64;
        let ((q, _codes), (s, _scales)) = (q.device_ptr_mut(&stream), s.device_ptr_mut(&stream));
        let args = RawArgs::new(element, x, q, s, shape);
        // SAFETY: the slices are of that shape and borrowed above; the stream is of the device's primary context, in which
        // the quantizer works.
        unsafe { quantizer.quantize_raw(args, stream.cu_stream().cast()) }.map_err(Error::wrap)?;
    }
    let wrapped =
        |q, s| (CudaStorage::wrap_cuda_slice(q, device.clone()), CudaStorage::wrap_cuda_slice(s, device.clone()));
    let (q, s) = wrapped(q, s);
    Ok((Storage::Cuda(q), Storage::Cuda(s)))
}

/// The checks of `main` on the first device; skipped where there is none.
pub fn check() -> Result<()> {
    let required = std::env::var("PTQ_REQUIRE_GPU").is_ok_and(|v| !["", "0"].contains(&v.as_str()));
    if let Err(reason) = per_token_quant_fp8::probe() {
        if required {
            return Err(Error::wrap(reason));
        }
        println!("skipped on the GPU: {reason}");
        return Ok(());
    }
    let device = Device::new_cuda(0)?; // its context is the primary one, now current on this thread
    let quantizer = quantizer().map_err(Error::wrap)?;
    crate::check_all(&device, Some(&quantizer))
}
