//! The kernels: thin entries over the algorithm.
//!
//! Exactly one element type per device build, chosen by feature; on the host all of them are checked together.

mod per_token;

#[cfg(feature = "bf16")]
pub mod bf16 {
    //! Entries for bfloat16 input.
    super::per_token::entries!(crate::element::Bf16);
}

#[cfg(feature = "f16")]
pub mod f16 {
    //! Entries for IEEE binary16 input.
    super::per_token::entries!(crate::element::F16);
}

#[cfg(feature = "f32")]
pub mod f32 {
    //! Entries for IEEE binary32 input.
    super::per_token::entries!(crate::element::F32);
}
