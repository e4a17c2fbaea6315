//! Rows one by one: on the threads of the current rayon pool with the feature `rayon`, else on the calling thread.

#[cfg(feature = "rayon")]
use rayon::prelude::*;

/// Elements below which a task is not split: some ten microseconds of work, well above what handing it over costs.
#[cfg(feature = "rayon")]
const ELEMENTS_PER_TASK: usize = 1 << 15;

/// Elements from one row to the next, at least those of a row.
#[derive(Clone, Copy)]
pub(crate) struct Strides {
    pub x: usize,
    pub q: usize,
}

/// Calls `quantize` with each row of `x[rows, hidden]` and `q[rows, hidden]`, and puts what it returns into `s[rows]`.
/// `hidden` is not 0, and the last rows of `x` and `q` may lack their gap. Where one of the three has fewer rows, the others'
/// last ones are left alone.
pub(crate) fn for_each<T: Sync>(
    x: &[T],
    q: &mut [u8],
    s: &mut [f32],
    hidden: usize,
    strides: Strides,
    quantize: impl Fn(&[T], &mut [u8]) -> f32 + Sync + Send,
) {
    #[cfg(feature = "rayon")]
    let rows = x.par_chunks(strides.x).zip(q.par_chunks_mut(strides.q)).zip(s);
    #[cfg(feature = "rayon")]
    let rows = rows.with_min_len(ELEMENTS_PER_TASK.div_ceil(hidden));
    #[cfg(not(feature = "rayon"))]
    let rows = x.chunks(strides.x).zip(q.chunks_mut(strides.q)).zip(s);
    rows.for_each(|((x, q), s)| *s = quantize(&x[..hidden], &mut q[..hidden]));
}
