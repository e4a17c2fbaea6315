//! What an entry runs: one function for each strategy, over the rows of whatever arguments.

use crate::cta::Cta;
use crate::element::Element;
use crate::row::{self, Length, Member, Rows, Scale};
use crate::vector::{Held, Vector};
use crate::warp::Warp;
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
pub(crate) unsafe fn warp<T: Element, V: Held, const N: usize>(arguments: impl Rows, scale: impl Scale, rows: u64) {
    let warps = thread::block_dim_x() / LANES_PER_WARP;
    // Below 2^32: the host gives a grid no more rows.
    let index = thread::block_idx_x() * warps + thread::thread_idx_x() / LANES_PER_WARP;
    let member = Member { index: thread::thread_idx_x() % LANES_PER_WARP, threads: LANES_PER_WARP };
    let row = arguments.row::<V>(index, Length::Held, member, T::BYTES);
    // No early return: the check would delay the loads.
    let exists = index < rows as u32;
    // SAFETY: this warp alone has row `index`; the host chose N so that the row fits; all lanes are here.
    unsafe { row::held::<V, N>(row, exists, member, scale, Warp) }
}

/// The calling thread's place in its CTA.
#[inline(always)]
fn cta_member() -> Member {
    Member { index: thread::thread_idx_x(), threads: thread::block_dim_x() }
}

/// One row per CTA.
///
/// # Safety
/// As the kernels that call it; the CTA is one-dimensional, of whole warps, and the grid has one per row.
#[inline(always)]
pub(crate) unsafe fn cta<T: Element, V: Held, const N: usize>(arguments: impl Rows, scale: impl Scale, _rows: u64) {
    let member = cta_member();
    let row = arguments.row::<V>(thread::block_idx_x(), Length::Held, member, T::BYTES);
    // SAFETY: all threads are here, and `held` reduces once.
    let group = unsafe { Cta::new() };
    // SAFETY: this CTA alone has the row; the host chose N and the threads so that it fits; all threads are here.
    unsafe { row::held::<V, N>(row, true, member, scale, group) }
}

/// One row per CTA, of any length.
///
/// # Safety
/// As [`cta`], without a bound on the row's length.
#[inline(always)]
pub(crate) unsafe fn cta_two_pass<T: Element, V: Vector>(arguments: impl Rows, scale: impl Scale, _rows: u64) {
    let member = cta_member();
    let first = Member { index: 0, ..member };
    let row = arguments.row::<V>(thread::block_idx_x(), Length::Any, first, T::BYTES);
    // SAFETY: all threads are here, and `two_pass` reduces once.
    let group = unsafe { Cta::new() };
    // SAFETY: this CTA alone has the row; all threads are here.
    unsafe { row::two_pass::<V>(row, member, scale, group) }
}
