//! Every kernel entry, forced, with every number of threads that it takes: policy chooses few of them.

use crate::variation::Variation;
use crate::{Outcome, Test};
use per_token_quant_fp8::spec::per_token::{ENTRIES, Entry};
use per_token_quant_fp8::{Element, Plan};
use ptq_suite::{Case, Oracle, cases, check};
use std::collections::BTreeSet;

/// Threads per CTA: the fewest, the most of either kind of entry, and numbers of warps that are no power of two.
const THREADS: [u32; 5] = [32, 96, 256, 736, 1024];

/// Largest input in elements.
const MAX_ELEMENTS: usize = 1 << 17;

pub fn tests(variations: &[Variation]) -> Vec<Test> {
    let elements = |v: &Variation| Element::ALL.map(|element| (v.clone(), element));
    let test = |(v, element): (Variation, Element)| {
        Test::new(format!("{}::every_entry_{element}", v.name()), move || every_entry(&v, element))
    };
    variations.iter().flat_map(elements).map(test).collect()
}

fn every_entry(variation: &Variation, element: Element) -> Outcome {
    let mut ran = BTreeSet::new();
    let wanted = |case: &Case| case.x.element() == element && variation.math.contains(&case.params.math);
    for case in cases::boundaries().chain(cases::random(MAX_ELEMENTS)).filter(wanted) {
        for entry in ENTRIES {
            for threads in THREADS.into_iter().filter(|&threads| fits(entry, threads, case.shape.hidden())) {
                let subject = variation.subject()?.map(|quantizer| quantizer.with_plan(Plan { entry, threads }))?;
                check(&subject, Oracle::Rayon, &case)
                    .map_err(|reason| format!("{} with {threads} threads, {}: {reason}", entry.name, case.name))?;
                ran.insert(entry.name);
            }
        }
    }
    let left_out: Vec<_> = ENTRIES.iter().map(|e| e.name).filter(|name| !ran.contains(name)).collect();
    if left_out.is_empty() { Ok(()) } else { Err(format!("no case ran {left_out:?}").into()) }
}

/// Whether the entry takes rows of that length with that many threads; the cases are aligned.
fn fits(entry: &Entry, threads: u32, hidden: u64) -> bool {
    threads <= entry.strategy.max_threads()
        && hidden.is_multiple_of(entry.elements_per_vector.into())
        && entry.max_hidden(threads).is_none_or(|longest| hidden <= longest)
}
