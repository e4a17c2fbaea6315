//! SGLang's per-tensor kernels, from the folder that `cargo xtask reference` fills: as the subject of the suite, and beside
//! ours on large random inputs.

use crate::subject::{OnDevice, Operands, on_device};
use crate::{Outcome, Test, heavy};
use per_token_quant_fp8::cust::launch;
use per_token_quant_fp8::cust::memory::{CopyDestination, DeviceBuffer};
use per_token_quant_fp8::cust::module::Module;
use per_token_quant_fp8::cust::stream::{Stream, StreamFlags};
use per_token_quant_fp8::{Element, GpuElement, MathMode, PerTensorArgs, Scale, ZeroRows, quantizer};
use ptq_suite::per_tensor::{Call, FAMILIES, PerTensor, run};
use ptq_suite::{Budget, Oracle, Output, random_rows};
use std::error::Error;
use std::path::{Path, PathBuf};

/// Threads of a CTA of either kernel.
const THREADS: u32 = 256;
/// Most CTAs of a grid of either kernel.
const MAX_CTAS: u64 = 1024;
/// Bytes of the kernels' widest access.
const ACCESS_BYTES: u64 = 16;

/// Elements of one random input.
const ELEMENTS: usize = 1 << 26;

pub fn tests(folder: &Path) -> Vec<Test> {
    let mut tests = Vec::new();
    for family in FAMILIES {
        let folder = folder.to_owned();
        tests.push(Test::new(format!("reference::per_tensor_{}", family.name), move || {
            let reference = Reference::load(&folder)?;
            let taken: Vec<_> = family.calls(Budget::UNBOUNDED).filter(takes).collect();
            run(&reference, Oracle::Rayon, taken)?;
            Ok(())
        }));
    }
    for math in MathMode::ALL {
        let folder = folder.to_owned();
        tests.push(Test::new(format!("reference::per_tensor_random_{math}"), move || same_bytes(&folder, math)));
    }
    tests
}

/// Whether SGLang's kernels take the call: they expect 16-byte alignment and an element, and never guard.
fn takes(call: &Call) -> bool {
    let (x, q) = call.offsets();
    let aligned = |offset: usize| (offset as u64).is_multiple_of(ACCESS_BYTES);
    call.elements() > 0 && aligned(x) && aligned(q) && call.zero_scale == ZeroRows::Legacy
}

/// SGLang's library of one math mode, in the current context. Its code is for compute capability 9.0.
struct Library {
    module: Module,
}

impl Library {
    fn load(folder: &Path, math: MathMode) -> Result<Self, Box<dyn Error>> {
        let file: PathBuf = folder.join(format!("sglang_per_tensor.{math}.cubin"));
        let image = std::fs::read(&file).map_err(|e| format!("{}: {e}", file.display()))?;
        let module = Module::from_cubin(image, &[]).map_err(|e| format!("{}: {e}", file.display()))?;
        Ok(Self { module })
    }

    /// Launches what SGLang launches: with a dynamic scale the absmax kernel, before which the scale is zero, then the
    /// quantizing one.
    ///
    /// # Safety
    /// - The operands are device memory of the call's size in the current context, `x` and `q` 16-byte aligned, to which
    ///   nobody else has access until the stream has done the launches.
    /// - There are fewer than 2^31 - 2^18 elements, and one at least.
    unsafe fn launch(&self, args: &PerTensorArgs, stream: &Stream) -> Result<(), Box<dyn Error>> {
        let PerTensorArgs { element, x, q, s, elements, .. } = *args;
        if !x.is_multiple_of(ACCESS_BYTES) || !q.is_multiple_of(ACCESS_BYTES) {
            return Err(format!("x at {x:#x} or q at {q:#x} is off a vector's alignment").into());
        }
        let element = match element {
            Element::F16 => "6__half",
            Element::Bf16 => "13__nv_bfloat16",
            Element::F32 => "f",
        };
        let grid = elements.div_ceil(THREADS.into()).min(MAX_CTAS) as u32;
        let count = elements as i64;
        if args.scale == Scale::Dynamic {
            let name = format!("_Z24per_tensor_absmax_kernelI{element}EvPKT_Pfl");
            let function = self.module.get_function(&name).map_err(|e| format!("{name}: {e}"))?;
            // SAFETY: these are the three arguments of the kernel; the caller answers for the memory.
            unsafe { launch!(function<<<grid, THREADS, 0, stream>>>(x, s, count)) }?;
        }
        let name = format!("_Z27per_tensor_quant_fp8_kernelI{element}13__nv_fp8_e4m3EvPKT_PT0_PKfl");
        let function = self.module.get_function(&name).map_err(|e| format!("{name}: {e}"))?;
        // SAFETY: these are the four arguments of the kernel; the caller answers for the memory.
        unsafe { launch!(function<<<grid, THREADS, 0, stream>>>(x, q, s, count)) }?;
        Ok(())
    }
}

/// Both libraries; the call's math mode says which one runs.
struct Reference {
    fast: Library,
    precise: Library,
    stream: Stream,
}

impl Reference {
    fn load(folder: &Path) -> Result<Self, Box<dyn Error>> {
        Ok(Self {
            fast: Library::load(folder, MathMode::Fast)?,
            precise: Library::load(folder, MathMode::Precise)?,
            stream: Stream::new(StreamFlags::DEFAULT, None)?,
        })
    }
}

