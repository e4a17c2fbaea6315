//! Runs cases and compares bytes.

use crate::{Buffer, Case, Output, cpu};
use ptq_spec::ShapeError;
use std::error::Error;
use std::fmt;

/// Cases whose failure [`run`] describes before it stops.
pub(crate) const MAX_FAILURES: usize = 16;

/// Something that quantizes.
pub trait Implementation {
    /// What failures call it.
    fn name(&self) -> String;

    /// Quantizes `case.x` into the operands of `out`, touching nothing else of its buffers.
    ///
    /// # Errors
    /// Whatever keeps it from doing so; the case has failed then.
    fn quantize(&self, case: &Case, out: &mut Output) -> Result<(), Box<dyn Error>>;
}

/// Who says what is right where nothing was recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Oracle {
    /// [`ptq_cpu::scalar`]: reads like the contract.
    Scalar,
    /// [`ptq_cpu::quantize`], for inputs that take the scalar one long. Only for implementations that are not it.
    Rayon,
}

/// Why a case failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Reason {
    /// The implementation returned an error.
    #[error("{0}")]
    Refused(#[source] Box<dyn Error>),
    /// The oracle returned an error: the case is broken.
    #[error("the oracle refused the case: {0}")]
    BrokenCase(#[source] ShapeError),
    /// An element has other bits than it should have.
    #[error(transparent)]
    Bits(Box<Mismatch>),
}

/// Elements of one output with other bits than they should have.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{differing} of {total} elements of `{operand}` differ, the first {place}: \
     expected {expected:#x}, actual {actual:#x}"
)]
pub struct Mismatch {
    /// `q` or `s`.
    pub operand: &'static str,
    /// Elements with other bits, guards included.
    pub differing: usize,
    /// Elements of the operand.
    pub total: usize,
    /// Where the first one is.
    pub place: Place,
    /// Bits it should have.
    pub expected: u32,
    /// Bits it has.
    pub actual: u32,
}

/// Where in an output an element lies.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Place {
    /// In a row of the input.
    Row {
        /// The row.
        row: usize,
        /// The element in it, for `q`.
        column: Option<usize>,
        /// What the row is; empty: nothing particular.
        kind: String,
        /// Bits of the input's element, for `q`.
        x: Option<u32>,
    },
    /// In a row beyond the input's, or the count's in device memory, which has to keep its bytes.
    Tail {
        /// The row.
        row: usize,
    },
    /// Between two rows, which has to keep its bytes.
    Gap {
        /// The row before it.
        row: usize,
    },
    /// Outside the operand.
    Guard {
        /// Elements from the operand's start; negative before it.
        index: isize,
    },
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Row { row, column, kind, x } => {
                write!(f, "in row {row}")?;
                if !kind.is_empty() {
                    write!(f, " ({kind})")?;
                }
                if let Some(column) = column {
                    write!(f, ", column {column}")?;
                }
                x.map_or(Ok(()), |x| write!(f, ", x = {x:#x}"))
            }
            Self::Tail { row } => write!(f, "in row {row}, beyond the input's"),
            Self::Gap { row } => write!(f, "between row {row} and the next"),
            Self::Guard { index } => write!(f, "outside the operand, at {index} from its start"),
        }
    }
}

/// One case that failed.
#[derive(Debug, thiserror::Error)]
#[error("{case}{}: {reason}", kernel.map(|kernel| format!(", {kernel}")).unwrap_or_default())]
pub struct Failure {
    /// Which.
    pub case: String,
    /// The kernel that ran, where the implementation chose one.
    pub kernel: Option<&'static str>,
    /// Why.
    #[source]
    pub reason: Reason,
}

/// The failures of a [`run`].
#[derive(thiserror::Error)]
pub struct Failures {
    /// Whose.
    pub implementation: String,
    /// Cases that ran, those that failed included.
    pub cases: usize,
    /// The failures, in order; after sixteen the run stopped. Empty: there was no case.
    pub failures: Vec<Failure>,
}

impl fmt::Display for Failures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { implementation, cases, failures } = self;
        if failures.is_empty() {
            return write!(f, "{implementation}: no case ran, which proves nothing");
        }
        write!(f, "{implementation}: {} of the first {cases} cases failed", failures.len())?;
        for failure in failures {
            write!(f, "\n{failure}")?;
        }
        Ok(())
    }
}

