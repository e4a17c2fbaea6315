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
            $crate::arch::order_grids();
            let arguments = $crate::row::Arguments { x, q, s, hidden, guard: guard != 0 };
            let scale = $crate::row::Unbounded;
            // SAFETY: the kernel's contract is the strategy's.
            unsafe { $crate::entry::strategy::body!($strategy, Element, $elements, $vectors, arguments, scale, rows) }
        }
    )*};
}

use entries;

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
