//! The suite through each kernel entry, whichever would be chosen.

use crate::subject::{Emulator, takes};
use ptq_spec::per_token::Entry;
use ptq_spec::{Element, Kernel, MathMode};
use ptq_suite::cases::{THREADS, boundaries_of, largest_at_each_column};
use ptq_suite::{Budget, Case, FAMILIES, Oracle, check, property};
use std::collections::BTreeSet;

const BUDGET: Budget = Budget { rows: 400, elements: 1 << 16 };

macro_rules! tests {
    ($(($name:ident, $strategy:ident, $elements:tt, $vectors:tt),)*) => {$(
        #[test]
        fn $name() {
            let entry = all().find(|entry| entry.name == stringify!($name)).expect("a table has it");
            families(entry);
            borders(entry);
        }
    )*};
}
ptq_spec::for_each_per_token_entry!(tests);
ptq_spec::for_each_per_token_extended_entry!(tests);

/// Every entry of both operations.
fn all() -> impl Iterator<Item = &'static Entry> {
    [Kernel::PerToken, Kernel::PerTokenExtended].into_iter().flat_map(Kernel::row_entries)
}

fn passes(entry: &'static Entry, threads: u32, case: &Case) {
    check(&Emulator::forced(entry, threads), Oracle::Scalar, case)
        .unwrap_or_else(|failure| panic!("{threads} threads: {failure}"));
}

/// Numbers of threads with which the entry takes the case.
fn fitting(entry: &Entry, case: &Case, threads: &[u32]) -> Vec<u32> {
    threads.iter().copied().filter(|&threads| takes(entry, threads, case)).collect()
}

/// Every family, each case with one of the numbers of threads by turns.
fn families(entry: &'static Entry) {
    /// As a CTA of 1024 costs 32 times as much as one of 32.
    const MOST_THREADS: usize = 3;
    let mut ran = 0;
    for case in FAMILIES.iter().flat_map(|family| family.cases(BUDGET)) {
        let threads = fitting(entry, &case, &THREADS[..MOST_THREADS]);
        if !threads.is_empty() {
            passes(entry, threads[ran % threads.len()], &case);
            ran += 1;
        }
    }
    assert!(ran > 0, "no case suits {}", entry.name);
}

/// The steps of the entry with every number of threads.
fn borders(entry: &'static Entry) {
    let mut longest = BTreeSet::new();
    for threads in THREADS.into_iter().filter(|&threads| threads <= entry.strategy.max_threads()) {
        for case in boundaries_of(entry, threads, Budget::UNBOUNDED).filter(|case| takes(entry, threads, case)) {
            passes(entry, threads, &case);
            if entry.max_hidden(threads).is_none_or(|longest| longest == case.shape.hidden()) {
                longest.insert((case.x.element(), threads));
            }
        }
    }
    let threads = THREADS.iter().filter(|&&threads| threads <= entry.strategy.max_threads()).count();
    assert_eq!(longest.len(), Element::ALL.len() * threads, "{}: its longest row was not run", entry.name);
}

/// The reduction over 32 warps, and the slots of all of them.
#[test]
fn full_ctas() {
    let threads = THREADS[THREADS.len() - 1];
    let budget = Budget { elements: 1 << 15, ..Budget::UNBOUNDED };
    let mut ran = BTreeSet::new();
    for case in largest_at_each_column(budget).filter(|case| case.shape.hidden() == 4096) {
        for entry in all().filter(|entry| takes(entry, threads, &case)) {
            passes(entry, threads, &case);
            ran.insert(entry.name);
        }
    }
    assert!(!ran.is_empty());
}

/// Generated calls, each through every entry that takes it.
#[test]
fn any_call() {
    let budget = Budget { rows: 20, elements: 1 << 12 };
    property(budget, &MathMode::ALL, 100, |case| {
        for entry in all() {
            for threads in fitting(entry, case, &THREADS[..2]) {
                check(&Emulator::forced(entry, threads), Oracle::Scalar, case)?;
            }
        }
        Ok(())
    })
    .unwrap();
}
