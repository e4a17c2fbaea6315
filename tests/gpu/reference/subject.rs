//! SGLang's kernels as the suite's subject.

use crate::sglang::Sglang;
use crate::subject::{OnDevice, Operands, on_device};
use per_token_quant_fp8::cust::stream::{Stream, StreamFlags};
use per_token_quant_fp8::{GpuElement, MathMode};
use ptq_suite::{Case, Implementation, Output};
use std::error::Error;
use std::path::Path;

/// Both libraries; the case's math mode says which one runs.
pub struct Reference {
    fast: Sglang,
    precise: Sglang,
    stream: Stream,
}

impl Reference {
    pub fn load(folder: &Path) -> Result<Self, Box<dyn Error>> {
        Ok(Self {
            fast: Sglang::load(folder, MathMode::Fast)?,
            precise: Sglang::load(folder, MathMode::Precise)?,
            stream: Stream::new(StreamFlags::DEFAULT, None)?,
        })
    }
}

impl Implementation for Reference {
    fn name(&self) -> String {
        "SGLang".into()
    }

    fn quantize(&self, case: &Case, out: &mut Output) -> Result<(), Box<dyn Error>> {
        on_device(self, &case.x, case, out)
    }
}

impl OnDevice<Case> for Reference {
    fn quantize<T: GpuElement>(&self, operands: &mut Operands<T>, case: &Case) -> Result<(), Box<dyn Error>> {
        let library = match case.params.math {
            MathMode::Fast => &self.fast,
            MathMode::Precise => &self.precise,
        };
        let args = operands.raw(case.shape, case.params.options);
        let kernel = library.kernel(&args, case.params.sm_count)?;
        // SAFETY: the kernel was chosen for these arguments, which name slices of the shape's size; they live until the
        // stream is done below, and nobody else has them.
        unsafe { kernel.launch(&args, &self.stream) }?;
        self.stream.synchronize()?;
        Ok(())
    }
}
