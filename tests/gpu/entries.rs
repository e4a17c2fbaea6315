//! Every kernel entry, forced, with every number of threads that it takes: policy chooses few of them.

use crate::form::Form;
use crate::variation::Variation;
use crate::{Outcome, Test};
use per_token_quant_fp8::spec::per_token::{Caching, Entry};
use per_token_quant_fp8::{Element, Extended, Kernel, Plan, Target};
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
    for entry in Kernel::PerToken.row_entries() {
        every_number_of_threads(variation, entry, &cases, form)?;
    }
    let asked = Extended { scale_upper_bound: Some(f32::MAX), ..Extended::default() };
    // As in the short form, five meets all of what cases come in.
    let mut extended: Vec<_> = cases.into_iter().step_by(5).collect();
    extended.iter_mut().for_each(|case| case.extended = asked);
    extended.extend(cases::strides(BUDGET).chain(cases::device_rows(BUDGET)).filter(wanted));
    extended.sort_by_key(|case| Reverse(case.shape.hidden()));
    for entry in Kernel::PerTokenExtended.row_entries() {
        every_number_of_threads(variation, entry, &extended, form)?;
    }
    Ok(())
}

fn every_number_of_threads(variation: &Variation, entry: &'static Entry, cases: &[Case], form: Form) -> Outcome {
    for threads in THREADS.into_iter().filter(|&threads| threads <= entry.strategy.max_threads()) {
        let subject = |caching| -> Result<_, Box<dyn std::error::Error>> {
            let plan = Plan { caching, ..Plan::new(entry, threads) };
            Ok(variation.subject()?.map(|quantizer| quantizer.with_plan(plan))?)
        };
        let subjects = [subject(Caching::Ordinary)?, subject(Caching::NoAllocate)?];
        let mut ran = 0;
        for case in cases.iter().filter(|case| fits(entry, variation.target, threads, case)).take(form.cases_per_plan())
        {
            // Either caching, by a sequence with which no order of cases keeps step.
            check(&subjects[usize::count_ones(ran) as usize % 2], Oracle::Rayon, case)
                .map_err(|failure| format!("{} with {threads} threads: {failure}", entry.name))?;
            ran += 1;
        }
        if ran == 0 {
            return Err(format!("no case fits {} with {threads} threads", entry.name).into());
        }
    }
    Ok(())
}

/// Whether the entry takes the case's rows with that many threads.
pub fn fits(entry: &Entry, target: &Target, threads: u32, case: &Case) -> bool {
    let (elements, bytes) = (u64::from(entry.elements_per_vector), case.x.element().bytes() as u64);
    let access = (elements * bytes).min(target.vector_bytes as u64);
    let (hidden, layout, (x, q)) = (case.shape.hidden(), case.layout(), case.offsets());
    hidden.is_multiple_of(elements)
        && [x as u64, layout.x_stride() * bytes].iter().all(|x| x.is_multiple_of(access))
        && [q as u64, layout.q_stride()].iter().all(|q| q.is_multiple_of(elements))
        && entry.max_hidden(threads).is_none_or(|longest| hidden <= longest)
}
