//! The fast path: rows in parallel, each by the widest instruction set of the machine.

use crate::isa::Row;
use crate::rows::{self, Strides};
use crate::scalar::Rule;
use crate::{Input, Isa, Params, row};
use ptq_spec::per_token_extended::Layout;
use ptq_spec::{Extended, Shape, ShapeError};

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
    shape.check_lens(x.len() as u64, q.len() as u64, s.len() as u64)?;
    quantize_extended(x, q, s, shape, params, Extended::default())
}

/// [`quantize`] with strides and bounds ([`ptq_spec::per_token_extended`]).
///
/// - `x`: `[rows, hidden]`, rows `x_stride` elements apart
/// - `q`: `[rows_out, hidden]`, E4M3 codes, rows `q_stride` elements apart
/// - `s`: `[rows_out]`
///
/// `x` and `q` may be longer than that. Whatever of `q` is not in the first `shape.rows()` rows keeps what it holds.
/// The bits are those of [`crate::scalar::quantize_extended`].
///
/// # Errors
/// Those of [`Extended::layout`]; [`ShapeError::TooShort`], [`ShapeError::Len`]. Nothing is written then.
pub fn quantize_extended<T: Input>(
    x: &[T],
    q: &mut [u8],
    s: &mut [f32],
    shape: Shape,
    params: Params,
    extended: Extended,
) -> Result<(), ShapeError> {
    let layout = extended.layout(shape)?;
    layout.check_lens(x.len() as u64, q.len() as u64, s.len() as u64)?;
    let row = Isa::ALL.into_iter().find_map(Isa::row).unwrap_or(row::quantize);
    quantize_rows(row, x, q, s, layout, params);
    Ok(())
}

/// [`quantize_extended`] by one instruction set, for tests and measurements; `None`, and nothing is written, where this
/// machine lacks it.
///
/// # Errors
/// Those of [`quantize_extended`].
pub fn quantize_with<T: Input>(
    isa: Isa,
    x: &[T],
    q: &mut [u8],
    s: &mut [f32],
    shape: Shape,
    params: Params,
    extended: Extended,
) -> Option<Result<(), ShapeError>> {
    let row = isa.row()?;
    let checked = extended.layout(shape).and_then(|layout| {
        layout.check_lens(x.len() as u64, q.len() as u64, s.len() as u64)?;
        Ok(layout)
    });
    Some(checked.map(|layout| quantize_rows(row, x, q, s, layout, params)))
}

/// Quantizes slices whose lengths are checked.
fn quantize_rows<T: Input>(row: Row<T>, x: &[T], q: &mut [u8], s: &mut [f32], layout: Layout, params: Params) {
    let shape = layout.shape();
    let (rows, hidden) = (shape.rows() as usize, shape.hidden() as usize);
    if rows == 0 {
        return;
    }
    let guard = params.options.guard(shape.rows(), params.sm_count);
    let rule = Rule { math: params.math, guard, bounds: layout.bounds() };
    let strides = Strides { x: layout.x_stride() as usize, q: layout.q_stride() as usize };
    rows::for_each(x, q, &mut s[..rows], hidden, strides, |x, q| row(x, q, rule));
}
