//! Both CPU implementations against what the reference's kernels wrote on an H200 (`golden/README.md`).

use ptq_suite::{Oracle, cpu, golden, run};

/// 18 groups, two math modes, two dispatches.
const CASES: usize = 18 * 2 * 2;

#[test]
fn scalar() {
    assert_eq!(run(&cpu::Scalar, Oracle::Scalar, golden::cases()).unwrap(), CASES);
}

#[test]
fn rayon() {
    assert_eq!(run(&cpu::Rayon, Oracle::Scalar, golden::cases()).unwrap(), CASES);
}
