//! Every kind of case of the suite, through every variation.

use crate::Test;
use crate::variation::Variation;
use per_token_quant_fp8::Quantizer;
use ptq_suite::{Case, Oracle, cases, golden, run};
use std::num::NonZeroU32;

/// Inputs of any size: the largest has 7807 x 20000 elements.
const ALL: usize = usize::MAX;
/// Largest input, in elements, of what is repeated with other ways to launch.
const SMALL: usize = 1 << 18;

type Cases = Box<dyn Iterator<Item = Case>>;

/// Name and cases of one kind.
type Kind = (&'static str, fn() -> Cases);

/// The kinds of cases, by name.
const KINDS: &[Kind] = &[
    ("golden", || Box::new(golden::cases())),
    ("random", || Box::new(cases::random(ALL))),
    ("boundaries", || Box::new(cases::boundaries())),
    ("largest_at_each_column", || Box::new(cases::largest_at_each_column(1 << 24))),
    ("each_exponent", || Box::new(cases::each_exponent())),
    ("specials", || Box::new(cases::specials())),
    ("zero_scales", || Box::new(cases::zero_scales())),
    ("padded", || Box::new(cases::padded())),
    ("unaligned", || Box::new(cases::unaligned())),
];

fn small() -> impl Iterator<Item = Case> {
    cases::random(SMALL).chain(cases::zero_scales()).chain(cases::padded()).chain(cases::unaligned())
}

/// The cases of the variation's math modes.
fn of(variation: &Variation, cases: impl Iterator<Item = Case>) -> impl Iterator<Item = Case> {
    cases.filter(|case| variation.math.contains(&case.params.math))
}

pub fn tests(variations: &[Variation]) -> Vec<Test> {
    let mut tests = Vec::new();
    for variation in variations {
        for &(kind, cases) in KINDS {
            let v = variation.clone();
            tests.push(Test::new(format!("{}::{kind}", v.name()), move || {
                run(&v.subject()?, Oracle::Rayon, of(&v, cases()))?;
                Ok(())
            }));
        }
        let v = variation.clone();
        tests.push(Test::new(format!("{}::raw_entry", v.name()), move || {
            run(&v.subject()?.raw(), Oracle::Rayon, of(&v, small()))?;
            Ok(())
        }));
        let v = variation.clone();
        tests.push(Test::new(format!("{}::many_grids", v.name()), move || {
            // Three CTAs to a grid: hundreds of grids for a call.
            let limit = NonZeroU32::new(3).ok_or("three is not zero")?;
            let limited = |quantizer: Quantizer| Ok::<_, std::convert::Infallible>(quantizer.with_grid_limit(limit));
            run(&v.subject()?.map(limited)?, Oracle::Rayon, of(&v, small()))?;
            Ok(())
        }));
    }
    tests
}
