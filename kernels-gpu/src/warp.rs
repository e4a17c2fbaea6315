//! Collectives of one warp.

use crate::arch;
use crate::row::Group;
use cuda_std::warp;

/// All 32 lanes of a warp. Barriers: none.
#[derive(Clone, Copy)]
pub struct Warp;

impl Group for Warp {
    #[inline(always)]
    unsafe fn loading(self) {}

    #[inline(always)]
    unsafe fn reduce_max(self, value: f32) -> f32 {
        // SAFETY: all lanes are here, by contract.
        unsafe { arch::reduce_max(warp::FULL_MASK, value) }
    }
}
