//! The reference's kernels, from a cubin of its own.

use crate::gpu::BoxError;
use crate::gpu::replay::Replay;
use crate::gpu::slots::Slots;
use crate::{REPETITIONS, median_micros};
use per_token_quant_fp8::cust::function::Function;
use per_token_quant_fp8::cust::launch;
use per_token_quant_fp8::cust::module::Module;
use per_token_quant_fp8::cust::stream::Stream;
use per_token_quant_fp8::spec::per_token::REFERENCE_ROWS_PER_SM;
use per_token_quant_fp8::{Element, MathMode};
use ptq_suite::Case;
use std::path::Path;

/// Threads of a CTA of either kernel.
const THREADS: u32 = 256;
/// Rows of a CTA of the warp kernel.
const ROWS_PER_CTA: u64 = 8;

pub struct Reference {
    module: Module,
}

/// One of the reference's kernels and its grid.
struct Kernel<'m> {
    function: Function<'m>,
    grid: u32,
}

impl Reference {
    pub fn load(file: &Path) -> Result<Self, BoxError> {
        let image = std::fs::read(file).map_err(|e| format!("{}: {e}", file.display()))?;
        let module = Module::from_cubin(image, &[]).map_err(|e| format!("{}: {e}", file.display()))?;
        Ok(Self { module })
    }

    /// Microseconds of one launch, and the math mode whose bits it gives.
    pub fn micros(
        &self,
        case: &Case,
        sm_count: u32,
        slots: &mut Slots,
        stream: &Stream,
    ) -> Result<(f64, MathMode), BoxError> {
        slots.poison()?;
        let kernel = self.kernel(case, sm_count)?;
        let replay = Replay::new(stream, slots.count, |slot| kernel.enqueue(case, slots, slot, stream))?;
        let micros = median_micros(&replay, REPETITIONS)?;
        for math in MathMode::ALL {
            if slots.output_is(case, math)? {
                return Ok((micros, math));
            }
        }
        Err(format!("{}: the reference's bytes are those of neither math mode", case.name).into())
    }

    /// The kernel that the reference would choose.
    fn kernel(&self, case: &Case, sm_count: u32) -> Result<Kernel<'_>, BoxError> {
        let (rows, hidden) = (case.shape.rows(), case.shape.hidden());
        let vector = [16, 8, 4].into_iter().find(|v| hidden.is_multiple_of(*v)).ok_or("hidden is a multiple of 4")?;
        let element = match case.x.element() {
            Element::F16 => "6__half",
            Element::Bf16 => "13__nv_bfloat16",
            Element::F32 => "f",
        };
        let (name, grid) = if rows >= u64::from(sm_count) * REFERENCE_ROWS_PER_SM {
            let template = format!("_Z26per_token_quant_fp8_kernelI{element}13__nv_fp8_e4m3Li8ELi{vector}ELb0EE");
            (template, rows.div_ceil(ROWS_PER_CTA))
        } else {
            (format!("_Z38per_token_quant_fp8_small_batch_kernelI{element}13__nv_fp8_e4m3Li{vector}EE"), rows)
        };
        let name = name + "vPKT_PT0_Pfll";
        let function = self.module.get_function(&name).map_err(|e| format!("{name}: {e}"))?;
        Ok(Kernel { function, grid: grid.try_into()? })
    }
}

impl Kernel<'_> {
    fn enqueue(&self, case: &Case, slots: &Slots, slot: usize, stream: &Stream) -> Result<(), BoxError> {
        let Self { function, grid } = self;
        let args = slots.args(slot);
        let (hidden, rows) = (case.shape.hidden() as i64, case.shape.rows() as i64);
        // SAFETY: the five arguments are those of the reference's kernels, and the slot's operands are of the shape.
        unsafe { launch!(function<<<*grid, THREADS, 0, stream>>>(args.x, args.q, args.s, hidden, rows)) }?;
        Ok(())
    }
}
