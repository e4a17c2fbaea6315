//! The shape of one call, checked once.

use crate::per_token::{HIDDEN_MULTIPLE, KERNEL};
use crate::{Element, ShapeError};

/// `x[rows, hidden]`, `q[rows_out, hidden]`, `s[rows_out]`, with every precondition on the numbers met.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Shape {
    rows: u64,
    rows_out: u64,
    hidden: u64,
}

/// Address range of one operand, for checks of alignment and overlap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    /// Name of the operand in errors.
    pub operand: &'static str,
    /// Address of the first byte.
    pub address: u64,
    /// Size in bytes.
    pub bytes: u64,
    /// Alignment of the operand's element in bytes.
    pub align: u64,
}

impl Shape {
    /// Outputs of as many rows as the input.
    ///
    /// # Errors
    /// [`ShapeError::HiddenZero`], [`ShapeError::HiddenMultiple`], [`ShapeError::Overflow`].
    pub const fn new(rows: u64, hidden: u64) -> Result<Self, ShapeError> {
        Self::padded(rows, rows, hidden)
    }

    /// Outputs of `rows_out >= rows` rows; those from `rows` on keep their bytes.
    ///
    /// # Errors
    /// [`ShapeError::HiddenZero`], [`ShapeError::HiddenMultiple`], [`ShapeError::RowsOut`], [`ShapeError::Overflow`].
    pub const fn padded(rows: u64, rows_out: u64, hidden: u64) -> Result<Self, ShapeError> {
        if hidden == 0 {
            return Err(ShapeError::HiddenZero { kernel: KERNEL });
        }
        if !hidden.is_multiple_of(HIDDEN_MULTIPLE) {
            return Err(ShapeError::HiddenMultiple { kernel: KERNEL, expected: HIDDEN_MULTIPLE, actual: hidden });
        }
        if rows_out < rows {
            return Err(ShapeError::RowsOut { kernel: KERNEL, expected: rows, actual: rows_out });
        }
        // The widest element bounds all operands: q is narrower, and s has one f32 per row of at least four elements.
        let widest = Element::F32.bytes() as u64;
        let fits = match rows_out.checked_mul(hidden) {
            Some(n) => match n.checked_mul(widest) {
                Some(bytes) => bytes <= isize::MAX as u64,
                None => false,
            },
            None => false,
        };
        if !fits {
            return Err(ShapeError::Overflow { kernel: KERNEL, operand: "x", rows: rows_out, hidden });
        }
        Ok(Self { rows, rows_out, hidden })
    }

    /// Rows of `x`, all of which are quantized.
    pub const fn rows(self) -> u64 {
        self.rows
    }

    /// Rows of `q` and `s`.
    pub const fn rows_out(self) -> u64 {
        self.rows_out
    }

    /// Elements per row.
    pub const fn hidden(self) -> u64 {
        self.hidden
    }

    /// Checks the element counts of the three operands.
    ///
    /// # Errors
    /// [`ShapeError::Len`] naming the first operand of another length.
    pub const fn check_lens(self, x: u64, q: u64, s: u64) -> Result<(), ShapeError> {
        if let Err(e) = check_len("x", self.rows * self.hidden, x) {
            return Err(e);
        }
        if let Err(e) = check_len("q", self.rows_out * self.hidden, q) {
            return Err(e);
        }
        check_len("s", self.rows_out, s)
    }

    /// The operands' address ranges, in the order x, q, s.
    pub const fn spans(self, element: Element, x: u64, q: u64, s: u64) -> [Span; 3] {
        let width = element.bytes() as u64;
        [
            Span { operand: "x", address: x, bytes: self.rows * self.hidden * width, align: width },
            Span { operand: "q", address: q, bytes: self.rows_out * self.hidden, align: 1 },
            Span { operand: "s", address: s, bytes: self.rows_out * 4, align: 4 },
        ]
    }
}

/// Checks that every operand is aligned to its element and that no two overlap.
///
/// # Errors
/// [`ShapeError::Misaligned`], [`ShapeError::Overlap`].
pub fn check_spans(spans: &[Span]) -> Result<(), ShapeError> {
    check_spans_of(KERNEL, spans)
}

/// [`check_spans`] for another operation than per-token quantization, which errors then name.
///
/// # Errors
/// Those of [`check_spans`].
pub fn check_spans_of(kernel: &'static str, spans: &[Span]) -> Result<(), ShapeError> {
    for span in spans {
        if !span.address.is_multiple_of(span.align) {
            return Err(ShapeError::Misaligned {
                kernel,
                operand: span.operand,
                expected: span.align,
                actual: span.address,
            });
        }
    }
    for (i, a) in spans.iter().enumerate() {
        for b in &spans[i + 1..] {
            let (first, second) = if a.address <= b.address { (a, b) } else { (b, a) };
            // By the distance of the starts: an end may lie beyond the address space.
            if second.bytes > 0 && second.address - first.address < first.bytes {
                return Err(ShapeError::Overlap { kernel, operand: a.operand, other: b.operand });
            }
        }
    }
    Ok(())
}

const fn check_len(operand: &'static str, expected: u64, actual: u64) -> Result<(), ShapeError> {
    check_len_of(KERNEL, operand, expected, actual)
}

