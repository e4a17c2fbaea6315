//! The suite through the emulator: the kernels' own sources, every entry, both math modes, no GPU.

mod entries;
mod subject;

use ptq_spec::Element;
use ptq_spec::per_token::{ENTRIES, Entry, Strategy};
use ptq_suite::{Case, Oracle, cases, check, golden, run};
use std::collections::BTreeSet;
use subject::Emulator;

/// Largest input in elements: a thread of the emulator costs a microsecond where a GPU's costs nothing.
const MAX_ELEMENTS: usize = 1 << 13;

/// Threads per CTA: one warp, several, and a number of warps that is no power of two.
const THREADS: [u32; 3] = [32, 96, 256];

/// Runs `cases` through the entry that fits each best.
fn suite(cases: impl IntoIterator<Item = Case>) {
    run(&Emulator::best(), Oracle::Scalar, cases).unwrap_or_else(|failures| panic!("{failures}"));
}

#[test]
fn goldens() {
    suite(golden::cases());
}

#[test]
fn random_bits() {
    suite(cases::random(MAX_ELEMENTS));
}

#[test]
fn largest_at_each_column() {
    suite(cases::largest_at_each_column(MAX_ELEMENTS));
}

#[test]
fn each_exponent() {
    suite(cases::each_exponent());
}

#[test]
fn special_values() {
    suite(cases::specials());
}

#[test]
fn zero_scales() {
    suite(cases::zero_scales());
}

#[test]
fn padded_outputs() {
    suite(cases::padded());
}

#[test]
fn unaligned_operands() {
    suite(cases::unaligned());
}

/// Every entry that takes a row of that length with that many threads.
fn fitting(case: &Case, threads: u32) -> impl Iterator<Item = &'static Entry> {
    let hidden = case.shape.hidden();
    ENTRIES.iter().filter(move |entry| {
        threads <= entry.strategy.max_threads()
            && hidden.is_multiple_of(entry.elements_per_vector.into())
            && entry.max_hidden(threads).is_none_or(|longest| hidden <= longest)
    })
}

#[test]
fn every_entry_at_its_borders() {
    let mut ran = BTreeSet::new();
    for case in cases::boundaries().filter(|case| case.shape.hidden() <= MAX_ELEMENTS as u64) {
        for threads in THREADS {
            for entry in fitting(&case, threads) {
                let subject = Emulator::forced(entry, threads);
                check(&subject, Oracle::Scalar, &case)
                    .unwrap_or_else(|reason| panic!("{} with {threads} threads, {}: {reason}", entry.name, case.name));
                ran.insert((case.x.element(), entry.name));
            }
        }
    }
    assert_eq!(ran.len(), Element::ALL.len() * ENTRIES.len(), "some entry was never run");
}

#[test]
fn goldens_through_every_entry() {
    let case = |case: &Case| [36, 512].contains(&case.shape.hidden());
    for case in golden::cases().filter(case) {
        for entry in fitting(&case, 64) {
            let subject = Emulator::forced(entry, 64);
            check(&subject, Oracle::Scalar, &case)
                .unwrap_or_else(|reason| panic!("{}, {}: {reason}", entry.name, case.name));
        }
    }
}

#[test]
fn full_ctas() {
    // The reduction over 32 warps, and the slots of all of them.
    for case in cases::largest_at_each_column(1 << 15).filter(|case| case.shape.hidden() == 4096) {
        for entry in fitting(&case, 1024).filter(|entry| entry.strategy != Strategy::Warp) {
            let subject = Emulator::forced(entry, 1024);
            check(&subject, Oracle::Scalar, &case)
                .unwrap_or_else(|reason| panic!("{}, {}: {reason}", entry.name, case.name));
        }
    }
}
