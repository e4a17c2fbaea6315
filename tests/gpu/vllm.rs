//! vLLM's `dynamic_per_token_scaled_fp8_quant`, from the folder that `cargo xtask reference` fills.

use per_token_quant_fp8::cpu::e4m3;
use per_token_quant_fp8::cust::function::Function;
use per_token_quant_fp8::cust::launch;
use per_token_quant_fp8::cust::module::Module;
use per_token_quant_fp8::cust::stream::Stream;
use per_token_quant_fp8::spec::fp8::E4M3_MAX;
use per_token_quant_fp8::{Element, RawArgs};
use std::error::Error;
use std::path::Path;

/// Threads of a CTA at most, which takes a row; shorter rows have one per element.
pub const MAX_THREADS: u64 = 256;

/// vLLM's library, in the current context. Its code is for compute capability 9.0.
pub struct Vllm(Module);

/// Its kernel of one element type.
pub struct Kernel<'m>(Function<'m>);

impl Vllm {
    /// Loads the cubin.
    ///
    /// # Errors
    /// Where there is none in `folder`, or the driver refuses it.
    pub fn load(folder: &Path) -> Result<Self, Box<dyn Error>> {
        let file = folder.join("vllm.cubin");
        let image = std::fs::read(&file).map_err(|e| format!("{}: {e}", file.display()))?;
        Ok(Self(Module::from_cubin(image, &[]).map_err(|e| format!("{}: {e}", file.display()))?))
    }

    /// The kernel for elements of that type.
    ///
    /// # Errors
    /// Where the module has no such kernel.
    pub fn kernel(&self, element: Element) -> Result<Kernel<'_>, Box<dyn Error>> {
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
    /// Launches it on rows as far apart as `args` say, with the upper bound at the device address `upper`; 0: none. Other
    /// options and bounds it does not take.
    ///
    /// # Safety
    /// - `args` have the element that the kernel is for, and at least one row.
    /// - They and `upper` name device memory of that layout in the current context, to which nobody else has access until the
    ///   stream has done the launch.
    pub unsafe fn launch(&self, args: &RawArgs, upper: u64, stream: &Stream) -> Result<(), Box<dyn Error>> {
        let Self(function) = self;
        let layout = args.check()?;
        let (rows, hidden) = (u32::try_from(args.shape.rows())?, args.shape.hidden());
        let threads = hidden.min(MAX_THREADS) as u32;
        let (x_stride, q_stride) = (i64::try_from(layout.x_stride())?, i64::try_from(layout.q_stride())?);
        let hidden = i32::try_from(hidden)?;
        // SAFETY: the cubin says of the kernel's parameters that they are 8, 8, 8, 8, 4, 8 and 8 bytes wide, at offsets 0, 8,
        // 16, 24, 32, 40 and 48: codes, scales, input, upper bound or null, hidden, and the rows' strides in input and
        // output. The caller answers for the memory.
        unsafe {
            launch!(function<<<rows, threads, 0, stream>>>(
                args.q, args.s, args.x, upper, hidden, x_stride, q_stride
            ))
        }?;
        Ok(())
    }
}

/// The code of `x` by its arithmetic, read off its machine code: the one nearest to `x / scale`, which is rounded to nearest
/// itself.
pub fn code(x: f32, scale: f32) -> u8 {
    let v = x / scale;
    e4m3::encode(if v.is_nan() { E4M3_MAX } else { v.clamp(-E4M3_MAX, E4M3_MAX) })
}
