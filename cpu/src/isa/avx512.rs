//! AVX-512 with the extensions that every server CPU since Skylake has.
#![allow(unsafe_code)]

use super::Row;
use crate::scalar::Rule;
use crate::{Input, row};

/// The algorithm, if this machine has AVX-512.
pub(crate) fn row<T: Input>() -> Option<Row<T>> {
    let available = is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512dq")
        && is_x86_feature_detected!("avx512vl");
    // SAFETY: the closure leaves this function only where `available` says that the machine has the features.
    available.then_some(|x, q, rule| unsafe { quantize(x, q, rule) })
}

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
fn quantize<T: Input>(x: &[T], q: &mut [u8], rule: Rule) -> f32 {
    row::quantize(x, q, rule)
}
