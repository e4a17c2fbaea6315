//! Per-token quantization of strided rows, with bounds and a row count in memory:
//! `ptq_spec::per_token_extended::ENTRIES` as kernels.

use crate::arch::mem;

/// Defines every entry of the table for one element type.
macro_rules! entries {
    ($element:ty) => {
        type Element = $element;
        ptq_spec::for_each_per_token_extended_entry!(define_entries);
    };
}

macro_rules! define_entries {
    ($(($name:ident, $strategy:ident, $elements:tt, $vectors:tt),)*) => {$(
        /// Per-token quantization; see the entry of this name in `ptq_spec::per_token_extended::ENTRIES`.
        ///
        /// # Safety
        /// - `x[rows, hidden]`, rows `x_stride` elements apart, is readable, `q[rows, hidden]`, rows `q_stride` apart,
        ///   and `s[rows]` writable, all disjoint, on the device.
        /// - `hidden`, `x`, `q` and both strides suit the entry's vector; the CTA and the grid suit its strategy; `rows` is
        ///   below 2^32.
        /// - `device_rows` is null or readable, and nothing writes it while the kernel runs.
        #[expect(clippy::too_many_arguments, reason = "a kernel takes its arguments one by one")]
        #[cuda_std::kernel(max_threads = ptq_spec::per_token::Strategy::$strategy.max_threads())]
        pub unsafe fn $name(
            x: *const u8,
            q: *mut u8,
            s: *mut f32,
            rows: u64,
            hidden: u64,
            flags: u32,
            x_stride: u64,
            q_stride: u64,
            upper: f32,
            min_scale: f32,
            first_row: u64,
            device_rows: *const u32,
        ) {
            $crate::arch::order_grids();
            // SAFETY: null or readable by contract.
            let rows = unsafe { $crate::entry::per_token_extended::counted(rows, first_row, device_rows) };
            // The same for all threads of a CTA: no barrier is left waiting.
            if u64::from(cuda_std::thread::block_idx_x()) >= rows {
                return;
            }
            let plain = $crate::row::Arguments { x, q, s, hidden, flags };
            let scale = ptq_spec::per_token_extended::Bounds { upper, min_scale };
            let arguments = $crate::row::Strided { plain, x_stride, q_stride };
            // SAFETY: the kernel's contract is the strategy's.
            unsafe { $crate::entry::strategy::body!($strategy, Element, $elements, $vectors, arguments, scale, rows) }
        }
    )*};
}

use entries;

/// The rows of a grid that are to be quantized: those below the count in memory, if there is one.
///
/// # Safety
/// `device_rows` is null or readable, and nothing writes it while the kernel runs.
#[inline(always)]
unsafe fn counted(rows: u64, first_row: u64, device_rows: *const u32) -> u64 {
    if device_rows.is_null() {
        return rows;
    }
    // SAFETY: readable by contract.
    let [count] = unsafe { mem::load(device_rows) };
    rows.min(u64::from(count).saturating_sub(first_row))
}

super::for_each_element!(entries);
