use super::{case, tensor};
use crate::sample::{Random, Sample as _, with_element};
use crate::{Budget, Case};
use ptq_cpu::Params;
use ptq_spec::per_token::{DEFAULT_SM_COUNT, REFERENCE_ROWS_PER_SM};
use ptq_spec::{Element, MathMode};
use std::sync::Arc;

/// Row counts around the rows of a CTA of eight warps, and around the count from which the reference guards zero scales, on
/// a chip of one multiprocessor and on one of many. Every third row is zeros.
pub fn row_counts(budget: Budget) -> impl Iterator<Item = Case> {
    let counts = [1, DEFAULT_SM_COUNT].into_iter().flat_map(|sm_count| {
        let threshold = (u64::from(sm_count) * REFERENCE_ROWS_PER_SM) as usize;
        [1, 7, 8, 9, threshold - 1, threshold, threshold + 1].map(|rows| (rows, sm_count))
    });
    let inputs = counts.flat_map(|(rows, sm_count)| [8, 36, 1076].map(|hidden| (rows, sm_count, hidden)));
    let inputs = inputs.filter(move |&(rows, _, hidden)| budget.holds(rows, hidden));
    Element::ALL.into_iter().flat_map(move |element| {
        inputs.clone().flat_map(move |(rows, sm_count, hidden)| {
            let mut random = Random(7);
            let x = Arc::new(with_element!(element, T => tensor::<T>(rows, hidden, 0, |row, _| {
                let ordinary = random.moderate();
                if row % 3 == 2 { T::with_bits(0) } else { ordinary }
            })));
            let name = format!("row counts, {sm_count} multiprocessors");
            MathMode::ALL.map(|math| case(&name, &x, (rows, rows, hidden), Params { sm_count, ..Params::new(math) }))
        })
    })
}