impl PerTensor for Reference {
    fn name(&self) -> String {
        "SGLang".into()
    }

    fn quantize(&self, call: &Call, out: &mut Output) -> Result<(), Box<dyn Error>> {
        on_device(self, &call.x, call, out)
    }
}

impl OnDevice<Call> for Reference {
    fn quantize<T: GpuElement>(&self, operands: &mut Operands<T>, call: &Call) -> Result<(), Box<dyn Error>> {
        let library = match call.math {
            MathMode::Fast => &self.fast,
            MathMode::Precise => &self.precise,
        };
        if call.scale.source() == Scale::Dynamic {
            // As its caller does.
            operands.s.set_8(0)?;
        }
        let args = operands.per_tensor(call.scale.source(), call.zero_scale);
        // SAFETY: slices of the call's size, which live until the stream is done below, and nobody else has them; the suite's
        // largest call has 2^24 elements or so, and `takes` left none without elements.
        unsafe { library.launch(&args, &self.stream) }?;
        self.stream.synchronize()?;
        Ok(())
    }
}

/// Outputs of one implementation, on the device.
struct Outputs {
    q: DeviceBuffer<u8>,
    s: DeviceBuffer<f32>,
}

impl Outputs {
    fn new() -> Result<Self, Box<dyn Error>> {
        Ok(Self { q: DeviceBuffer::zeroed(ELEMENTS)?, s: DeviceBuffer::zeroed(1)? })
    }

    /// Codes and bits of the scale.
    fn fetch(&self) -> Result<(Vec<u8>, u32), Box<dyn Error>> {
        let (mut q, mut s) = (vec![0; ELEMENTS], [0.0_f32]);
        self.q.copy_to(&mut q)?;
        self.s.copy_to(&mut s)?;
        Ok((q, s[0].to_bits()))
    }
}

/// Ours and SGLang's bytes are the same: by given scales all over their range, and by the absmax.
fn same_bytes(folder: &Path, math: MathMode) -> Outcome {
    let _alone = heavy();
    let library = Library::load(folder, math)?;
    let quantizer = quantizer()?.with_math(math)?;
    let stream = Stream::new(StreamFlags::DEFAULT, None)?;
    let mut x = vec![0.0_f32; ELEMENTS];
    random_rows(&mut x, 4096, 77);
    let given = [1.0, -0.37, 3.0e-39, 7.7e-20, 5.1e12, 2.9e38, 1.0e-30].map(Some);
    compare(&library, &quantizer, &stream, &x, &given)?;
    for exponent in [100, 3, -20, -118, -126] {
        let most = 2.0_f32.powi(exponent);
        let capped: Vec<f32> = x.iter().map(|&x| cap(x, most)).collect();
        compare(&library, &quantizer, &stream, &capped, &[None])
            .map_err(|e| format!("magnitudes up to 2^{exponent}: {e}"))?;
    }
    Ok(())
}

/// `x`, or in its place, where it is larger or NaN, a number of its mantissa and sign in the largest binade.
fn cap(x: f32, most: f32) -> f32 {
    if x.abs() <= most { x } else { (f32::from_bits(x.to_bits() & 0x007F_FFFF | 0x3F80_0000) / 2.0 * most).copysign(x) }
}

/// Compares the bytes of both by each of the scales; `None`: the absmax's.
fn compare(
    library: &Library,
    quantizer: &per_token_quant_fp8::Quantizer,
    stream: &Stream,
    x: &[f32],
    scales: &[Option<f32>],
) -> Outcome {
    let device_x = DeviceBuffer::from_slice(x)?;
    let (mut ours, mut theirs) = (Outputs::new()?, Outputs::new()?);
    for &scale in scales {
        // Different bytes, so that an element that both leave unwritten differs.
        ours.q.set_8(0xA5)?;
        theirs.q.set_8(0x5A)?;
        let source = if scale.is_some() { Scale::Static } else { Scale::Dynamic };
        // Ours sets the scale to zero by itself.
        ours.s.copy_from(&[scale.unwrap_or(-1234.5)])?;
        theirs.s.copy_from(&[scale.unwrap_or(0.0)])?;
        quantizer.prepare_per_tensor(&device_x, &mut ours.q, &mut ours.s, source, ZeroRows::Legacy)?.run(stream)?;
        let args = PerTensorArgs {
            element: Element::F32,
            x: device_x.as_device_ptr().as_raw(),
            q: theirs.q.as_device_ptr().as_raw(),
            s: theirs.s.as_device_ptr().as_raw(),
            elements: x.len() as u64,
            scale: source,
            zero_scale: ZeroRows::Legacy,
        };
        // SAFETY: buffers of that many elements, aligned as allocations are, which live until the stream is done below, and
        // nobody else has them.
        unsafe { library.launch(&args, stream) }?;
        stream.synchronize()?;
        let ((our_q, our_s), (their_q, their_s)) = (ours.fetch()?, theirs.fetch()?);
        if our_s != their_s {
            return Err(format!("{scale:?}: our scale is {our_s:#010x}, SGLang's {their_s:#010x}").into());
        }
        if let Some(i) = (0..x.len()).find(|&i| our_q[i] != their_q[i]) {
            let (x, ours, theirs) = (x[i].to_bits(), our_q[i], their_q[i]);
            return Err(format!("{scale:?}, x = {x:#010x}: our code is {ours:#04x}, SGLang's {theirs:#04x}").into());
        }
    }
    Ok(())
}
