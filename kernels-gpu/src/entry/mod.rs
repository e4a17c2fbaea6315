//! The kernels: thin entries over the algorithm.
//!
//! One operation of one element type per device build, both chosen by feature; on the host all of them are checked
//! together.
//!
//! Every kernel starts with [`crate::arch::order_grids`].

/// Calls `$entries! { type }` in a module of its own for each element type that is built.
macro_rules! for_each_element {
    ($entries:ident) => {
        #[cfg(feature = "bf16")]
        pub mod bf16 {
            //! Entries for bfloat16 input.
            super::$entries!(crate::element::Bf16);
        }

        #[cfg(feature = "f16")]
        pub mod f16 {
            //! Entries for IEEE binary16 input.
            super::$entries!(crate::element::F16);
        }

        #[cfg(feature = "f32")]
        pub mod f32 {
            //! Entries for IEEE binary32 input.
            super::$entries!(crate::element::F32);
        }
    };
}
use for_each_element;

#[cfg(feature = "per_tensor")]
pub mod per_tensor;
#[cfg(feature = "per_token")]
pub mod per_token;
#[cfg(feature = "per_token_extended")]
pub mod per_token_extended;
#[cfg(any(feature = "per_token", feature = "per_token_extended"))]
mod strategy;
