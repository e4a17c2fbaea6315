use super::{case, tensor};
use crate::sample::{Random, Sample, with_element};
use crate::{Budget, Case, Tensor};
use ptq_cpu::Params;
use ptq_spec::{Element, MathMode};
use std::sync::Arc;

/// Every column in turn holds the largest magnitude of a row: whoever leaves one out of the maximum fails. Where this
/// makes too many rows, evenly spread columns, the first and the last among them.
pub fn largest_at_each_column(budget: Budget) -> impl Iterator<Item = Case> {
    const MAX_ROWS: usize = 4096;
    const MAX_ELEMENTS: usize = 1 << 24;
    Element::ALL.into_iter().flat_map(move |element| {
        let lengths = [4, 12, 1076, 4096, 20000].into_iter().filter(move |&hidden| budget.holds(2, hidden));
        lengths.map(move |hidden| {
            let rows = hidden.min(budget.elements.min(MAX_ELEMENTS) / hidden).min(budget.rows).clamp(2, MAX_ROWS);
            let x = with_element!(element, T => input::<T>(rows, hidden));
            case("largest at each column", &Arc::new(x), (rows, rows, hidden), Params::new(MathMode::Precise))
        })
    })
}

fn input<T: Sample>(rows: usize, hidden: usize) -> Tensor {
    let mut random = Random(1);
    tensor::<T>(rows, hidden, 0, |row, column| {
        if column == row * (hidden - 1) / (rows - 1) {
            // Above every moderate value, and different from row to row.
            T::with_bits(T::ONE + 6 * T::MIN_NORMAL + row as u32 % 64)
        } else {
            random.moderate()
        }
    })
}
