//! Warp maximum by `redux.sync.max.f32`, which the family of compute capability 10.0 has.

use cuda_std::warp::warp_reduce_max_f32;

/// Maximum over the lanes of `mask` of a number that is not negative.
///
/// # Safety
/// `mask` names all 32 lanes, and they all reach this call, converged.
#[inline(always)]
pub unsafe fn reduce_max(mask: u32, value: f32) -> f32 {
    // SAFETY: all lanes are here, and the target has the instruction.
    unsafe { warp_reduce_max_f32(mask, value) }
}
