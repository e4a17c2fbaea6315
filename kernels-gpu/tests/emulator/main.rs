//! The suite through the emulator: the kernels' own sources, every entry, both math modes, no GPU.

mod entries;
mod every_entry;
mod offsets;
mod per_tensor;
mod speed;
mod subject;

use ptq_spec::MathMode;
use ptq_suite::{Budget, Family, Oracle, check, property, run};
use subject::Emulator;

/// A thread of the emulator costs a fraction of a microsecond where a GPU's costs nothing.
const BUDGET: Budget = Budget { rows: 2048, elements: 1 << 20 };

macro_rules! tests {
    ($($family:ident,)*) => {$(
        #[test]
        fn $family() {
            let family = Family::named(stringify!($family)).expect("the list has it");
            run(&Emulator::best(), Oracle::Scalar, family.cases(BUDGET)).unwrap();
        }
    )*};
}
ptq_suite::for_each_family!(tests);

#[test]
fn any_call() {
    let budget = Budget { rows: 100, elements: 1 << 14 };
    property(budget, &MathMode::ALL, 1000, |case| check(&Emulator::best(), Oracle::Scalar, case)).unwrap();
}

/// The count of rows is of the call's rows and not of a grid's.
#[test]
fn rows_counted_over_grids() {
    let family = Family::named("device_rows").expect("the list has it");
    let budget = Budget { elements: 1 << 12, ..BUDGET };
    run(&Emulator::best().in_grids(5), Oracle::Scalar, family.cases(budget)).unwrap();
}
