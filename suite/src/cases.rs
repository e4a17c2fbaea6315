//! Generated cases. The oracle says what is right.
//!
//! The iterators make an input only when they come to it: the largest take hundreds of megabytes. All inputs are the same
//! in every run.

use crate::sample::{Random, Sample};
use crate::{Buffer, Case, Tensor};
use half::{bf16, f16};
use ptq_cpu::Params;
use ptq_spec::per_token::{ENTRIES, HIDDEN_MULTIPLE, LANES_PER_WARP, MAX_CTA_THREADS};
use ptq_spec::{Dispatch, Element, MathMode, Options, Shape, ZeroRows};
use std::sync::Arc;

/// Row lengths of [`random`].
const HIDDEN: [usize; 8] = [4, 8, 12, 1076, 1368, 4096, 7168, 20000];
/// Row counts of [`random`]: 2112 is where the reference changes kernels on a chip of 132 multiprocessors.
const ROWS: [usize; 4] = [1, 39, 2112, 7807];

/// Random bits: every element type, row lengths from 4 to 20000, row counts from 1 to 7807, both math modes. Inputs of
/// more than `max_elements` elements are left out.
///
/// Even rows are any bits, with NaN and infinities where the element type has many of them; odd rows spread over all
/// codes.
pub fn random(max_elements: usize) -> impl Iterator<Item = Case> {
    let shapes = HIDDEN.into_iter().flat_map(|hidden| ROWS.map(|rows| (rows, hidden)));
    let shapes = shapes.filter(move |(rows, hidden)| rows * hidden <= max_elements);
    Element::ALL.into_iter().flat_map(move |element| {
        shapes.clone().flat_map(move |(rows, hidden)| {
            let x = Arc::new(mixed(element, rows, hidden, 0));
            MathMode::ALL.map(|math| case("random", &x, (rows, rows, hidden), Params::new(math)))
        })
    })
}

/// Row lengths at and next to the longest that each kernel entry holds in registers, and so at every border between
/// strategies.
pub fn boundaries() -> impl Iterator<Item = Case> {
    const ROWS: usize = 3;
    let threads = std::iter::successors(Some(LANES_PER_WARP), |t| Some(t * 2)).take_while(|&t| t <= MAX_CTA_THREADS);
    let longest = threads.flat_map(|threads| ENTRIES.iter().filter_map(move |entry| entry.max_hidden(threads)));
    let mut hidden: Vec<u64> = longest.flat_map(|h| [h - HIDDEN_MULTIPLE, h, h + HIDDEN_MULTIPLE]).collect();
    hidden.sort_unstable();
    hidden.dedup();
    Element::ALL.into_iter().flat_map(move |element| {
        hidden.clone().into_iter().flat_map(move |hidden| {
            let x = Arc::new(mixed(element, ROWS, hidden as usize, 0));
            MathMode::ALL.map(|math| case("boundary", &x, (ROWS, ROWS, hidden as usize), Params::new(math)))
        })
    })
}

/// Every column in turn holds the largest magnitude of a row: whoever leaves one out of the maximum fails. Of rows so
/// long that this makes more than `max_elements` elements, evenly spread columns, the first and the last among them.
pub fn largest_at_each_column(max_elements: usize) -> impl Iterator<Item = Case> {
    const MAX_ROWS: usize = 4096;
    Element::ALL.into_iter().flat_map(move |element| {
        [4, 12, 1076, 4096, 20000].into_iter().map(move |hidden: usize| {
            let rows = hidden.min(max_elements / hidden).clamp(2, MAX_ROWS);
            let column = |row| row * (hidden - 1) / (rows - 1);
            let x = Arc::new(match element {
                Element::F16 => largest_at::<f16>(rows, hidden, column),
                Element::Bf16 => largest_at::<bf16>(rows, hidden, column),
                Element::F32 => largest_at::<f32>(rows, hidden, column),
            });
            case("largest at each column", &x, (rows, rows, hidden), Params::new(MathMode::Precise))
        })
    })
}

fn largest_at<T: Sample>(rows: usize, hidden: usize, column: impl Fn(usize) -> usize) -> Tensor {
    let mut random = Random(1);
    tensor::<T>(rows, hidden, 0, |row, col| {
        // Above every moderate value, and different from row to row.
        if col == column(row) { T::from_bits(T::ONE + 6 * T::MIN_NORMAL + row as u32 % 64) } else { random.moderate() }
    })
}

