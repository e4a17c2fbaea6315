//! Backend and target: everything that the device can run.

use crate::form::Form;
use crate::subject::Subject;
use per_token_quant_fp8::{Backend, DeviceInfo, MathMode, TARGETS, Target, quantizer};
use std::collections::BTreeSet;

/// One backend with one target, and the math modes in which both exist.
#[derive(Debug, Clone)]
pub struct Variation {
    pub backend: Backend,
    pub target: &'static Target,
    pub math: Vec<MathMode>,
}

/// Every variation that the device runs; those of `PTQ_TARGET` alone where it is set. In the short form one of each target.
pub fn all(device: &DeviceInfo, form: Form) -> Vec<Variation> {
    let forced = std::env::var("PTQ_TARGET").ok().filter(|name| !name.is_empty());
    let targets = || TARGETS.iter().filter(|t| forced.as_ref().is_none_or(|name| t.name == name));
    let proved = |math: &MathMode| *math == MathMode::Precise || device.math() == MathMode::Fast;
    let variation = |backend, target: &'static Target| {
        let math = target.math.iter().copied().filter(proved).collect();
        Variation { backend, target, math }
    };
    let aot = targets().filter(|t| t.runs_cubin(device.capability)).map(|t| variation(Backend::Aot, t));
    let jit = targets().filter(|t| t.runs_ptx(device.capability)).map(|t| variation(Backend::Jit, t));
    let mut variations: Vec<Variation> = aot.chain(jit).collect();
    if form == Form::Short {
        let mut seen = BTreeSet::new();
        variations.retain(|variation| seen.insert(variation.target.name));
    }
    variations
}

impl Variation {
    /// Start of the names of its tests.
    pub fn name(&self) -> String {
        format!("{}_{}", self.backend, self.target)
    }

    /// The suite's subject for it.
    pub fn subject(&self) -> Result<Subject, Box<dyn std::error::Error>> {
        let quantizer = quantizer()?.with_backend(self.backend).with_target(self.target.name)?;
        Subject::new(self.name(), quantizer)
    }
}
