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
    for span in spans {
        if !span.address.is_multiple_of(span.align) {
            return Err(ShapeError::Misaligned {
                kernel: KERNEL,
                operand: span.operand,
                expected: span.align,
                actual: span.address,
            });
        }
    }
    for (i, a) in spans.iter().enumerate() {
        for b in &spans[i + 1..] {
            let disjoint = a.address.saturating_add(a.bytes) <= b.address || b.address.saturating_add(b.bytes) <= a.address;
            if !disjoint && a.bytes > 0 && b.bytes > 0 {
                return Err(ShapeError::Overlap { kernel: KERNEL, operand: a.operand, other: b.operand });
            }
        }
    }
    Ok(())
}

const fn check_len(operand: &'static str, expected: u64, actual: u64) -> Result<(), ShapeError> {
    if expected == actual { Ok(()) } else { Err(ShapeError::Len { kernel: KERNEL, operand, expected, actual }) }
}
