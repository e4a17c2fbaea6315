//! Warp maximum by shuffles.

use crate::math;
use cuda_std::warp::{WARP_SIZE, warp_shuffle_xor};

/// Maximum over the lanes of `mask` of a number that is not negative.
///
/// # Safety
/// `mask` names all 32 lanes, and they all reach this call, converged.
#[inline(always)]
pub unsafe fn reduce_max(mask: u32, mut value: f32) -> f32 {
    let mut delta = WARP_SIZE / 2;
    while delta > 0 {
        // SAFETY: all lanes are here with the same delta, below the width.
        let (other, _) = unsafe { warp_shuffle_xor(mask, value, delta, WARP_SIZE) };
        value = math::absmax(value, other);
        delta /= 2;
    }
    value
}
