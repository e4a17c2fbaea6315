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
    /// The rows of an operand would overlap each other.
    Stride {
        /// Operation.
        kernel: &'static str,
        /// Name of the operand.
        operand: &'static str,
        /// `hidden`, elements: the least that a row stride can be.
        expected: u64,
        /// The stride, elements.
        actual: u64,
    },
    /// The byte size of an operand with that row stride exceeds `isize::MAX`.
    StrideOverflow {
        /// Operation.
        kernel: &'static str,
        /// Name of the operand.
        operand: &'static str,
        /// Rows of the operand.
        rows: u64,
        /// Its stride, elements.
        stride: u64,
    },
    /// An operand has fewer elements than shape and row stride ask for.
    TooShort {
        /// Operation.
        kernel: &'static str,
        /// Name of the operand.
        operand: &'static str,
        /// Elements up to the last row's end.
        expected: u64,
        /// Elements the operand has.
        actual: u64,
    },
    /// A bound on the scales is not above 0 and finite.
    Bound {
        /// Operation.
        kernel: &'static str,
        /// Name of the bound.
        operand: &'static str,
        /// Bits of its f32, which may be NaN.
        actual: u32,
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
            Self::Stride { kernel, operand, expected, actual } => write!(
                f,
                "{kernel}: the row stride of `{operand}` is {actual} elements, expected at least `hidden`, {expected}; \
                 strides count elements, not bytes"
            ),
            Self::StrideOverflow { kernel, operand, rows, stride } => write!(
                f,
                "{kernel}: `{operand}` of {rows} rows, {stride} elements apart, is larger than the address space; check \
                 the stride"
            ),
            Self::TooShort { kernel, operand, expected, actual } => write!(
                f,
                "{kernel}: `{operand}` has {actual} elements, expected at least {expected}, up to the end of the last \
                 strided row; pass a larger buffer"
            ),
            Self::Bound { kernel, operand, actual } => write!(
                f,
                "{kernel}: `{operand}` is {}, expected a finite number above 0; leave it out for no bound",
                f32::from_bits(actual)
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
