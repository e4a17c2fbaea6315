//! Per-token quantization: `ptq_spec::per_token::ENTRIES` as kernels.

/// Defines every entry of the table for one element type.
macro_rules! entries {
    ($element:ty) => {
        type Element = $element;
        ptq_spec::for_each_per_token_entry!(define_entries);
    };
}

macro_rules! define_entries {
    ($(($name:ident, $strategy:ident, $elements:tt, $vectors:tt),)*) => {$(
        /// Per-token quantization; see the entry of this name in `ptq_spec::per_token::ENTRIES`.
        ///
        /// # Safety
        /// - `x[rows, hidden]` is readable, `q[rows, hidden]` and `s[rows]` writable, all disjoint, on the device.
        /// - `hidden`, `x` and `q` suit the entry's vector; the CTA and the grid suit its strategy.
        #[cuda_std::kernel(max_threads = ptq_spec::per_token::Strategy::$strategy.max_threads())]
        pub unsafe fn $name(x: *const u8, q: *mut u8, s: *mut f32, rows: u64, hidden: u64, guard: u32) {
            let arguments = $crate::row::Arguments { x, q, s, hidden, guard: guard != 0 };
            // SAFETY: the kernel's contract is the strategy's.
            unsafe { $crate::entry::per_token::body!($strategy, Element, $elements, $vectors, arguments, rows) }
        }
    )*};
}

/// The call of one strategy with its vector type.
macro_rules! body {
    (CtaTwoPass, $element:ty, 1, 1, $arguments:expr, $rows:expr) => {
        $crate::entry::per_token::cta_two_pass::<$element, $crate::vector::Single<$element>>($arguments, $rows)
    };
    (CtaTwoPass, $element:ty, $elements:tt, 1, $arguments:expr, $rows:expr) => {
        $crate::entry::per_token::cta_two_pass::<$element, $crate::vector::words!($element, $elements)>(
            $arguments, $rows,
        )
    };
    (Cta, $element:ty, $elements:tt, $vectors:tt, $arguments:expr, $rows:expr) => {
        $crate::entry::per_token::cta::<$element, $crate::vector::words!($element, $elements), $vectors>(
            $arguments, $rows,
        )
    };
    (Warp, $element:ty, $elements:tt, $vectors:tt, $arguments:expr, $rows:expr) => {
        $crate::entry::per_token::warp::<$element, $crate::vector::words!($element, $elements), $vectors>(
            $arguments, $rows,
        )
    };
}

pub(crate) use {body, entries};

#[cfg(feature = "bf16")]
pub mod bf16 {
    //! Entries for bfloat16 input.
    super::entries!(crate::element::Bf16);
}

#[cfg(feature = "f16")]
pub mod f16 {
    //! Entries for IEEE binary16 input.
    super::entries!(crate::element::F16);
}

#[cfg(feature = "f32")]
pub mod f32 {
    //! Entries for IEEE binary32 input.
    super::entries!(crate::element::F32);
}

use crate::element::Element;
use crate::row::{self, Arguments, Member};
use crate::vector::Vector;
use crate::{cta, warp};
use cuda_std::prelude::*;
use ptq_spec::per_token::LANES_PER_WARP;

/// One row per warp.
///
/// # Safety
/// As the kernels that call it; the CTA is one-dimensional, of whole warps, and the grid covers the rows.
#[inline(always)]
pub(crate) unsafe fn warp<T: Element, V: Vector, const N: usize>(arguments: Arguments, rows: u64) {
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
    unsafe { row::held::<V, N>(row, member, reduce) }
}

/// The CTA's row, and the calling thread's place in it.
///
/// # Safety
/// The grid has at most as many CTAs as there are rows.
#[inline(always)]
unsafe fn cta_row<T: Element, V: Vector>(arguments: Arguments) -> (row::Row, Member) {
    // SAFETY: one CTA per row.
    let row = unsafe { arguments.row::<V>(u64::from(thread::block_idx_x()), T::BYTES) };
    (row, Member { index: thread::thread_idx_x(), threads: thread::block_dim_x() })
}

/// One row per CTA.
///
/// # Safety
/// As the kernels that call it; the CTA is one-dimensional, of whole warps, and the grid has one per row.
#[inline(always)]
pub(crate) unsafe fn cta<T: Element, V: Vector, const N: usize>(arguments: Arguments, _rows: u64) {
    // SAFETY: one CTA per row.
    let (row, member) = unsafe { cta_row::<T, V>(arguments) };
    // SAFETY: `held` calls this once, in all threads.
    let reduce = |value| unsafe { cta::reduce_max(value) };
    // SAFETY: this CTA alone has the row; the host chose N and the threads so that it fits; all threads are here.
    unsafe { row::held::<V, N>(row, member, reduce) }
}

/// One row per CTA, of any length.
///
/// # Safety
/// As [`cta`], without a bound on the row's length.
#[inline(always)]
pub(crate) unsafe fn cta_two_pass<T: Element, V: Vector>(arguments: Arguments, _rows: u64) {
    // SAFETY: one CTA per row.
    let (row, member) = unsafe { cta_row::<T, V>(arguments) };
    // SAFETY: `two_pass` calls this once, in all threads.
    let reduce = |value| unsafe { cta::reduce_max(value) };
    // SAFETY: this CTA alone has the row; all threads are here.
    unsafe { row::two_pass::<V>(row, member, reduce) }
}
