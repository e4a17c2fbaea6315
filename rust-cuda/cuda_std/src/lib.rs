//! The rust-cuda device API on stock rustc.
