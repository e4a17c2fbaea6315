//! Per-tensor quantization: `ptq_spec::per_tensor::ENTRIES` as kernels.

/// Defines every entry of the table for one element type.
macro_rules! entries {
    ($element:ty) => {
        type Element = $element;
        ptq_spec::for_each_per_tensor_entry!(define_entries);
    };
}

macro_rules! define_entries {
    ($(($name:ident, $pass:ident, $elements:tt),)*) => {$(
        /// Per-tensor quantization; see the entry of this name in `ptq_spec::per_tensor::ENTRIES`.
        ///
        /// # Safety
        /// - `x` of `elements` elements is readable; of an absmax entry `s`, which holds 0, is writable; of a quantizing entry
        ///   `s` is readable and `q`, of `elements` bytes, writable; all disjoint, on the device.
        /// - `x`, and of a quantizing entry `q`, suit the entry's vector; the CTA is one-dimensional, of whole warps.
        #[cuda_std::kernel(max_threads = ptq_spec::per_tensor::MAX_THREADS)]
        pub unsafe fn $name(x: *const u8, q: *mut u8, s: *mut f32, elements: u64, guard: u32) {
            $crate::arch::order_grids();
            let arguments = $crate::tensor::Arguments { x, q, s, elements, guard: guard != 0 };
            // SAFETY: the kernel's contract is the pass's.
            unsafe { $crate::entry::per_tensor::body!($pass, Element, $elements, arguments) }
        }
    )*};
}

/// The call of one pass with its vector type.
macro_rules! body {
    ($pass:ident, $element:ty, 1, $arguments:expr) => {
        $crate::entry::per_tensor::body!(@ $pass, $element, $crate::vector::Single<$element>, $arguments)
    };
    ($pass:ident, $element:ty, $elements:tt, $arguments:expr) => {
        $crate::entry::per_tensor::body!(@ $pass, $element, $crate::vector::words!($element, $elements), $arguments)
    };
    (@ Absmax, $element:ty, $vector:ty, $arguments:expr) => {
        $crate::entry::per_tensor::absmax::<$element, $vector>($arguments)
    };
    (@ Quantize, $element:ty, $vector:ty, $arguments:expr) => {
        $crate::tensor::quantize::<$element, $vector>($arguments, $crate::entry::per_tensor::worker())
    };
}

pub(crate) use {body, entries};

super::for_each_element!(entries);

use crate::cta::Cta;
use crate::element::Element;
use crate::row::Group;
use crate::tensor::{self, Arguments, Worker};
use crate::vector::Vector;
use cuda_std::prelude::*;

/// What the calling thread is in the grid.
#[inline(always)]
pub(crate) fn worker() -> Worker {
    let threads = u64::from(thread::block_dim_x());
    Worker {
        index: u64::from(thread::block_idx_x()) * threads + u64::from(thread::thread_idx_x()),
        threads: u64::from(thread::grid_dim_x()) * threads,
    }
}

/// Raises the scale once for each CTA.
///
/// # Safety
/// As the kernels that call it.
#[inline(always)]
pub(crate) unsafe fn absmax<T: Element, V: Vector>(arguments: Arguments) {
    // SAFETY: all threads of the CTA are here, and reduce once.
    let cta = unsafe { Cta::new() };
    // SAFETY: all threads of the CTA are here, converged, and once.
    unsafe { cta.loading() };
    // SAFETY: the kernel's contract.
    let absmax = unsafe { tensor::absmax::<T, V>(arguments, worker()) };
    // SAFETY: as above.
    let absmax = unsafe { cta.reduce_max(absmax) };
    if thread::thread_idx_x() == 0 {
        // SAFETY: the kernel's contract; this kernel touches `s` nowhere else.
        unsafe { tensor::raise_scale(arguments, absmax) };
    }
}
