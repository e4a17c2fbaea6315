//! The kernel functions by element type and name.

use ptq_spec::Element;

/// An entry of per-token quantization: x, q, s, rows, hidden, flags.
pub type Plain = unsafe fn(*const u8, *mut u8, *mut f32, u64, u64, u32);

/// An entry of the extended operation: the same, then x stride, q stride, upper bound, least scale, first row, device
/// rows.
pub type Extended = unsafe fn(*const u8, *mut u8, *mut f32, u64, u64, u32, u64, u64, f32, f32, u64, *const u32);

macro_rules! table {
    ($function:ident, $module:ident, $kernel:ty, $(($name:ident, $strategy:ident, $elements:tt, $vectors:tt),)*) => {
        /// The function of that entry; `None`: there is none in this operation.
        pub fn $function(element: Element, name: &str) -> Option<$kernel> {
            Some(match (element, name) {
                $(
                    (Element::F16, stringify!($name)) => ptq_kernels::entry::$module::f16::$name,
                    (Element::Bf16, stringify!($name)) => ptq_kernels::entry::$module::bf16::$name,
                    (Element::F32, stringify!($name)) => ptq_kernels::entry::$module::f32::$name,
                )*
                _ => return None,
            })
        }
    };
}

macro_rules! plain_table {
    ($($entry:tt,)*) => { table!(plain, per_token, Plain, $($entry,)*); };
}
ptq_spec::for_each_per_token_entry!(plain_table);

macro_rules! extended_table {
    ($($entry:tt,)*) => { table!(extended, per_token_extended, Extended, $($entry,)*); };
}
ptq_spec::for_each_per_token_extended_entry!(extended_table);
