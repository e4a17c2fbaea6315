//! vLLM's kernel, from the folder that `cargo xtask reference` fills.

use crate::gpu::BoxError;
use crate::gpu::input::{Expected, Input};
use half::{bf16, f16};
use per_token_quant_fp8::cust::function::Function;
use per_token_quant_fp8::cust::launch;
use per_token_quant_fp8::cust::module::Module;
use per_token_quant_fp8::cust::stream::Stream;
use per_token_quant_fp8::{Element, RawArgs};
use ptq_cpu::e4m3;
use ptq_spec::fp8::E4M3_MAX;
use std::path::Path;

/// No scale is less.
const MIN_SCALE: f32 = 1.0 / (E4M3_MAX * 512.0);

/// Threads of a CTA at most; shorter rows have one per element.
const MAX_THREADS: u64 = 256;

/// vLLM's library, in the current context. Its code is for compute capability 9.0.
pub struct Vllm(Module);

/// Its kernel of one element type.
pub struct Kernel<'m>(Function<'m>);

impl Vllm {
    /// Loads the cubin.
    ///
    /// # Errors
    /// Where there is none in `folder`, or the driver refuses it.
    pub fn load(folder: &Path) -> Result<Self, BoxError> {
        let file = folder.join("vllm.cubin");
        let image = std::fs::read(&file).map_err(|e| format!("{}: {e}", file.display()))?;
        Ok(Self(Module::from_cubin(image, &[]).map_err(|e| format!("{}: {e}", file.display()))?))
    }

    /// The kernel for elements of that type; it takes rows of any length and alignment.
    ///
    /// # Errors
    /// Where the module has no such kernel.
    pub fn kernel(&self, element: Element) -> Result<Kernel<'_>, BoxError> {
        // `c10::Half` and `c10::Float8_e4m3fn` share the namespace, which the name spells once.
        let types = match element {
            Element::F16 => "N3c104HalfENS1_13Float8_e4m3fnE",
            Element::Bf16 => "N3c108BFloat16ENS1_13Float8_e4m3fnE",
            Element::F32 => "fN3c1013Float8_e4m3fnE",
        };
        let name = format!("_ZN4vllm49dynamic_per_token_scaled_fp8_quant_kernel_stridedI{types}EEvPT0_PfPKT_PKfill");
        Ok(Kernel(self.0.get_function(&name).map_err(|e| format!("{name}: {e}"))?))
    }
}

impl Kernel<'_> {
    /// Launches it without an upper bound of the scale, on rows without gaps.
    ///
    /// # Safety
    /// - `args` have the element that the kernel is for, and at least one row.
    /// - They name device memory of that shape in the current context, to which nobody else has access until the stream
    ///   has done the launch.
    pub unsafe fn launch(&self, args: &RawArgs, stream: &Stream) -> Result<(), BoxError> {
        let Self(function) = self;
        let (rows, hidden) = (u32::try_from(args.shape.rows())?, args.shape.hidden());
        let threads = hidden.min(MAX_THREADS) as u32;
        let (no_bound, elements, stride) = (0_u64, i32::try_from(hidden)?, hidden as i64);
        // SAFETY: the cubin says of the kernel's parameters that they are 8, 8, 8, 8, 4, 8 and 8 bytes wide, at offsets 0, 8,
        // 16, 24, 32, 40 and 48: codes, scales, input, upper bound or null, hidden, and the rows' strides in input and
        // output. The caller answers for the memory.
        unsafe {
            launch!(function<<<rows, threads, 0, stream>>>(
                args.q, args.s, args.x, no_bound, elements, stride, stride
            ))
        }?;
        Ok(())
    }
}

/// What the kernel makes of an input's block. Read off its machine code: the scale is `absmax / 448`, rounded to nearest, at
/// least [`MIN_SCALE`]; a code is the one nearest to `x / scale`, which is rounded to nearest itself.
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
        q.extend(row.iter().map(|v| e4m3::encode(v / scale)));
        s.extend(scale.to_ne_bytes());
    }
    Expected { q, s }
}
