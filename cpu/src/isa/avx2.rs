//! AVX2.
#![allow(unsafe_code)]

use super::Row;
use crate::{Input, row};
use ptq_spec::MathMode;

/// The algorithm, if this machine has AVX2.
pub(crate) fn row<T: Input>() -> Option<Row<T>> {
    let available = is_x86_feature_detected!("avx2");
    // SAFETY: the closure leaves this function only where `available` says that the machine has the features.
    available.then_some(|x, q, math, guard| unsafe { quantize(x, q, math, guard) })
}

#[target_feature(enable = "avx2")]
fn quantize<T: Input>(x: &[T], q: &mut [u8], math: MathMode, guard: bool) -> f32 {
    row::quantize(x, q, math, guard)
}
