use super::{case, mixed};
use crate::{Budget, Case};
use ptq_cpu::Params;
use ptq_spec::{Element, MathMode};

/// Outputs of more rows than the input, which keep their bytes; among them inputs of no rows at all.
pub fn padded(budget: Budget) -> impl Iterator<Item = Case> {
    let shapes = [(0, 0, 8), (0, 3, 8), (1, 17, 1076), (39, 64, 12), (39, 40, 4096), (2112, 2113, 4)];
    let shapes = shapes.into_iter().filter(move |&(_, rows_out, hidden)| budget.holds(rows_out, hidden));
    Element::ALL.into_iter().flat_map(move |element| {
        shapes.clone().flat_map(move |shape @ (rows, _, hidden)| {
            let x = mixed(element, rows, hidden, 0);
            MathMode::ALL.map(|math| case("padded", &x, shape, Params::new(math)))
        })
    })
}

/// `x` and `q` off a vector's alignment, each alone and both: a vector access would fault or a narrower path be taken.
pub fn unaligned(budget: Budget) -> impl Iterator<Item = Case> {
    const ROWS: usize = 5;
    let alone = (1..=8).flat_map(|offset| [(offset, 0), (0, offset)]);
    let offsets = [(0, 0), (1, 1), (3, 5), (2, 2), (4, 4), (8, 8), (4, 8), (8, 4)].into_iter().chain(alone);
    // Of 4, 12 and 1076 elements, every other row starts off the alignment of the one before.
    let lengths = [4, 12, 16, 1076, 4096, 20000];
    Element::ALL.into_iter().flat_map(move |element| {
        let offsets = offsets.clone();
        lengths.into_iter().filter(move |&hidden| budget.holds(ROWS, hidden)).flat_map(move |hidden| {
            offsets.clone().flat_map(move |(x_offset, q_offset)| {
                let x = mixed(element, ROWS, hidden, x_offset);
                MathMode::ALL.map(|math| {
                    let name = format!("unaligned, x by {x_offset} elements, q by {q_offset} bytes");
                    Case { q_offset, ..case(&name, &x, (ROWS, ROWS, hidden), Params::new(math)) }
                })
            })
        })
    })
}
