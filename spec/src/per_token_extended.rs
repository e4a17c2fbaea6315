//! Per-token quantization of strided rows, with bounds on the scales and a row count in device memory.
//!
//! The operation of [`crate::per_token`] with what [`Extended`] adds, in kernels of its own: the others pay nothing for
//! it.
//!
//! # Contract
//!
//! With every option off the bits are those of [`crate::per_token`]. Else, for every row,
//!
//! | step | precise mode | fast mode |
//! |---|---|---|
//! | absmax | as without bounds | as without bounds |
//! | cap | `min(absmax, upper bound)` | the same, a subnormal bound flushed to 0 |
//! | s | `capped / 448`, correctly rounded | `flush(capped × 1/448)` |
//! | floor | `max(s, min scale)` | the same, a subnormal floor flushed to 0 |
//! | inverse, codes | of that s, as without bounds | of that s, as without bounds |
//!
//! Elements above a cap saturate at ±448. A floor that is not flushed keeps every scale above 0, so that the guard of
//! zero scales never acts: rows of zeros become zeros of their sign, NaN 448. (In precise math a floor of at most 2^-128 has
//! an infinite inverse: zeros become 448 too.) Whether a zero scale is guarded otherwise
//! follows the number of rows that the host gives, never the count in device memory; with such a count
//! [`ZeroRows::Guarded`](crate::ZeroRows::Guarded) leaves the bits to the data alone.
//!
//! # vLLM
//!
//! The bounds are those of vLLM's `dynamic_per_token_scaled_fp8_quant` (0.33.0), whose floor is [`MIN_SCALE`]: in
//! precise mode the scales are its bytes. Its codes are not: it divides every element by the scale, with one rounding,
//! where this operation, as SGLang's, multiplies by the rounded reciprocal. They differ by nothing else.

use crate::fp8::E4M3_MAX;
use crate::per_token::{Entry, KERNEL as OPERATION, Strategy, table};
use crate::shape::Span;
use crate::{Element, Shape, ShapeError};

/// Name of the kernels, in artifact names.
pub const KERNEL: &str = "per_token_extended";

/// vLLM's floor of scales: 1 / (448 · 512).
pub const MIN_SCALE: f32 = 1.0 / (E4M3_MAX * 512.0);

/// What a call may add to per-token quantization. The default adds nothing.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Extended {
    /// Elements from the start of one row of `x` to the next, at least `hidden`; 0: `hidden`. What lies between rows is
    /// not read.
    pub x_stride: u64,
    /// The same for `q`. What lies between rows keeps its bytes.
    pub q_stride: u64,
    /// Most that a row's absmax counts for; above 0 and finite.
    pub scale_upper_bound: Option<f32>,
    /// Least scale; above 0 and finite. [`MIN_SCALE`] is vLLM's.
    pub min_scale: Option<f32>,
}

/// An [`Extended`] that suits a shape: strides in place of 0, and bounds that do nothing in place of none.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Layout {
    shape: Shape,
    x_stride: u64,
    q_stride: u64,
    bounds: Bounds,
}

/// Bounds of the scales.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bounds {
    /// Most that a row's absmax counts for; +inf: no bound.
    pub upper: f32,
    /// Least scale; 0: no bound.
    pub min_scale: f32,
}

impl Bounds {
    /// No bound.
    pub const NONE: Self = Self { upper: f32::INFINITY, min_scale: 0.0 };
}

impl Extended {
    /// Checks strides and bounds for that shape.
    ///
    /// # Errors
    /// [`ShapeError::Stride`], [`ShapeError::StrideOverflow`], [`ShapeError::Bound`].
    pub const fn layout(self, shape: Shape) -> Result<Layout, ShapeError> {
        let x_stride = match stride("x", self.x_stride, shape.rows(), shape.hidden()) {
            Ok(stride) => stride,
            Err(e) => return Err(e),
        };
        let q_stride = match stride("q", self.q_stride, shape.rows_out(), shape.hidden()) {
            Ok(stride) => stride,
            Err(e) => return Err(e),
        };
        let upper = match bound("scale_upper_bound", self.scale_upper_bound, Bounds::NONE.upper) {
            Ok(bound) => bound,
            Err(e) => return Err(e),
        };
        let min_scale = match bound("min_scale", self.min_scale, Bounds::NONE.min_scale) {
            Ok(bound) => bound,
            Err(e) => return Err(e),
        };
        Ok(Layout { shape, x_stride, q_stride, bounds: Bounds { upper, min_scale } })
    }
}

