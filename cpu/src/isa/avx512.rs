//! AVX-512 with the extensions that every server CPU since Skylake has.
#![allow(unsafe_code)]

fn is_available() -> bool {
    is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512dq")
        && is_x86_feature_detected!("avx512vl")
}

super::compiled_with!("avx512f,avx512bw,avx512dq,avx512vl", is_available());
