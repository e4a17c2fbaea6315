//! Against SGLang's own kernels: the suite on them, which proves suite and oracle, and ours beside them. Against
//! vLLM's: what our bounds share with its, and what not.

mod per_tensor;
mod random;
mod subject;
mod vllm;

use crate::{Test, sglang};
use per_token_quant_fp8::{DeviceInfo, MathMode};
use ptq_suite::{Budget, FAMILIES, Oracle, run};
use subject::Reference;

/// The families that SGLang cannot take: it does not check the operands' alignment, and has neither strides nor bounds
/// nor a count of rows in memory.
const FOREIGN: [&str; 4] = ["unaligned", "strides", "bounds", "device_rows"];

pub fn tests(device: &DeviceInfo) -> Vec<Test> {
    let folder = sglang::folder();
    let absent = folder.is_none();
    let folder = folder.unwrap_or_default();
    let mut tests = Vec::new();
    for family in FAMILIES.iter().filter(|family| !FOREIGN.contains(&family.name)) {
        let folder = folder.clone();
        tests.push(Test::new(format!("reference::{}", family.name), move || {
            run(&Reference::load(&folder)?, Oracle::Rayon, family.cases(Budget::UNBOUNDED))?;
            Ok(())
        }));
    }
    for math in MathMode::ALL {
        let folder = folder.clone();
        tests.push(Test::new(format!("reference::random_f32_{math}"), move || random::same_bytes(&folder, math)));
    }
    {
        let folder = folder.clone();
        tests.push(Test::new("reference::vllm", move || vllm::bounds(&folder)));
    }
    tests.extend(per_tensor::tests(&folder));
    let elsewhere = device.capability != MathMode::FAST_CAPABILITY;
    let skip = |test: Test| {
        test.skip_if(absent, "no reference; run `cargo xtask reference`")
            .skip_if(elsewhere, "the reference's code is for compute capability 9.0")
    };
    tests.into_iter().map(skip).collect()
}
