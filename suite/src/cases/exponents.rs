use super::{both_modes, tensor};
use crate::sample::{Random, Sample, with_element};
use crate::{Budget, Case, Tensor};
use ptq_spec::Element;

const HIDDEN: usize = 512;

/// One row for every exponent of the largest magnitude, with elements of all exponents below it: scales from those that
/// underflow to the largest, and subnormal elements under each.
pub fn each_exponent(budget: Budget) -> impl Iterator<Item = Case> {
    Element::ALL.into_iter().flat_map(move |element| {
        let rows = with_element!(element, T => exponents::<T>()) as usize;
        let input = move || with_element!(element, T => input::<T>(rows));
        let kinds = move || (0..rows).map(|row| format!("exponent field {row}")).collect();
        let fits = budget.holds(rows, HIDDEN);
        fits.then(|| both_modes("each exponent", input(), HIDDEN, kinds())).into_iter().flatten()
    })
}

/// Exponent fields of finite values.
fn exponents<T: Sample>() -> u32 {
    T::INFINITY / T::MIN_NORMAL
}

fn input<T: Sample>(rows: usize) -> Tensor {
    let mut random = Random(4);
    tensor::<T>(rows, HIDDEN, 0, |row, _| random.up_to(row as u32))
}