/// One row for every exponent of the largest magnitude, with elements of all exponents below it: scales from those that
/// underflow to the largest, and subnormal elements under each.
pub fn each_exponent() -> impl Iterator<Item = Case> {
    const HIDDEN: usize = 512;
    fn rows<T: Sample>() -> (usize, Tensor) {
        let rows = (T::INFINITY / T::MIN_NORMAL) as usize;
        let mut random = Random(4);
        (rows, tensor::<T>(rows, HIDDEN, 0, |row, _| random.up_to(row as u32)))
    }
    Element::ALL.into_iter().flat_map(|element| {
        let (rows, x) = match element {
            Element::F16 => rows::<f16>(),
            Element::Bf16 => rows::<bf16>(),
            Element::F32 => rows::<f32>(),
        };
        let x = Arc::new(x);
        MathMode::ALL.map(|math| case("each exponent", &x, (rows, rows, HIDDEN), Params::new(math)))
    })
}

/// Each special value at the first, a middle and the last column, among ordinary values, zeros and NaN.
pub fn specials() -> impl Iterator<Item = Case> {
    Element::ALL.into_iter().flat_map(|element| {
        [4, 8, 36, 1076, 4096].into_iter().flat_map(move |hidden| {
            let (x, kinds) = match element {
                Element::F16 => special_rows::<f16>(hidden),
                Element::Bf16 => special_rows::<bf16>(hidden),
                Element::F32 => special_rows::<f32>(hidden),
            };
            let x = Arc::new(x);
            MathMode::ALL.map(|math| {
                let shape = (kinds.len(), kinds.len(), hidden);
                Case { row_kinds: kinds.clone(), ..case("special values", &x, shape, Params::new(math)) }
            })
        })
    })
}

/// Names and bits of the special values.
fn special_values<T: Sample>() -> impl Iterator<Item = (String, T)> {
    let magnitudes = [
        ("quiet NaN", T::NAN),
        ("signalling NaN", T::INFINITY | 1),
        ("infinity", T::INFINITY),
        ("largest finite", T::INFINITY - 1),
        ("one", T::ONE),
        ("twice the smallest normal", 2 * T::MIN_NORMAL),
        ("smallest normal", T::MIN_NORMAL),
        ("largest subnormal", T::MIN_NORMAL - 1),
        ("smallest subnormal", 1),
        ("zero", 0),
    ];
    magnitudes
        .into_iter()
        .flat_map(|(name, bits)| [(name.to_owned(), bits), (format!("negative {name}"), T::SIGN | bits)])
        .map(|(name, bits)| (name, T::from_bits(bits)))
}

fn special_rows<T: Sample>(hidden: usize) -> (Tensor, Arc<[String]>) {
    let mut rows = Vec::new();
    for (name, value) in special_values::<T>() {
        for (position, column) in [("first", 0), ("in the middle", hidden / 2), ("last", hidden - 1)] {
            for background in ["ordinary values", "zeros", "NaN"] {
                rows.push((format!("{name} {position} among {background}"), value, column, background));
            }
        }
    }
    let mut random = Random(2);
    let x = tensor::<T>(rows.len(), hidden, 0, |row, col| {
        let (_, value, column, background) = rows[row];
        match background {
            _ if col == column => value,
            "ordinary values" => random.moderate(),
            "zeros" => T::from_bits(0),
            _ => T::from_bits(T::NAN),
        }
    });
    (x, rows.into_iter().map(|(kind, ..)| kind).collect())
}