impl Layout {
    /// The shape that it suits.
    pub const fn shape(self) -> Shape {
        self.shape
    }

    /// Elements from the start of one row of `x` to the next.
    pub const fn x_stride(self) -> u64 {
        self.x_stride
    }

    /// Elements from the start of one row of `q` to the next.
    pub const fn q_stride(self) -> u64 {
        self.q_stride
    }

    /// Bounds of the scales.
    pub const fn bounds(self) -> Bounds {
        self.bounds
    }

    /// Whether rows lie next to each other and scales are not bounded: what the kernels of [`crate::per_token`] do.
    pub fn is_plain(self) -> bool {
        let hidden = self.shape.hidden();
        self.x_stride == hidden && self.q_stride == hidden && self.bounds == Bounds::NONE
    }

    /// Elements of `x` from its first to its last, the gaps among them.
    pub const fn x_elements(self) -> u64 {
        elements(self.shape.rows(), self.x_stride, self.shape.hidden())
    }

    /// The same of `q`.
    pub const fn q_elements(self) -> u64 {
        elements(self.shape.rows_out(), self.q_stride, self.shape.hidden())
    }

    /// Checks the element counts of the three operands. After the last row of `x` and `q` there may be more: the rest
    /// of a stride, for one.
    ///
    /// # Errors
    /// [`ShapeError::TooShort`] for `x` or `q`, [`ShapeError::Len`] for `s`.
    pub const fn check_lens(self, x: u64, q: u64, s: u64) -> Result<(), ShapeError> {
        if let Err(e) = at_least("x", self.x_elements(), x) {
            return Err(e);
        }
        if let Err(e) = at_least("q", self.q_elements(), q) {
            return Err(e);
        }
        let rows_out = self.shape.rows_out();
        if s != rows_out {
            return Err(ShapeError::Len { kernel: OPERATION, operand: "s", expected: rows_out, actual: s });
        }
        Ok(())
    }

    /// The operands' address ranges, gaps and all, in the order x, q, s.
    pub const fn spans(self, element: Element, x: u64, q: u64, s: u64) -> [Span; 3] {
        let [mut of_x, mut of_q, of_s] = self.shape.spans(element, x, q, s);
        of_x.bytes = self.x_elements() * element.bytes() as u64;
        of_q.bytes = self.q_elements();
        [of_x, of_q, of_s]
    }
}

/// Checks an element count.
const fn at_least(operand: &'static str, expected: u64, actual: u64) -> Result<(), ShapeError> {
    if actual >= expected { Ok(()) } else { Err(ShapeError::TooShort { kernel: OPERATION, operand, expected, actual }) }
}

/// Elements from the first to the last of that many rows.
const fn elements(rows: u64, stride: u64, hidden: u64) -> u64 {
    if rows == 0 { 0 } else { (rows - 1) * stride + hidden }
}

/// The stride that is meant, checked.
const fn stride(operand: &'static str, stride: u64, rows: u64, hidden: u64) -> Result<u64, ShapeError> {
    if stride == 0 {
        return Ok(hidden);
    }
    if stride < hidden {
        return Err(ShapeError::Stride { kernel: OPERATION, operand, expected: hidden, actual: stride });
    }
    // As for a shape, the widest element bounds all operands; a whole stride for the last row too, so that kernels may
    // form the address after it.
    let fits = match stride.checked_mul(if rows == 0 { 1 } else { rows }) {
        Some(elements) => elements <= isize::MAX as u64 / Element::F32.bytes() as u64,
        None => false,
    };
    if fits { Ok(stride) } else { Err(ShapeError::StrideOverflow { kernel: OPERATION, operand, rows, stride }) }
}

