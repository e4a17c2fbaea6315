use super::{case, mixed};
use crate::{Budget, Case};
use ptq_cpu::Params;
use ptq_spec::per_token::{ENTRIES, Entry, HIDDEN_MULTIPLE, LANES_PER_WARP, Strategy};
use ptq_spec::{Element, MathMode};
use std::collections::BTreeSet;

/// Threads per CTA to run every entry with: the fewest, the most of either kind of entry, and numbers of warps that are
/// no power of two.
pub const THREADS: [u32; 5] = [32, 96, 256, 736, 1024];

/// Row lengths at and next to every step from one vector per thread to the next, for every kernel entry with every number
/// of [`THREADS`]; the last step is the longest row that the entry holds in registers.
///
/// Next to a step is a vector of the entry, so that it takes such a row too, and the least that a row length can change.
pub fn boundaries(budget: Budget) -> impl Iterator<Item = Case> {
    around(THREADS.iter().flat_map(|&threads| ENTRIES.iter().flat_map(move |entry| steps(entry, threads))), budget)
}

/// Those of one entry with one number of threads.
pub fn boundaries_of(entry: &Entry, threads: u32, budget: Budget) -> impl Iterator<Item = Case> + use<> {
    around(steps(entry, threads), budget)
}

/// Cases around steps; a step comes with the length of the entry's vector.
fn around(steps: impl Iterator<Item = (u64, u64)>, budget: Budget) -> impl Iterator<Item = Case> {
    const ROWS: usize = 3;
    let hidden = |(step, vector): (u64, u64)| {
        [step - vector, step - HIDDEN_MULTIPLE, step, step + HIDDEN_MULTIPLE, step + vector]
    };
    let hidden: BTreeSet<usize> = steps.flat_map(hidden).map(|hidden| hidden as usize).collect();
    Element::ALL.into_iter().flat_map(move |element| {
        hidden.clone().into_iter().filter(move |&hidden| budget.holds(ROWS, hidden)).flat_map(move |hidden| {
            let x = mixed(element, ROWS, hidden, 0);
            MathMode::ALL.map(|math| case("boundary", &x, (ROWS, ROWS, hidden), Params::new(math)))
        })
    })
}

/// Rows that fill all threads with one vector, with two, ... as many as they hold, or twice as many as they hold at once;
/// and the length of a vector.
fn steps(entry: &Entry, threads: u32) -> impl Iterator<Item = (u64, u64)> + use<> {
    let lanes = if entry.strategy == Strategy::Warp { LANES_PER_WARP } else { threads };
    let elements = entry.elements_per_vector;
    let vectors = match entry.strategy {
        strategy if threads > strategy.max_threads() => 0,
        Strategy::CtaTwoPass => 2,
        Strategy::Cta | Strategy::Warp => entry.vectors_per_thread,
    };
    (1..=vectors).map(move |vectors| (u64::from(lanes * elements * vectors), u64::from(elements).max(HIDDEN_MULTIPLE)))
}