/// Rows whose scale is zero, or underflows to it, between others: guarded and legacy, every dispatch, on both sides of
/// the row count from which the reference guards. Just below it the outputs have as many rows, which must not count.
pub fn zero_scales() -> impl Iterator<Item = Case> {
    // (rows, rows of the outputs, multiprocessors): one row short of the threshold and at it.
    let counts = [(15, 16, 1), (16, 16, 1), (2111, 2112, 132), (2112, 2112, 132)];
    let options =
        ZeroRows::ALL.into_iter().flat_map(|zero_rows| Dispatch::ALL.map(|dispatch| Options { zero_rows, dispatch }));
    Element::ALL.into_iter().flat_map(move |element| {
        let options = options.clone();
        counts.into_iter().flat_map(move |(rows, rows_out, sm_count)| {
            let hidden = if rows < 100 { 1076 } else { 12 };
            let (x, kinds) = match element {
                Element::F16 => zero_rows::<f16>(rows, hidden),
                Element::Bf16 => zero_rows::<bf16>(rows, hidden),
                Element::F32 => zero_rows::<f32>(rows, hidden),
            };
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
        T::from_bits(match KINDS[row % KINDS.len()] {
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

/// Outputs of more rows than the input, which keep their bytes; among them inputs of no rows at all.
pub fn padded() -> impl Iterator<Item = Case> {
    let shapes = [(0, 0, 8), (0, 3, 8), (1, 17, 1076), (39, 64, 12), (39, 40, 4096), (2112, 2113, 4)];
    Element::ALL.into_iter().flat_map(move |element| {
        shapes.into_iter().flat_map(move |shape @ (rows, _, hidden)| {
            let x = Arc::new(mixed(element, rows, hidden, 0));
            MathMode::ALL.map(|math| case("padded", &x, shape, Params::new(math)))
        })
    })
}

/// `x` and `q` off a vector's alignment, each alone and both: a vector access would fault or a narrower path be taken.
pub fn unaligned() -> impl Iterator<Item = Case> {
    const ROWS: usize = 5;
    let offsets = [(1, 0), (2, 0), (4, 0), (8, 0), (0, 1), (0, 2), (0, 4), (0, 8), (1, 1), (3, 5), (4, 4), (8, 8)];
    Element::ALL.into_iter().flat_map(move |element| {
        [4, 8, 16, 1076, 1368, 4096, 20000].into_iter().flat_map(move |hidden| {
            offsets.into_iter().flat_map(move |(x_offset, q_offset)| {
                let x = Arc::new(mixed(element, ROWS, hidden, x_offset));
                MathMode::ALL.map(|math| {
                    let name = format!("unaligned, x by {x_offset} elements, q by {q_offset} bytes");
                    Case { q_offset, ..case(&name, &x, (ROWS, ROWS, hidden), Params::new(math)) }
                })
            })
        })
    })
}

/// Ordinary values alone, of a shape to choose: what benchmarks run.
pub fn ordinary(element: Element, rows: usize, hidden: usize, params: Params) -> Case {
    fn of<T: Sample>(rows: usize, hidden: usize) -> Tensor {
        let mut random = Random(5);
        tensor::<T>(rows, hidden, 0, |_, _| random.moderate())
    }
    let x = Arc::new(match element {
        Element::F16 => of::<f16>(rows, hidden),
        Element::Bf16 => of::<bf16>(rows, hidden),
        Element::F32 => of::<f32>(rows, hidden),
    });
    case("ordinary values", &x, (rows, rows, hidden), params)
}

/// Rows of any bits and rows of ordinary values by turns.
fn mixed(element: Element, rows: usize, hidden: usize, offset: usize) -> Tensor {
    fn of<T: Sample>(rows: usize, hidden: usize, offset: usize) -> Tensor {
        let mut random = Random((rows * hidden) as u64);
        tensor::<T>(rows, hidden, offset, |row, _| if row.is_multiple_of(2) { random.any() } else { random.moderate() })
    }
    match element {
        Element::F16 => of::<f16>(rows, hidden, offset),
        Element::Bf16 => of::<bf16>(rows, hidden, offset),
        Element::F32 => of::<f32>(rows, hidden, offset),
    }
}

/// An input whose element at (row, column) is `at(row, column)`; rows are asked for in order.
fn tensor<T: Sample>(rows: usize, hidden: usize, offset: usize, mut at: impl FnMut(usize, usize) -> T) -> Tensor {
    let elements = (0..rows * hidden).map(|i| at(i / hidden, i % hidden));
    T::tensor(Buffer::new(elements, offset, T::from_bits(T::INFINITY)))
}

/// A case of aligned outputs; `shape`: rows, rows of the outputs, elements per row.
fn case(name: &str, x: &Arc<Tensor>, (rows, rows_out, hidden): (usize, usize, usize), params: Params) -> Case {
    Case {
        name: format!("{name}: {} [{rows}, {hidden}] into {rows_out} rows, {}", x.element(), params.math),
        x: x.clone(),
        shape: Shape::padded(rows as u64, rows_out as u64, hidden as u64).expect("a valid shape"),
        params,
        q_offset: 0,
        row_kinds: Arc::new([]),
        recorded: None,
    }
}
