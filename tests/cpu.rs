//! The fast CPU path against the scalar one, on every family of cases; both against the recorded bytes in `golden.rs`.

use per_token_quant_fp8::MathMode;
use ptq_suite::{Budget, Family, Oracle, check, cpu, property, run};

/// A GPU runs the larger inputs too; the CPU's rows are all alike to it.
const BUDGET: Budget = Budget { rows: usize::MAX, elements: 1 << 22 };

macro_rules! tests {
    ($($family:ident,)*) => {$(
        #[test]
        fn $family() {
            let family = Family::named(stringify!($family)).expect("the list has it");
            run(&cpu::Rayon, Oracle::Scalar, family.cases(BUDGET)).unwrap();
        }
    )*};
}
ptq_suite::for_each_family!(tests);

#[test]
fn any_call() {
    let budget = Budget { rows: 300, elements: 1 << 17 };
    property(budget, &MathMode::ALL, 2000, |case| check(&cpu::Rayon, Oracle::Scalar, case)).unwrap();
}
