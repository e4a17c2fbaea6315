//! Where a thread stands in its grid, and the CTA-wide barrier.

use crate::intrinsics;

/// Index of the thread in its CTA, x.
#[inline(always)]
pub fn thread_idx_x() -> u32 {
    intrinsics::thread_idx_x()
}

/// Threads per CTA, x.
#[inline(always)]
pub fn block_dim_x() -> u32 {
    intrinsics::block_dim_x()
}

/// Index of the CTA in its grid, x.
#[inline(always)]
pub fn block_idx_x() -> u32 {
    intrinsics::block_idx_x()
}

/// CTAs of the grid, x.
#[inline(always)]
pub fn grid_dim_x() -> u32 {
    intrinsics::grid_dim_x()
}

/// Barrier of the CTA: memory written before it by any thread of the CTA is visible after it to all of them.
///
/// Every thread of the CTA reaches the same call. On the hardware a barrier that some of them leave out, by returning or by
/// waiting elsewhere, is undefined behaviour, which is why callers keep barriers out of divergent branches; the emulator
/// reports it.
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
pub fn sync_threads() {
    intrinsics::sync_threads();
}
