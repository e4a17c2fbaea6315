//! Per-tensor quantization, the contract of [`ptq_spec::per_tensor`]: parts of the tensor in parallel, each by the widest
//! instruction set of the machine.

pub mod scalar;

use crate::isa::Passes;
use crate::scalar::{inverse, scale};
use crate::{Input, Isa, row};
use ptq_spec::per_token_extended::Bounds;
use ptq_spec::{MathMode, ShapeError, ZeroRows, per_tensor};
#[cfg(feature = "rayon")]
use rayon::prelude::*;

/// Elements of a task: some ten microseconds of work, well above what handing it over costs.
#[cfg(feature = "rayon")]
const ELEMENTS_PER_TASK: usize = 1 << 15;

/// Quantizes by a given scale, on the threads of the current rayon pool, or without the feature `rayon` on the calling one.
///
/// - `x`: any number of elements
/// - `q`: as many E4M3 codes
/// - `s`: the scale, any number; `q * s` dequantizes
/// - `zero_scale`: [`ZeroRows::Legacy`] is the reference, [`ZeroRows::Guarded`] gives a zero scale the inverse 0
///
/// The bits are those of [`scalar::quantize_static`].
///
/// ```
/// use ptq_cpu::per_tensor::quantize_static;
/// use ptq_spec::{MathMode, ZeroRows};
///
/// let mut q = [0; 3];
/// quantize_static(&[1.0, -2.0, 1e9], &mut q, 0.5, MathMode::Precise, ZeroRows::Legacy)?;
/// assert_eq!(q, [0x40, 0xC8, 0x7E]); // 2, -4, 448
/// # Ok::<(), ptq_spec::ShapeError>(())
/// ```
///
/// # Errors
/// [`ShapeError::Len`] where `q` has another length than `x`; nothing is written then.
pub fn quantize_static<T: Input>(
    x: &[T],
    q: &mut [u8],
    s: f32,
    math: MathMode,
    zero_scale: ZeroRows,
) -> Result<(), ShapeError> {
    by_scale(best(), x, q, s, math, zero_scale)
}

/// Quantizes by the absmax of the whole tensor, on the threads of the current rayon pool, or without the feature `rayon` on the calling one.
///
/// - `x`: any number of elements
/// - `q`: as many E4M3 codes
/// - `s`: the scale; `q * s` dequantizes
/// - `zero_scale`: as for [`quantize_static`]
///
/// Without elements nothing is written. The bits are those of [`scalar::quantize_dynamic`].
///
/// # Errors
/// [`ShapeError::Len`] where `q` has another length than `x`; nothing is written then.
pub fn quantize_dynamic<T: Input>(
    x: &[T],
    q: &mut [u8],
    s: &mut f32,
    math: MathMode,
    zero_scale: ZeroRows,
) -> Result<(), ShapeError> {
    by_absmax(best(), x, q, s, math, zero_scale)
}

/// [`quantize_static`] by one instruction set, for tests and measurements; `None`, and nothing is written, where this machine
/// lacks it.
///
/// # Errors
/// Those of [`quantize_static`].
pub fn quantize_static_with<T: Input>(
    isa: Isa,
    x: &[T],
    q: &mut [u8],
    s: f32,
    math: MathMode,
    zero_scale: ZeroRows,
) -> Option<Result<(), ShapeError>> {
    Some(by_scale(isa.passes()?, x, q, s, math, zero_scale))
}

/// [`quantize_dynamic`] by one instruction set, for tests and measurements; `None`, and nothing is written, where this
/// machine lacks it.
///
/// # Errors
/// Those of [`quantize_dynamic`].
pub fn quantize_dynamic_with<T: Input>(
    isa: Isa,
    x: &[T],
    q: &mut [u8],
    s: &mut f32,
    math: MathMode,
    zero_scale: ZeroRows,
) -> Option<Result<(), ShapeError>> {
    Some(by_absmax(isa.passes()?, x, q, s, math, zero_scale))
}

/// Of the fastest instruction set that this machine has.
fn best<T: Input>() -> Passes<T> {
    Isa::ALL.into_iter().find_map(Isa::passes).unwrap_or(Passes { absmax: row::absmax, encode: row::encode_by })
}

fn by_scale<T: Input>(
    passes: Passes<T>,
    x: &[T],
    q: &mut [u8],
    s: f32,
    math: MathMode,
    zero_scale: ZeroRows,
) -> Result<(), ShapeError> {
    per_tensor::check_lens(x.len() as u64, q.len() as u64, 1)?;
    let inv = inverse(s, math, zero_scale == ZeroRows::Guarded);
    #[cfg(feature = "rayon")]
    let parts = x.par_chunks(ELEMENTS_PER_TASK).zip(q.par_chunks_mut(ELEMENTS_PER_TASK));
    #[cfg(not(feature = "rayon"))]
    let parts = [(x, q)].into_iter();
    parts.for_each(|(x, q)| (passes.encode)(x, q, inv, math));
    Ok(())
}

fn by_absmax<T: Input>(
    passes: Passes<T>,
    x: &[T],
    q: &mut [u8],
    s: &mut f32,
    math: MathMode,
    zero_scale: ZeroRows,
) -> Result<(), ShapeError> {
    per_tensor::check_lens(x.len() as u64, q.len() as u64, 1)?;
    if x.is_empty() {
        return Ok(());
    }
    #[cfg(feature = "rayon")]
    let absmax = x.par_chunks(ELEMENTS_PER_TASK).map(passes.absmax).reduce(|| 0.0, f32::max);
    #[cfg(not(feature = "rayon"))]
    let absmax = (passes.absmax)(x);
    *s = scale(absmax, math, Bounds::NONE);
    by_scale(passes, x, q, *s, math, zero_scale)
}
