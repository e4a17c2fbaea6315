//! Rows one by one: on the threads of the current rayon pool with the feature `rayon`, else on the calling thread.

#[cfg(feature = "rayon")]
use rayon::prelude::*;

/// Elements below which a task is not split: some ten microseconds of work, well above what handing it over costs.
#[cfg(feature = "rayon")]
const ELEMENTS_PER_TASK: usize = 1 << 15;

/// Calls `quantize` with each row of `x[rows, hidden]` and `q[rows, hidden]`, and puts what it returns into `s[rows]`.
/// `hidden` is not 0. Where one of the three has fewer rows, the others' last ones are left alone.
pub(crate) fn for_each<T: Sync>(
    x: &[T],
    q: &mut [u8],
    s: &mut [f32],
    hidden: usize,
    quantize: impl Fn(&[T], &mut [u8]) -> f32 + Sync + Send,
) {
    #[cfg(feature = "rayon")]
    let rows = x.par_chunks_exact(hidden).zip(q.par_chunks_exact_mut(hidden)).zip(s);
    #[cfg(feature = "rayon")]
    let rows = rows.with_min_len(ELEMENTS_PER_TASK.div_ceil(hidden));
    #[cfg(not(feature = "rayon"))]
    let rows = x.chunks_exact(hidden).zip(q.chunks_exact_mut(hidden)).zip(s);
    rows.for_each(|((x, q), s)| *s = quantize(x, q));
}
