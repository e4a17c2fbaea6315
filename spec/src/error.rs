//! What a call can get wrong before anything runs: one variant per precondition.

use core::fmt;

/// A precondition of the operation that the arguments do not meet.
///
/// Every variant names the kernel; the operand, the expected and the actual value are fields, so that callers and tests
/// match on values and not on text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ShapeError {
    /// `hidden` is 0.
    HiddenZero {
        /// Operation.
        kernel: &'static str,
    },
    /// `hidden` is not a multiple of what the operation needs.
    HiddenMultiple {
        /// Operation.
        kernel: &'static str,
        /// Elements a row must be a multiple of.
        expected: u64,
        /// `hidden` as given, elements.
        actual: u64,
    },
    /// The byte size of an operand exceeds `isize::MAX`.
    Overflow {
        /// Operation.
        kernel: &'static str,
        /// Name of the operand.
        operand: &'static str,
        /// Rows of the operand.
        rows: u64,
        /// Elements per row of the operand.
        hidden: u64,
    },
    /// An operand has another number of elements than the shape says.
    Len {
        /// Operation.
        kernel: &'static str,
        /// Name of the operand.
        operand: &'static str,
        /// Elements the shape asks for.
        expected: u64,
        /// Elements the operand has.
        actual: u64,
    },
    /// The output has fewer rows than the input.
    RowsOut {
        /// Operation.
        kernel: &'static str,
        /// Rows of the input: the least the outputs need.
        expected: u64,
        /// Rows of the outputs.
        actual: u64,
    },
    /// An operand's address is not a multiple of its element's alignment.
    Misaligned {
        /// Operation.
        kernel: &'static str,
        /// Name of the operand.
        operand: &'static str,
        /// Bytes the address must be a multiple of.
        expected: u64,
        /// The address.
        actual: u64,
    },
    /// Two operands share memory.
    Overlap {
        /// Operation.
        kernel: &'static str,
        /// Name of the one operand.
        operand: &'static str,
        /// Name of the other.
        other: &'static str,
    },
}

impl fmt::Display for ShapeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::HiddenZero { kernel } => {
                write!(f, "{kernel}: `hidden` is 0, expected at least one element per row; skip empty tensors")
            }
            Self::HiddenMultiple { kernel, expected, actual } => write!(
                f,
                "{kernel}: `hidden` is {actual}, expected a multiple of {expected}; pad the rows to {}",
                actual.saturating_add(expected - 1) / expected * expected
            ),
            Self::Overflow { kernel, operand, rows, hidden } => write!(
                f,
                "{kernel}: `{operand}` of {rows} x {hidden} elements is larger than the address space; check the shape"
            ),
            Self::Len { kernel, operand, expected, actual } => write!(
                f,
                "{kernel}: `{operand}` has {actual} elements, expected {expected}; pass a buffer of the shape's size"
            ),
            Self::RowsOut { kernel, expected, actual } => write!(
                f,
                "{kernel}: the outputs have {actual} rows, expected at least the input's {expected}; enlarge `q` and `s`"
            ),
            Self::Misaligned { kernel, operand, expected, actual } => write!(
                f,
                "{kernel}: `{operand}` is at address {actual:#x}, expected a multiple of {expected}; \
                 pass a pointer aligned to its element"
            ),
            Self::Overlap { kernel, operand, other } => {
                write!(
                    f,
                    "{kernel}: `{operand}` and `{other}` overlap, expected disjoint buffers; give each its own memory"
                )
            }
        }
    }
}

impl core::error::Error for ShapeError {}
