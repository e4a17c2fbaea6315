//! SGLang's own kernels, from the folder that `cargo xtask reference` fills. The benchmarks include this file too.

use per_token_quant_fp8::cust::function::Function;
use per_token_quant_fp8::cust::launch;
use per_token_quant_fp8::cust::module::Module;
use per_token_quant_fp8::cust::stream::Stream;
use per_token_quant_fp8::{Element, MathMode, RawArgs};
use std::env;
use std::error::Error;
use std::path::{Path, PathBuf};

/// Threads of a CTA of either kernel.
const THREADS: u32 = 256;
/// Rows of a CTA of the warp kernel.
const ROWS_PER_CTA: u64 = 8;
/// Bytes of the kernels' widest access.
const ACCESS_BYTES: u64 = 16;

/// `PTQ_REFERENCE`, else where `cargo xtask reference` puts it, if cargo says where the workspace is.
pub fn folder() -> Option<PathBuf> {
    if let Some(folder) = env::var_os("PTQ_REFERENCE").filter(|folder| !folder.is_empty()) {
        return Some(folder.into());
    }
    let folder = Path::new(&env::var_os("CARGO_MANIFEST_DIR")?).join("target/reference");
    folder.is_dir().then_some(folder)
}

/// SGLang's library of one math mode, in the current context. Its code is for compute capability 9.0.
pub struct Sglang {
    module: Module,
}

/// One of its kernels and its grid.
pub struct Kernel<'m> {
    function: Function<'m>,
    grid: u32,
}

impl Sglang {
    /// Loads the cubin of that mode.
    ///
    /// # Errors
    /// Where there is none in `folder`, or the driver refuses it.
    pub fn load(folder: &Path, math: MathMode) -> Result<Self, Box<dyn Error>> {
        let file = folder.join(format!("sglang.{math}.cubin"));
        let image = std::fs::read(&file).map_err(|e| format!("{}: {e}", file.display()))?;
        let module = Module::from_cubin(image, &[]).map_err(|e| format!("{}: {e}", file.display()))?;
        Ok(Self { module })
    }

    /// The kernel that SGLang chooses on a chip of `sm_count` multiprocessors, or that the options name: the guarding one
    /// is its warp kernel, the other its CTA kernel.
    ///
    /// # Errors
    /// Where an operand is off a vector's alignment, which SGLang does not check, and where the module has no such kernel.
    pub fn kernel(&self, args: &RawArgs, sm_count: u32) -> Result<Kernel<'_>, Box<dyn Error>> {
        let (rows, hidden) = (args.shape.rows(), args.shape.hidden());
        let vector = [16, 8, 4].into_iter().find(|v| hidden.is_multiple_of(*v)).ok_or("hidden is a multiple of 4")?;
        let load = (vector * args.element.bytes() as u64).min(ACCESS_BYTES);
        if !args.x.is_multiple_of(load) || !args.q.is_multiple_of(vector) {
            return Err(format!("x at {:#x} or q at {:#x} is off a vector's alignment", args.x, args.q).into());
        }
        let element = match args.element {
            Element::F16 => "6__half",
            Element::Bf16 => "13__nv_bfloat16",
            Element::F32 => "f",
        };
        let (name, grid) = if args.options.guard(rows, sm_count) {
            let name = format!("_Z26per_token_quant_fp8_kernelI{element}13__nv_fp8_e4m3Li8ELi{vector}ELb0EE");
            (name, rows.div_ceil(ROWS_PER_CTA))
        } else {
            (format!("_Z38per_token_quant_fp8_small_batch_kernelI{element}13__nv_fp8_e4m3Li{vector}EE"), rows)
        };
        let name = name + "vPKT_PT0_Pfll";
        let function = self.module.get_function(&name).map_err(|e| format!("{name}: {e}"))?;
        Ok(Kernel { function, grid: grid.try_into()? })
    }
}

impl Kernel<'_> {
    /// Launches it.
    ///
    /// # Safety
    /// - `args` have the element, the shape, and at least the alignment of those that the kernel was chosen for.
    /// - They name device memory of that shape in the current context, to which nobody else has access until the stream
    ///   has done the launch.
    pub unsafe fn launch(&self, args: &RawArgs, stream: &Stream) -> Result<(), Box<dyn Error>> {
        let Self { function, grid } = self;
        let (hidden, rows) = (args.shape.hidden() as i64, args.shape.rows() as i64);
        if rows > 0 {
            // SAFETY: these are the five arguments of SGLang's kernels; the caller answers for the memory.
            unsafe { launch!(function<<<*grid, THREADS, 0, stream>>>(args.x, args.q, args.s, hidden, rows)) }?;
        }
        Ok(())
    }
}
