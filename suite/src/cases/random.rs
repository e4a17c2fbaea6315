use super::{case, mixed};
use crate::{Budget, Case};
use ptq_cpu::Params;
use ptq_spec::{Element, MathMode};

const HIDDEN: [usize; 8] = [4, 8, 12, 1076, 1368, 4096, 7168, 20000];
/// 2112 is where the reference changes kernels on a chip of 132 multiprocessors.
const ROWS: [usize; 4] = [1, 39, 2112, 7807];

/// Random bits: every element type, row lengths from 4 to 20000, row counts from 1 to 7807, both math modes.
///
/// Even rows are any bits, with NaN and infinities where the element type has many of them; odd rows spread over all
/// codes.
pub fn random(budget: Budget) -> impl Iterator<Item = Case> {
    let shapes = HIDDEN.into_iter().flat_map(|hidden| ROWS.map(|rows| (rows, hidden)));
    let shapes = shapes.filter(move |&(rows, hidden)| budget.holds(rows, hidden));
    Element::ALL.into_iter().flat_map(move |element| {
        shapes.clone().flat_map(move |(rows, hidden)| {
            let x = mixed(element, rows, hidden, 0);
            MathMode::ALL.map(|math| case("random", &x, (rows, rows, hidden), Params::new(math)))
        })
    })
}
