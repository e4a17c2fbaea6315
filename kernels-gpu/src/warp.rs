//! Collectives of one warp.

use crate::arch;
use cuda_std::warp;

/// Warp-wide maximum of a number that is not negative. Participates: all 32 lanes. Valid in: every lane.
/// NaN: never raises the maximum. Barriers: none.
///
/// # Safety
/// All 32 lanes reach this call, converged.
#[inline(always)]
pub unsafe fn reduce_max(value: f32) -> f32 {
    // SAFETY: all lanes are here, by contract.
    unsafe { arch::reduce_max(warp::FULL_MASK, value) }
}
