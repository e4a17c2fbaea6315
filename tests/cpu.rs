//! The fast CPU path by every instruction set against the scalar one, on every family of cases and generated calls; both
//! against the recorded bytes in `golden.rs`.
//!
//! Tests of an instruction set that this machine lacks are reported as ignored.

use libtest_mimic::{Arguments, Failed, Trial};
use per_token_quant_fp8::MathMode;
use per_token_quant_fp8::cpu::Isa;
use ptq_suite::per_tensor::{self, PerTensor};
use ptq_suite::{Budget, FAMILIES, Family, Implementation, Oracle, check, cpu, property, run};
use std::process::ExitCode;

/// A GPU runs the larger inputs too; the CPU's rows are all alike to it.
const BUDGET: Budget = Budget { rows: usize::MAX, elements: 1 << 22 };

fn main() -> ExitCode {
    let mut trials = tests("chosen", cpu::Rayon);
    trials.extend(per_tensor_tests("chosen", per_tensor::cpu::Rayon));
    for isa in Isa::ALL {
        let available = isa.is_available();
        if !available {
            println!("{isa}: ignored, for this machine lacks it");
        }
        let per_token = tests(&isa.to_string(), cpu::With(isa));
        let per_tensor = per_tensor_tests(&isa.to_string(), per_tensor::cpu::With(isa));
        trials.extend(per_token.into_iter().chain(per_tensor).map(|t| t.with_ignored_flag(!available)));
    }
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}

/// Every test of one implementation.
fn tests(name: &str, subject: impl Implementation + Copy + Send + 'static) -> Vec<Trial> {
    let family = |family: &'static Family| {
        Trial::test(format!("{name}::{}", family.name), move || {
            run(&subject, Oracle::Scalar, family.cases(BUDGET))?;
            Ok(())
        })
    };
    let any_call = Trial::test(format!("{name}::any_call"), move || any_call(&subject));
    FAMILIES.iter().map(family).chain([any_call]).collect()
}

/// Every test of per-tensor quantization of one implementation.
fn per_tensor_tests(name: &str, subject: impl PerTensor + Copy + Send + 'static) -> Vec<Trial> {
    let family = |family: &'static per_tensor::Family| {
        Trial::test(format!("{name}::per_tensor::{}", family.name), move || {
            per_tensor::run(&subject, Oracle::Scalar, family.calls(BUDGET))?;
            Ok(())
        })
    };
    per_tensor::FAMILIES.iter().map(family).collect()
}

fn any_call(subject: &dyn Implementation) -> Result<(), Failed> {
    let budget = Budget { rows: 300, elements: 1 << 17 };
    property(budget, &MathMode::ALL, 2000, |case| check(subject, Oracle::Scalar, case))?;
    Ok(())
}
