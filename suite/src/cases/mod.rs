//! The families of cases, one function each ([`for_each_family`](crate::for_each_family) lists them). The oracle says what
//! is right.
//!
//! The iterators make an input only when they come to it: the largest take hundreds of megabytes. All inputs are the same
//! in every run.

mod boundaries;
mod bounds;
mod columns;
mod device_rows;
mod exponents;
mod layout;
mod midpoints;
mod patterns;
mod random;
mod row_counts;
mod specials;
mod strides;
mod zero_scales;

pub use boundaries::{THREADS, boundaries, boundaries_of};
pub use bounds::bounds;
pub use columns::largest_at_each_column;
pub use device_rows::device_rows;
pub use exponents::each_exponent;
pub use layout::{padded, unaligned};
pub use midpoints::midpoints;
pub use patterns::patterns;
pub use random::random;
pub use row_counts::row_counts;
pub(crate) use specials::special_values;
pub use specials::specials;
pub use strides::{apart, strides};
pub use zero_scales::zero_scales;

use crate::sample::{Random, Sample, with_element};
use crate::{Budget, Buffer, Case, Tensor, golden as recorded};
use ptq_cpu::Params;
use ptq_spec::{Element, Extended, MathMode, Shape};
use std::sync::Arc;

/// What the reference's kernels wrote: [`recorded::cases`].
pub fn golden(budget: Budget) -> impl Iterator<Item = Case> {
    recorded::cases().filter(move |case| budget.holds(case.shape.rows() as usize, case.shape.hidden() as usize))
}

/// Ordinary values alone, of a shape to choose: what benchmarks run.
pub fn ordinary(element: Element, rows: usize, hidden: usize, params: Params) -> Case {
    let mut random = Random(5);
    let x = with_element!(element, T => tensor::<T>(rows, hidden, 0, |_, _| random.moderate()));
    case("ordinary values", &Arc::new(x), (rows, rows, hidden), params)
}

/// Rows of any bits and rows of ordinary values by turns.
fn mixed(element: Element, rows: usize, hidden: usize, offset: usize) -> Arc<Tensor> {
    mixed_strided(element, rows, hidden, hidden, offset)
}

/// The same, `stride` elements apart.
fn mixed_strided(element: Element, rows: usize, hidden: usize, stride: usize, offset: usize) -> Arc<Tensor> {
    let mut random = Random((rows * hidden) as u64);
    Arc::new(with_element!(element, T => strided::<T>(rows, hidden, stride, offset, |row, _| {
        if row.is_multiple_of(2) { random.any() } else { random.moderate() }
    })))
}

/// An input whose element at (row, column) is `at(row, column)`; rows are asked for in order.
pub(crate) fn tensor<T: Sample>(
    rows: usize,
    hidden: usize,
    offset: usize,
    at: impl FnMut(usize, usize) -> T,
) -> Tensor {
    strided(rows, hidden, hidden, offset, at)
}

/// The same with rows `stride` elements apart. What lies between them is infinite, as the guards are.
pub(crate) fn strided<T: Sample>(
    rows: usize,
    hidden: usize,
    stride: usize,
    offset: usize,
    mut at: impl FnMut(usize, usize) -> T,
) -> Tensor {
    let guard = T::with_bits(T::INFINITY);
    let elements = if rows == 0 { 0 } else { (rows - 1) * stride + hidden };
    let elements = (0..elements).map(|i| if i % stride < hidden { at(i / stride, i % stride) } else { guard });
    T::tensor(Buffer::new(elements, offset, guard))
}

/// A case of aligned outputs; `shape`: rows, rows of the outputs, elements per row.
pub(crate) fn case(
    name: &str,
    x: &Arc<Tensor>,
    (rows, rows_out, hidden): (usize, usize, usize),
    params: Params,
) -> Case {
    Case {
        name: format!("{name}: {} [{rows}, {hidden}] into {rows_out} rows, {}", x.element(), params.math),
        x: x.clone(),
        shape: Shape::padded(rows as u64, rows_out as u64, hidden as u64).expect("a valid shape"),
        params,
        extended: Extended::default(),
        device_rows: None,
        q_offset: 0,
        row_kinds: Arc::new([]),
        recorded: None,
    }
}

/// The same input in both math modes, with as many rows of the outputs.
fn both_modes(name: &str, x: Tensor, hidden: usize, row_kinds: Arc<[String]>) -> impl Iterator<Item = Case> + use<> {
    let (x, name) = (Arc::new(x), name.to_owned());
    MathMode::ALL.into_iter().map(move |math| {
        let rows = x.elements() / hidden;
        Case { row_kinds: row_kinds.clone(), ..case(&name, &x, (rows, rows, hidden), Params::new(math)) }
    })
}
