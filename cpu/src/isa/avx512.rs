//! AVX-512 with the extensions that every server CPU since Skylake has.
#![allow(unsafe_code)]

use super::{Passes, Row};
use crate::scalar::Rule;
use crate::{Input, row};
use ptq_spec::MathMode;

/// The algorithm, if this machine has AVX-512.
pub(crate) fn row<T: Input>() -> Option<Row<T>> {
    // SAFETY: the closure leaves this function only where the machine has the features.
    is_available().then_some(|x, q, rule| unsafe { quantize(x, q, rule) })
}

/// The passes over a tensor, if this machine has it.
pub(crate) fn passes<T: Input>() -> Option<Passes<T>> {
    is_available().then_some(Passes {
        // SAFETY: the closure leaves this function only where the machine has the features.
        absmax: |x| unsafe { absmax(x) },
        // SAFETY: as above.
        encode: |x, q, inv, math| unsafe { encode_by(x, q, inv, math) },
    })
}

fn is_available() -> bool {
    is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512dq")
        && is_x86_feature_detected!("avx512vl")
}

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
fn quantize<T: Input>(x: &[T], q: &mut [u8], rule: Rule) -> f32 {
    row::quantize(x, q, rule)
}

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
fn absmax<T: Input>(x: &[T]) -> f32 {
    row::absmax(x)
}

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
fn encode_by<T: Input>(x: &[T], q: &mut [u8], inv: f32, math: MathMode) {
    row::encode_by(x, q, inv, math);
}
