//! The hardware: LLVM's NVVM intrinsics.
//!
//! Barriers, shuffles and reductions are intrinsics and never `asm!`: rustc does not mark `asm!` as convergent, so the
//! optimiser could move one into a divergent branch.

use core::arch::nvptx;

unsafe extern "C" {
    #[link_name = "llvm.nvvm.barrier0"]
    fn barrier0();
    #[link_name = "llvm.nvvm.read.ptx.sreg.laneid"]
    fn laneid() -> i32;
    #[link_name = "llvm.nvvm.shfl.sync.bfly.i32"]
    fn shfl_sync_bfly(mask: i32, value: i32, delta: i32, segment: i32) -> i32;
    #[link_name = "llvm.nvvm.redux.sync.umax"]
    fn redux_sync_umax(value: i32, mask: i32) -> i32;
    #[link_name = "llvm.nvvm.redux.sync.fmax"]
    fn redux_sync_fmax(value: f32, mask: i32) -> f32;
}

macro_rules! special_register {
    ($($name:ident = $intrinsic:expr;)*) => {$(
        #[inline(always)]
        pub(crate) fn $name() -> u32 {
            // SAFETY: reading a special register has no precondition.
            unsafe { $intrinsic() as u32 }
        }
    )*};
}
special_register! {
    thread_idx_x = nvptx::_thread_idx_x;
    block_dim_x = nvptx::_block_dim_x;
    block_idx_x = nvptx::_block_idx_x;
    grid_dim_x = nvptx::_grid_dim_x;
    lane_id = laneid;
}

#[inline(always)]
pub(crate) fn sync_threads() {
    // SAFETY: `bar.sync 0` of the whole CTA; that all live threads reach it is documented at `thread::sync_threads`.
    unsafe { barrier0() }
}

/// # Safety
/// As `warp::warp_shuffle_xor`.
#[inline(always)]
pub(crate) unsafe fn shuffle_xor(mask: u32, value: u32, delta: u32, segment: u32) -> u32 {
    // SAFETY: the caller's duties are the instruction's.
    unsafe { shfl_sync_bfly(mask as i32, value as i32, delta as i32, segment as i32) as u32 }
}

/// # Safety
/// As `warp::warp_reduce_max_u32`.
#[inline(always)]
pub(crate) unsafe fn reduce_max_u32(mask: u32, value: u32) -> u32 {
    // SAFETY: the caller's duties are the instruction's.
    unsafe { redux_sync_umax(value as i32, mask as i32) as u32 }
}

/// # Safety
/// As `warp::warp_reduce_max_f32`.
#[inline(always)]
pub(crate) unsafe fn reduce_max_f32(mask: u32, value: f32) -> f32 {
    // SAFETY: the caller's duties are the instruction's.
    unsafe { redux_sync_fmax(value, mask as i32) }
}
