//! Every family of cases of the suite, and generated calls, through every variation.

use crate::Test;
use crate::entries::fits;
use crate::form::Form;
use crate::variation::Variation;
use per_token_quant_fp8::spec::per_token::{Caching, LANES_PER_WARP, Strategy};
use per_token_quant_fp8::{Kernel, Plan, Quantizer};
use ptq_suite::{Budget, Case, FAMILIES, Oracle, cases, check, property, run};
use std::num::NonZeroU32;

/// Of what is repeated with other ways to launch.
const SMALL: Budget = Budget { rows: usize::MAX, elements: 1 << 18 };
/// Of generated calls.
const CALLS: Budget = Budget { rows: 3000, elements: 1 << 18 };

fn small() -> impl Iterator<Item = Case> {
    let plain = cases::random(SMALL).chain(cases::zero_scales(SMALL)).chain(cases::padded(SMALL));
    let apart = cases::unaligned(SMALL).chain(cases::strides(SMALL));
    plain.chain(apart).chain(cases::bounds(SMALL)).chain(cases::device_rows(SMALL))
}

/// A quantizer whose grids have three CTAs: hundreds of grids for a call.
fn limited(quantizer: Quantizer) -> Quantizer {
    const LIMIT: NonZeroU32 = NonZeroU32::new(3).expect("three is not zero");
    quantizer.with_grid_limit(LIMIT)
}

/// The cases of the variation's math modes.
fn of(variation: &Variation, cases: impl Iterator<Item = Case>) -> impl Iterator<Item = Case> {
    cases.filter(|case| variation.math.contains(&case.params.math))
}

pub fn tests(variations: &[Variation], form: Form) -> Vec<Test> {
    let mut tests = Vec::new();
    for variation in variations {
        for family in FAMILIES {
            let v = variation.clone();
            tests.push(Test::new(format!("{}::{}", v.name(), family.name), move || {
                run(&v.subject()?, Oracle::Rayon, form.some(of(&v, family.cases(form.budget()))))?;
                Ok(())
            }));
        }
        let v = variation.clone();
        tests.push(Test::new(format!("{}::any_call", v.name()), move || {
            let subject = v.subject()?;
            property(CALLS, &v.math, form.generated_calls(), |case| check(&subject, Oracle::Rayon, case))?;
            Ok(())
        }));
        let v = variation.clone();
        tests.push(Test::new(format!("{}::raw_entry", v.name()), move || {
            run(&v.subject()?.raw(), Oracle::Rayon, form.some(of(&v, small())))?;
            Ok(())
        }));
        let v = variation.clone();
        tests.push(Test::new(format!("{}::many_grids", v.name()), move || {
            let limited = |quantizer| Ok::<_, std::convert::Infallible>(limited(quantizer));
            let cases = of(&v, small()).filter(|case| case.shape.rows() <= form.rows_in_many_grids());
            run(&v.subject()?.map(limited)?, Oracle::Rayon, form.some(cases))?;
            Ok(())
        }));
        // The policy has warps take rows only where there are more of them than here.
        for (kernel, elements, vectors) in [(Kernel::PerToken, 4, 4), (Kernel::PerTokenExtended, 4, 2)] {
            let v = variation.clone();
            tests.push(Test::new(format!("{}::many_grids_of_warps_{kernel}", v.name()), move || {
                let entry = kernel.row_entry(Strategy::Warp, elements, vectors).ok_or("there is no such entry")?;
                let plan = Plan { caching: Caching::NoAllocate, ..Plan::new(entry, 256) };
                let forced = |quantizer| limited(quantizer).with_plan(plan);
                let wanted = |case: &Case| {
                    case.kernel() == kernel
                        && fits(entry, v.target, LANES_PER_WARP, case)
                        && case.shape.rows() <= form.rows_in_many_grids()
                };
                let cases: Vec<_> = form.some(of(&v, small()).filter(wanted)).collect();
                if cases.is_empty() {
                    return Err("no case fits".into());
                }
                run(&v.subject()?.map(forced)?, Oracle::Rayon, cases)?;
                Ok(())
            }));
        }
    }
    tests
}
