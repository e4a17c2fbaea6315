//! Every kernel entry, forced, with every number of threads that it takes: policy chooses few of them.

use crate::form::Form;
use crate::variation::Variation;
use crate::{Outcome, Test};
use per_token_quant_fp8::spec::per_token::{ENTRIES, Entry};
use per_token_quant_fp8::{Element, Plan};
use ptq_suite::cases::{self, THREADS};
use ptq_suite::{Budget, Case, Oracle, check};
use std::cmp::Reverse;

const BUDGET: Budget = Budget { rows: usize::MAX, elements: 1 << 17 };

pub fn tests(variations: &[Variation], form: Form) -> Vec<Test> {
    let elements = |v: &Variation| Element::ALL.map(|element| (v.clone(), element));
    let test = move |(v, element): (Variation, Element)| {
        Test::new(format!("{}::every_entry_{element}", v.name()), move || every_entry(&v, element, form))
    };
    variations.iter().flat_map(elements).map(test).collect()
}

fn every_entry(variation: &Variation, element: Element, form: Form) -> Outcome {
    let wanted = |case: &Case| case.x.element() == element && variation.math.contains(&case.params.math);
    let mut cases: Vec<_> = cases::boundaries(BUDGET).chain(cases::random(BUDGET)).filter(wanted).collect();
    cases.sort_by_key(|case| Reverse(case.shape.hidden()));
    for entry in ENTRIES {
        for threads in THREADS.into_iter().filter(|&threads| threads <= entry.strategy.max_threads()) {
            let subject = variation.subject()?.map(|quantizer| quantizer.with_plan(Plan { entry, threads }))?;
            let mut ran = 0;
            for case in cases.iter().filter(|case| fits(entry, threads, case)).take(form.cases_per_plan()) {
                check(&subject, Oracle::Rayon, case)
                    .map_err(|failure| format!("{} with {threads} threads: {failure}", entry.name))?;
                ran += 1;
            }
            if ran == 0 {
                return Err(format!("no case fits {} with {threads} threads", entry.name).into());
            }
        }
    }
    Ok(())
}

/// Whether the entry takes the case's rows with that many threads; the cases are aligned.
fn fits(entry: &Entry, threads: u32, case: &Case) -> bool {
    let hidden = case.shape.hidden();
    hidden.is_multiple_of(entry.elements_per_vector.into())
        && entry.max_hidden(threads).is_none_or(|longest| hidden <= longest)
}
