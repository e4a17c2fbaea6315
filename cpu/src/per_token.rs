//! The fast path: rows in parallel, each by the widest instruction set of the machine.

use crate::isa::Row;
use crate::{Input, Isa, Params, row, rows};
use ptq_spec::{Shape, ShapeError};

/// Quantizes the first `shape.rows()` rows, on the threads of the current rayon pool, or without the feature `rayon` on
/// the calling one.
///
/// - `x`: `[rows, hidden]`
/// - `q`: `[rows_out, hidden]`, E4M3 codes
/// - `s`: `[rows_out]`; `q * s` dequantizes
///
/// Rows of `q` and `s` from `shape.rows()` on keep what they hold. The bits are those of [`crate::scalar::quantize`].
///
/// # Errors
/// [`ShapeError::Len`] where a slice has another length; nothing is written then.
pub fn quantize<T: Input>(
    x: &[T],
    q: &mut [u8],
    s: &mut [f32],
    shape: Shape,
    params: Params,
) -> Result<(), ShapeError> {
    let row = Isa::ALL.into_iter().find_map(Isa::row).unwrap_or(row::quantize);
    quantize_rows(row, x, q, s, shape, params)
}

/// [`quantize`] by one instruction set, for tests and measurements; `None`, and nothing is written, where this machine
/// lacks it.
///
/// # Errors
/// Those of [`quantize`].
pub fn quantize_with<T: Input>(
    isa: Isa,
    x: &[T],
    q: &mut [u8],
    s: &mut [f32],
    shape: Shape,
    params: Params,
) -> Option<Result<(), ShapeError>> {
    Some(quantize_rows(isa.row()?, x, q, s, shape, params))
}

fn quantize_rows<T: Input>(
    row: Row<T>,
    x: &[T],
    q: &mut [u8],
    s: &mut [f32],
    shape: Shape,
    params: Params,
) -> Result<(), ShapeError> {
    shape.check_lens(x.len() as u64, q.len() as u64, s.len() as u64)?;
    if shape.rows() == 0 {
        return Ok(());
    }
    let hidden = shape.hidden() as usize;
    let guard = params.options.guard(shape.rows(), params.sm_count);
    rows::for_each(x, q, s, hidden, |x, q| row(x, q, params.math, guard));
    Ok(())
}
