//! The fast CPU path against the scalar one, on every kind of generated case.

use ptq_suite::{Case, Oracle, cases, cpu, run};

/// Largest input in elements. A GPU runs the larger ones too; the CPU's rows are all alike to it.
const MAX_ELEMENTS: usize = 1 << 22;

fn passes(cases: impl Iterator<Item = Case>) {
    run(&cpu::Rayon, Oracle::Scalar, cases).unwrap();
}

#[test]
fn random_bits() {
    passes(cases::random(MAX_ELEMENTS));
}

#[test]
fn boundaries() {
    passes(cases::boundaries());
}

#[test]
fn largest_at_each_column() {
    passes(cases::largest_at_each_column(MAX_ELEMENTS));
}

#[test]
fn each_exponent() {
    passes(cases::each_exponent());
}

#[test]
fn special_values() {
    passes(cases::specials());
}

#[test]
fn zero_scales() {
    passes(cases::zero_scales());
}

#[test]
fn padded() {
    passes(cases::padded());
}

#[test]
fn unaligned() {
    passes(cases::unaligned());
}
