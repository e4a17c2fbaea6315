//! The kernel functions by element type and name.

use ptq_spec::Element;

/// A kernel entry: x, q, s, rows, hidden, guard.
pub type Kernel = unsafe fn(*const u8, *mut u8, *mut f32, u64, u64, u32);

macro_rules! table {
    ($(($name:ident, $strategy:ident, $elements:tt, $vectors:tt),)*) => {
        /// The function of that entry.
        pub fn kernel(element: Element, name: &str) -> Kernel {
            match (element, name) {
                $(
                    (Element::F16, stringify!($name)) => ptq_kernels::entry::per_token::f16::$name,
                    (Element::Bf16, stringify!($name)) => ptq_kernels::entry::per_token::bf16::$name,
                    (Element::F32, stringify!($name)) => ptq_kernels::entry::per_token::f32::$name,
                )*
                _ => panic!("no entry {name}"),
            }
        }
    };
}
ptq_spec::for_each_per_token_entry!(table);
