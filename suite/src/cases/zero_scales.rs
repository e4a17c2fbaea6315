use super::{case, tensor};
use crate::sample::{Random, Sample, with_element};
use crate::{Budget, Case, Tensor};
use ptq_cpu::Params;
use ptq_spec::per_token::{DEFAULT_SM_COUNT, REFERENCE_ROWS_PER_SM};
use ptq_spec::{Dispatch, Element, MathMode, Options, ZeroRows};
use std::sync::Arc;

/// Rows whose scale is zero, or underflows to it, between others: guarded and legacy, every dispatch, on both sides of
/// the row count from which the reference guards. Just below it the outputs have as many rows, which must not count.
pub fn zero_scales(budget: Budget) -> impl Iterator<Item = Case> {
    // (rows, rows of the outputs, multiprocessors): one row short of the threshold and at it.
    let counts = [1, DEFAULT_SM_COUNT].into_iter().flat_map(|sm_count| {
        let threshold = (u64::from(sm_count) * REFERENCE_ROWS_PER_SM) as usize;
        [(threshold - 1, threshold, sm_count), (threshold, threshold, sm_count)]
    });
    let shapes =
        counts.map(|(rows, rows_out, sm_count)| (rows, rows_out, if rows < 100 { 1076 } else { 12 }, sm_count));
    let shapes = shapes.filter(move |&(rows, _, hidden, _)| budget.holds(rows, hidden));
    let options =
        ZeroRows::ALL.into_iter().flat_map(|zero_rows| Dispatch::ALL.map(|dispatch| Options { zero_rows, dispatch }));
    Element::ALL.into_iter().flat_map(move |element| {
        let options = options.clone();
        shapes.clone().flat_map(move |(rows, rows_out, hidden, sm_count)| {
            let (x, kinds) = with_element!(element, T => zero_rows::<T>(rows, hidden));
            let x = Arc::new(x);
            options.clone().flat_map(move |options| {
                let name = format!("zero scales, {}, dispatch {}", options.zero_rows, options.dispatch);
                MathMode::ALL.map(|math| Case {
                    row_kinds: kinds.clone(),
                    ..case(&name, &x, (rows, rows_out, hidden), Params { math, options, sm_count })
                })
            })
        })
    })
}

fn zero_rows<T: Sample>(rows: usize, hidden: usize) -> (Tensor, Arc<[String]>) {
    const KINDS: [&str; 8] = [
        "zeros",
        "negative zeros",
        "zeros of both signs",
        "NaN",
        "NaN and zeros",
        "smallest subnormals",
        "largest subnormals",
        "ordinary values",
    ];
    let mut random = Random(3);
    let x = tensor::<T>(rows, hidden, 0, |row, col| {
        let ordinary: T = random.moderate();
        let sign = if (row + col).is_multiple_of(2) { 0 } else { T::SIGN };
        T::with_bits(match KINDS[row % KINDS.len()] {
            "zeros" => 0,
            "negative zeros" => T::SIGN,
            "zeros of both signs" => sign,
            "NaN" => sign | T::NAN,
            "NaN and zeros" if col.is_multiple_of(3) => sign | T::NAN,
            "NaN and zeros" => sign,
            "smallest subnormals" => sign | 1,
            "largest subnormals" => sign | (T::MIN_NORMAL - 1),
            _ => return ordinary,
        })
    });
    (x, (0..rows).map(|row| KINDS[row % KINDS.len()].to_owned()).collect())
}
