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
        /// - `hidden`, `x` and `q` suit the entry's vector; the CTA and the grid suit its strategy; `rows` is below 2^32.
        #[cuda_std::kernel(max_threads = ptq_spec::per_token::Strategy::$strategy.max_threads())]
        pub unsafe fn $name(x: *const u8, q: *mut u8, s: *mut f32, rows: u64, hidden: u64, flags: u32) {
            $crate::arch::order_grids();
            let arguments = $crate::row::Arguments { x, q, s, hidden, flags };
            let scale = $crate::row::Unbounded;
            // SAFETY: the kernel's contract is the strategy's.
            unsafe { $crate::entry::strategy::body!($strategy, Element, $elements, $vectors, arguments, scale, rows) }
        }
    )*};
}

use entries;

super::for_each_element!(entries);
