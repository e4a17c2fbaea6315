//! What an entry runs: one function for each strategy, over the rows of whatever arguments.

use crate::element::Element;
use crate::row::{self, Member, Row, Rows, Scale};
use crate::vector::Vector;
use crate::{cta, warp};
use cuda_std::prelude::*;
use ptq_spec::per_token::LANES_PER_WARP;

/// The call of one strategy with its vector type.
macro_rules! body {
    (CtaTwoPass, $element:ty, 1, 1, $arguments:expr, $scale:expr, $rows:expr) => {
        $crate::entry::strategy::cta_two_pass::<$element, $crate::vector::Single<$element>>($arguments, $scale, $rows)
    };
    (CtaTwoPass, $element:ty, $elements:tt, 1, $arguments:expr, $scale:expr, $rows:expr) => {
        $crate::entry::strategy::cta_two_pass::<$element, $crate::vector::words!($element, $elements)>(
            $arguments, $scale, $rows,
        )
    };
    (Cta, $element:ty, $elements:tt, $vectors:tt, $arguments:expr, $scale:expr, $rows:expr) => {
        $crate::entry::strategy::cta::<$element, $crate::vector::words!($element, $elements), $vectors>(
            $arguments, $scale, $rows,
        )
    };
    (Warp, $element:ty, $elements:tt, $vectors:tt, $arguments:expr, $scale:expr, $rows:expr) => {
        $crate::entry::strategy::warp::<$element, $crate::vector::words!($element, $elements), $vectors>(
            $arguments, $scale, $rows,
        )
    };
}

pub(crate) use body;

/// One row per warp.
///
/// # Safety
/// As the kernels that call it; the CTA is one-dimensional, of whole warps, and the grid covers the rows.
#[inline(always)]
pub(crate) unsafe fn warp<T: Element, V: Vector, const N: usize>(arguments: impl Rows, scale: impl Scale, rows: u64) {
    let warps = thread::block_dim_x() / LANES_PER_WARP;
    let index =
        u64::from(thread::block_idx_x()) * u64::from(warps) + u64::from(thread::thread_idx_x() / LANES_PER_WARP);
    // The same for all lanes of a warp: either all of them leave or none.
    if index >= rows {
        return;
    }
    // SAFETY: index < rows.
    let row = unsafe { arguments.row::<V>(index, T::BYTES) };
    let member = Member { index: thread::thread_idx_x() % LANES_PER_WARP, threads: LANES_PER_WARP };
    // SAFETY: `held` calls this once, in all lanes.
    let reduce = |value| unsafe { warp::reduce_max(value) };
    // SAFETY: this warp alone has row `index`; the host chose N so that the row fits; all lanes are here.
    unsafe { row::held::<V, N>(row, member, scale, reduce) }
}

/// The CTA's row, and the calling thread's place in it.
///
/// # Safety
/// The grid has at most as many CTAs as there are rows.
#[inline(always)]
unsafe fn cta_row<T: Element, V: Vector>(arguments: impl Rows) -> (Row, Member) {
    // SAFETY: one CTA per row.
    let row = unsafe { arguments.row::<V>(u64::from(thread::block_idx_x()), T::BYTES) };
    (row, Member { index: thread::thread_idx_x(), threads: thread::block_dim_x() })
}

/// One row per CTA.
///
/// # Safety
/// As the kernels that call it; the CTA is one-dimensional, of whole warps, and the grid has one per row.
#[inline(always)]
pub(crate) unsafe fn cta<T: Element, V: Vector, const N: usize>(arguments: impl Rows, scale: impl Scale, _rows: u64) {
    // SAFETY: one CTA per row.
    let (row, member) = unsafe { cta_row::<T, V>(arguments) };
    // SAFETY: `held` calls this once, in all threads.
    let reduce = |value| unsafe { cta::reduce_max(value) };
    // SAFETY: this CTA alone has the row; the host chose N and the threads so that it fits; all threads are here.
    unsafe { row::held::<V, N>(row, member, scale, reduce) }
}

/// One row per CTA, of any length.
///
/// # Safety
/// As [`cta`], without a bound on the row's length.
#[inline(always)]
pub(crate) unsafe fn cta_two_pass<T: Element, V: Vector>(arguments: impl Rows, scale: impl Scale, _rows: u64) {
    // SAFETY: one CTA per row.
    let (row, member) = unsafe { cta_row::<T, V>(arguments) };
    // SAFETY: `two_pass` calls this once, in all threads.
    let reduce = |value| unsafe { cta::reduce_max(value) };
    // SAFETY: this CTA alone has the row; all threads are here.
    unsafe { row::two_pass::<V>(row, member, scale, reduce) }
}
