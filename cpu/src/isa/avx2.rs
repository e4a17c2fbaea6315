//! AVX2.
#![allow(unsafe_code)]

super::compiled_with!("avx2", is_x86_feature_detected!("avx2"));