/// As [`Display`](fmt::Display), so that `unwrap` in a test prints the failures.
impl fmt::Debug for Failures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Runs every case and returns how many there were.
///
/// # Errors
/// The failures, of which there are none when there was no case.
pub fn run(
    implementation: &dyn Implementation,
    oracle: Oracle,
    cases: impl IntoIterator<Item = Case>,
) -> Result<usize, Failures> {
    let mut result = Failures { implementation: implementation.name(), cases: 0, failures: Vec::new() };
    for case in cases {
        result.cases += 1;
        if let Err(failure) = check(implementation, oracle, &case) {
            result.failures.push(failure);
            if result.failures.len() == MAX_FAILURES {
                break;
            }
        }
    }
    if result.cases > 0 && result.failures.is_empty() { Ok(result.cases) } else { Err(result) }
}

/// Runs one case.
///
/// # Errors
/// The first way in which it failed.
pub fn check(implementation: &dyn Implementation, oracle: Oracle, case: &Case) -> Result<(), Failure> {
    let failure = |kernel, reason| Failure { case: case.name.clone(), kernel, reason };
    let expected = expected(oracle, case).map_err(|error| failure(None, Reason::BrokenCase(error)))?;
    let mut actual = expected.clone();
    actual.complement(case);
    let ran = implementation.quantize(case, &mut actual).map_err(Reason::Refused);
    ran.and_then(|()| compare("s", &expected.s, &actual.s, f32::to_bits, |index| place(case, "s", index)))
        .and_then(|()| compare("q", &expected.q, &actual.q, u32::from, |index| place(case, "q", index)))
        .map_err(|reason| failure(actual.kernel, reason))
}

/// What the output buffers must hold in the end.
fn expected(oracle: Oracle, case: &Case) -> Result<Output, ShapeError> {
    let mut out = case.output();
    match (&case.recorded, oracle) {
        (Some((q, s)), _) => {
            out.q.operand_mut().copy_from_slice(q);
            out.s.operand_mut().copy_from_slice(s);
        }
        (None, Oracle::Scalar) => cpu::scalar(case, &mut out)?,
        (None, Oracle::Rayon) => cpu::rayon(case, &mut out)?,
    }
    Ok(out)
}

/// Compares the bits of one output, guards and all; `place`: what lies at so many elements from its start.
pub(crate) fn compare<T: Copy>(
    operand: &'static str,
    expected: &Buffer<T>,
    actual: &Buffer<T>,
    bits: impl Fn(T) -> u32,
    place: impl Fn(isize) -> Place,
) -> Result<(), Reason> {
    let pairs = || expected.whole().iter().zip(actual.whole()).map(|(&e, &a)| (bits(e), bits(a)));
    let differing = pairs().filter(|(e, a)| e != a).count();
    let Some((at, (expected_bits, actual_bits))) = pairs().enumerate().find(|(_, (e, a))| e != a) else {
        return Ok(());
    };
    Err(Reason::Bits(Box::new(Mismatch {
        operand,
        differing,
        total: expected.operand().len(),
        place: place(at as isize - expected.range().start as isize),
        expected: expected_bits,
        actual: actual_bits,
    })))
}

/// What lies at `index` elements from the start of an output.
fn place(case: &Case, operand: &'static str, index: isize) -> Place {
    let codes = operand == "q";
    let (hidden, stride) = (case.shape.hidden() as usize, case.layout().q_stride() as usize);
    let (width, stride) = if codes { (hidden, stride) } else { (1, 1) };
    let Ok(element) = usize::try_from(index) else { return Place::Guard { index } };
    let (row, column) = (element / stride, element % stride);
    if row >= case.shape.rows_out() as usize || (column >= width && row + 1 == case.shape.rows_out() as usize) {
        return Place::Guard { index };
    }
    if column >= width {
        return Place::Gap { row };
    }
    if row >= case.quantized_rows() as usize {
        return Place::Tail { row };
    }
    Place::Row {
        row,
        column: codes.then_some(column),
        kind: case.row_kinds.get(row).cloned().unwrap_or_default(),
        x: codes.then(|| case.x.bits(row * case.layout().x_stride() as usize + column)),
    }
}
