//! The kernels: thin entries over the algorithm.
//!
//! One operation of one element type per device build, both chosen by feature; on the host all of them are checked
//! together.

#[cfg(feature = "per_tensor")]
pub mod per_tensor;
#[cfg(feature = "per_token")]
pub mod per_token;