/// The bound that is meant, checked.
const fn bound(operand: &'static str, bound: Option<f32>, none: f32) -> Result<f32, ShapeError> {
    match bound {
        None => Ok(none),
        Some(bound) if bound > 0.0 && bound < f32::INFINITY => Ok(bound),
        Some(bound) => Err(ShapeError::Bound { kernel: OPERATION, operand, actual: bound.to_bits() }),
    }
}

/// Calls `$define! { (name, Strategy, elements per vector, vectors per thread), ... }` with every entry: those that
/// serve the common rows, and two-pass ones for the others.
///
/// Arguments, in order: those of [`crate::per_token::Entry`], then `x_stride: u64`, `q_stride: u64` (elements),
/// `upper_bound: f32` (+inf: none), `min_scale: f32` (0: none), `first_row: u64` (rows before the grid's, which
/// `device_rows` counts), `device_rows`: pointer to a u32 (0: none).
#[macro_export]
macro_rules! for_each_per_token_extended_entry {
    ($define:ident) => {
        $define! {
            (per_token_extended_warp_e4x2, Warp, 4, 2),
            (per_token_extended_warp_e8x2, Warp, 8, 2),
            (per_token_extended_warp_e16x1, Warp, 16, 1),
            (per_token_extended_cta_e4x2, Cta, 4, 2),
            (per_token_extended_cta_e4x4, Cta, 4, 4),
            (per_token_extended_cta_e8x2, Cta, 8, 2),
            (per_token_extended_cta_e16x1, Cta, 16, 1),
            (per_token_extended_two_pass_e1, CtaTwoPass, 1, 1),
            (per_token_extended_two_pass_e4, CtaTwoPass, 4, 1),
            (per_token_extended_two_pass_e8, CtaTwoPass, 8, 1),
        }
    };
}

for_each_per_token_extended_entry!(table);

#[cfg(test)]
mod tests {
    extern crate std;

    use super::*;
    use crate::per_token;
    use crate::shape::check_spans;
    use std::format;

    /// 3 rows of 8 into 4.
    fn shape() -> Shape {
        Shape::padded(3, 4, 8).unwrap()
    }

    #[test]
    fn every_entry_is_one_of_the_plain_ones_under_another_name() {
        for (i, entry) in ENTRIES.iter().enumerate() {
            let plain = Entry::find(entry.strategy, entry.elements_per_vector, entry.vectors_per_thread).unwrap();
            assert_eq!(entry.name, format!("{KERNEL}{}", plain.name.strip_prefix(per_token::KERNEL).unwrap()));
            assert_eq!(entry.name, ENTRY_NAMES[i]);
            assert!(ENTRIES[..i].iter().all(|other| other.name != entry.name), "{} twice", entry.name);
        }
        // Any pointer, stride and valid row finds an entry.
        assert!(ENTRIES.iter().any(|e| e.strategy == Strategy::CtaTwoPass && e.elements_per_vector == 1));
    }

    #[test]
    fn the_floor_is_vllms() {
        // What its kernel holds.
        assert_eq!(MIN_SCALE.to_bits(), 4.359_654e-6_f32.to_bits());
    }

    #[test]
    fn nothing_asked_for_is_plain() {
        let layout = Extended::default().layout(shape()).unwrap();
        assert!(layout.is_plain());
        assert_eq!((layout.x_stride(), layout.q_stride(), layout.bounds()), (8, 8, Bounds::NONE));
        assert_eq!((layout.x_elements(), layout.q_elements()), (24, 32));
        assert_eq!(layout.spans(Element::Bf16, 0, 64, 128), shape().spans(Element::Bf16, 0, 64, 128));
        let hidden = Extended { x_stride: 8, q_stride: 8, ..Extended::default() };
        assert!(hidden.layout(shape()).unwrap().is_plain());
        for extended in [
            Extended { x_stride: 9, ..Extended::default() },
            Extended { q_stride: 9, ..Extended::default() },
            Extended { scale_upper_bound: Some(f32::MAX), ..Extended::default() },
            Extended { min_scale: Some(MIN_SCALE), ..Extended::default() },
        ] {
            assert!(!extended.layout(shape()).unwrap().is_plain(), "{extended:?}");
        }
    }

