//! The kernels: thin entries over the algorithm.
//!
//! One operation of one element type per device build, both chosen by feature; on the host all of them are checked
//! together.
//!
//! Every kernel starts with [`crate::arch::order_grids`].

#[cfg(feature = "per_tensor")]
pub mod per_tensor;
#[cfg(feature = "per_token")]
pub mod per_token;
#[cfg(feature = "per_token_extended")]
pub mod per_token_extended;
#[cfg(any(feature = "per_token", feature = "per_token_extended"))]
mod strategy;
