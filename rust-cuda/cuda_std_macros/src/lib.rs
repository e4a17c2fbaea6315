//! Attribute macros of `cuda_std`.

mod kernel;

use proc_macro::TokenStream;

/// Marks a function as a GPU kernel: the entry point of a grid, launched by name.
///
/// The function is `pub unsafe fn` without a return value, and neither generic nor a method. On `nvptx64` it gets the
/// kernel calling convention and its own name as symbol; elsewhere it stays an ordinary function.
///
/// `#[kernel(max_threads = N)]`, `N` any constant `u32` expression, declares that no launch uses more than `N` threads
/// per CTA (`.maxntid`): the compiler then keeps the registers of a full CTA within the multiprocessor's.
#[proc_macro_attribute]
pub fn kernel(arguments: TokenStream, item: TokenStream) -> TokenStream {
    kernel::expand(arguments.into(), item.into()).unwrap_or_else(|error| error.to_compile_error()).into()
}
