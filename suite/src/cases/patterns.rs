use super::{both_modes, tensor};
use crate::sample::{Sample, with_element};
use crate::{Budget, Case, Tensor};
use ptq_spec::Element;
use std::sync::Arc;

const PATTERNS: usize = 1 << 16;
const ELEMENTS: [Element; 2] = [Element::F16, Element::Bf16];

/// All 65,536 patterns of f16 and of bf16, in rows of several lengths: each alone among the smallest values, so that it is
/// the row's largest, and each in a row whose largest is 2^0 to 2^17 times its neighbourhood, so that it meets every
/// region of E4M3.
pub fn patterns(budget: Budget) -> impl Iterator<Item = Case> {
    let elements = || ELEMENTS.into_iter();
    elements()
        .flat_map(move |element| alone(element, budget))
        .chain(elements().flat_map(move |element| under_larger(element, budget)))
}

/// Every pattern in a row of its own, at each column by turns.
fn alone(element: Element, budget: Budget) -> impl Iterator<Item = Case> {
    // The shortest rows in inputs of few enough for implementations that pay for rows.
    let lengths = [(4, 2048), (36, 16384)];
    let inputs = lengths.into_iter().filter(move |&(hidden, rows)| budget.holds(rows, hidden));
    let inputs = inputs.flat_map(|(hidden, rows)| (0..PATTERNS).step_by(rows).map(move |first| (hidden, rows, first)));
    inputs.flat_map(move |(hidden, rows, first)| {
        let x = with_element!(element, T => tensor::<T>(rows, hidden, 0, |row, column| {
            T::with_bits(if column == row % hidden { (first + row) as u32 } else { 1 })
        }));
        let kinds = (first..first + rows).map(|pattern| format!("pattern {pattern:#06x} alone")).collect();
        both_modes("every pattern alone", x, hidden, kinds)
    })
}

/// Rows of consecutive patterns and one larger value, at each column by turns.
fn under_larger(element: Element, budget: Budget) -> impl Iterator<Item = Case> {
    let inputs = [4, 36, 1024, 4096].into_iter().flat_map(|hidden| [0, 3, 8, 13, 17].map(|binades| (hidden, binades)));
    let rows = |hidden: usize| PATTERNS.div_ceil(hidden - 1);
    inputs.filter(move |&(hidden, _)| budget.holds(rows(hidden), hidden)).flat_map(move |(hidden, binades)| {
        let x = with_element!(element, T => consecutive::<T>(rows(hidden), hidden, binades));
        both_modes(&format!("every pattern under 2^{binades} times it"), x, hidden, Arc::new([]))
    })
}

fn consecutive<T: Sample>(rows: usize, hidden: usize, binades: u32) -> Tensor {
    tensor::<T>(rows, hidden, 0, |row, column| {
        let first = row * (hidden - 1);
        let larger = row % hidden;
        T::with_bits(if column == larger {
            let magnitude = first as u32 & !T::SIGN;
            (magnitude + binades * T::MIN_NORMAL).min(T::INFINITY - 1)
        } else {
            // After the last pattern comes the first again.
            ((first + column - usize::from(column > larger)) % PATTERNS) as u32
        })
    })
}