pub(crate) const fn check_len_of(
    kernel: &'static str,
    operand: &'static str,
    expected: u64,
    actual: u64,
) -> Result<(), ShapeError> {
    if expected == actual { Ok(()) } else { Err(ShapeError::Len { kernel, operand, expected, actual }) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn valid_shapes_keep_their_numbers() {
        let shape = Shape::padded(2, 3, 8).unwrap();
        assert_eq!((shape.rows(), shape.rows_out(), shape.hidden()), (2, 3, 8));
        assert_eq!(Shape::new(2, 8), Shape::padded(2, 2, 8));
        assert!(Shape::new(0, 4).is_ok());
    }

    #[test]
    fn hidden_is_positive_and_a_multiple_of_four() {
        assert_eq!(Shape::new(1, 0), Err(ShapeError::HiddenZero { kernel: KERNEL }));
        for actual in [1, 2, 3, 5, 6, 7, 4095, u64::MAX] {
            let error = ShapeError::HiddenMultiple { kernel: KERNEL, expected: 4, actual };
            assert_eq!(Shape::new(1, actual), Err(error));
        }
    }

    #[test]
    fn outputs_have_at_least_the_input_s_rows() {
        let error = ShapeError::RowsOut { kernel: KERNEL, expected: 3, actual: 2 };
        assert_eq!(Shape::padded(3, 2, 8), Err(error));
    }

    #[test]
    fn operands_fit_the_address_space() {
        // The most rows of four f32, 16 bytes each.
        let most = isize::MAX as u64 / 16;
        assert!(Shape::new(most, 4).is_ok());
        let error = |rows, hidden| Err(ShapeError::Overflow { kernel: KERNEL, operand: "x", rows, hidden });
        assert_eq!(Shape::new(most + 1, 4), error(most + 1, 4));
        // The rows of the outputs count.
        assert_eq!(Shape::padded(1, most + 1, 4), error(most + 1, 4));
        // Where the elements, and where their bytes, pass 64 bits: a product that wraps is small.
        for (rows, hidden) in [(u64::MAX, 4), (u64::MAX, u64::MAX - 3), (1 << 62, 4), (1 << 32, 1 << 30)] {
            assert_eq!(Shape::new(rows, hidden), error(rows, hidden));
        }
    }

    #[test]
    fn lengths_are_checked_in_order() {
        let shape = Shape::padded(2, 3, 8).unwrap();
        assert_eq!(shape.check_lens(16, 24, 3), Ok(()));
        let error = |operand, expected, actual| Err(ShapeError::Len { kernel: KERNEL, operand, expected, actual });
        assert_eq!(shape.check_lens(24, 24, 3), error("x", 16, 24));
        assert_eq!(shape.check_lens(16, 16, 3), error("q", 24, 16));
        assert_eq!(shape.check_lens(16, 24, 2), error("s", 3, 2));
        assert_eq!(shape.check_lens(0, 0, 0), error("x", 16, 0));
    }

    #[test]
    fn spans_follow_shape_and_element() {
        let shape = Shape::padded(2, 3, 8).unwrap();
        for element in Element::ALL {
            let width = element.bytes() as u64;
            let expected = [
                Span { operand: "x", address: 0x1000, bytes: 16 * width, align: width },
                Span { operand: "q", address: 0x2000, bytes: 24, align: 1 },
                Span { operand: "s", address: 0x3000, bytes: 12, align: 4 },
            ];
            assert_eq!(shape.spans(element, 0x1000, 0x2000, 0x3000), expected);
        }
    }

    #[test]
    fn operands_are_aligned_to_their_elements() {
        let shape = Shape::new(2, 8).unwrap();
        let error =
            |operand, expected, actual| Err(ShapeError::Misaligned { kernel: KERNEL, operand, expected, actual });
        let check = |element, x, q, s| check_spans(&shape.spans(element, x, q, s));
        assert_eq!(check(Element::F16, 0x1002, 0x2001, 0x3004), Ok(()));
        assert_eq!(check(Element::F16, 0x1001, 0x2000, 0x3000), error("x", 2, 0x1001));
        assert_eq!(check(Element::Bf16, 0x1003, 0x2000, 0x3000), error("x", 2, 0x1003));
        assert_eq!(check(Element::F32, 0x1002, 0x2000, 0x3000), error("x", 4, 0x1002));
        assert_eq!(check(Element::F32, 0x1004, 0x2000, 0x3002), error("s", 4, 0x3002));
    }

    #[test]
    fn operands_share_no_byte() {
        let shape = Shape::new(2, 8).unwrap();
        let error = |operand, other| Err(ShapeError::Overlap { kernel: KERNEL, operand, other });
        // x: 32 bytes, q: 16, s: 8.
        let check = |x, q, s| check_spans(&shape.spans(Element::Bf16, x, q, s));
        assert_eq!(check(0x1000, 0x1020, 0x1030), Ok(()));
        assert_eq!(check(0x1018, 0x1008, 0x1000), Ok(()));
        assert_eq!(check(0x1000, 0x101F, 0x2000), error("x", "q"));
        assert_eq!(check(0x100E, 0x1000, 0x2000), error("x", "q"));
        assert_eq!(check(0x1000, 0x1000, 0x2000), error("x", "q"));
        assert_eq!(check(0x1000, 0x2000, 0x101C), error("x", "s"));
        assert_eq!(check(0x1000, 0x2000, 0x200C), error("q", "s"));
        // Operands of no bytes overlap nothing.
        let empty = Shape::new(0, 8).unwrap();
        assert_eq!(check_spans(&empty.spans(Element::Bf16, 0x1000, 0x1000, 0x1000)), Ok(()));
        // The end of the address space is not its start.
        assert_eq!(check(u64::MAX - 31, 0x1000, 0x2000), Ok(()));
        // Nor does a range that passes it end before its last byte.
        assert_eq!(check(u64::MAX - 15, u64::MAX, 0x2000), error("x", "q"));
    }
}