    #[test]
    fn strides_are_at_least_a_row() {
        for actual in [1, 7] {
            let error = |operand| Err(ShapeError::Stride { kernel: OPERATION, operand, expected: 8, actual });
            assert_eq!(Extended { x_stride: actual, ..Extended::default() }.layout(shape()), error("x"));
            assert_eq!(Extended { q_stride: actual, ..Extended::default() }.layout(shape()), error("q"));
        }
    }

    #[test]
    fn strided_operands_fit_the_address_space() {
        let most = isize::MAX as u64 / 4;
        let x = |x_stride| Extended { x_stride, ..Extended::default() }.layout(shape());
        assert!(x(most / 3).is_ok());
        for stride in [most / 3 + 1, u64::MAX, 1 << 62, u64::MAX / 3 + 1] {
            let error = ShapeError::StrideOverflow { kernel: OPERATION, operand: "x", rows: 3, stride };
            assert_eq!(x(stride), Err(error));
        }
        // The rows of the output count.
        let q = |q_stride| Extended { q_stride, ..Extended::default() }.layout(shape());
        assert!(q(most / 4).is_ok());
        let stride = most / 4 + 1;
        assert_eq!(q(stride), Err(ShapeError::StrideOverflow { kernel: OPERATION, operand: "q", rows: 4, stride }));
        let none = Shape::new(0, 8).unwrap();
        let layout = Extended { x_stride: most, q_stride: most, ..Extended::default() }.layout(none).unwrap();
        assert_eq!((layout.x_elements(), layout.q_elements()), (0, 0));
    }

    #[test]
    fn bounds_are_positive_and_finite() {
        for good in [f32::from_bits(1), MIN_SCALE, f32::MAX] {
            let extended = Extended { scale_upper_bound: Some(good), min_scale: Some(good), ..Extended::default() };
            assert_eq!(extended.layout(shape()).unwrap().bounds(), Bounds { upper: good, min_scale: good });
        }
        for bad in [0.0, -0.0, -1.0, f32::INFINITY, f32::NEG_INFINITY, f32::NAN] {
            let error = |operand| Err(ShapeError::Bound { kernel: OPERATION, operand, actual: bad.to_bits() });
            let upper = Extended { scale_upper_bound: Some(bad), ..Extended::default() };
            assert_eq!(upper.layout(shape()), error("scale_upper_bound"));
            let floor = Extended { min_scale: Some(bad), ..Extended::default() };
            assert_eq!(floor.layout(shape()), error("min_scale"));
        }
    }

    #[test]
    fn lengths_and_spans_have_the_gaps_between_rows_alone() {
        let layout = Extended { x_stride: 10, q_stride: 11, ..Extended::default() }.layout(shape()).unwrap();
        assert_eq!((layout.x_elements(), layout.q_elements()), (28, 41));
        let [x, q, s] = layout.spans(Element::F32, 0x1000, 0x2000, 0x3000);
        assert_eq!((x.bytes, q.bytes, s.bytes), (28 * 4, 41, 16));
        assert_eq!(check_spans(&[x, q, s]), Ok(()));
        assert_eq!(layout.check_lens(28, 41, 4), Ok(()));
        assert_eq!(layout.check_lens(30, 44, 4), Ok(()));
        let error = |operand, expected, actual| ShapeError::TooShort { kernel: OPERATION, operand, expected, actual };
        assert_eq!(layout.check_lens(27, 41, 4), Err(error("x", 28, 27)));
        assert_eq!(layout.check_lens(28, 40, 4), Err(error("q", 41, 40)));
        for actual in [3, 5] {
            let error = ShapeError::Len { kernel: OPERATION, operand: "s", expected: 4, actual };
            assert_eq!(layout.check_lens(28, 41, actual), Err(error));
        }
    }
}
