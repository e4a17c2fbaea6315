//! The hardware: LLVM's NVVM intrinsics.
//!
//! Barriers, shuffles and reductions are intrinsics and never `asm!`: rustc does not mark `asm!` as convergent, so the
//! optimiser could move one into a divergent branch.

use crate::warp::{WARP_SIZE, WarpReductionMode};
use core::arch::nvptx;

unsafe extern "C" {
    #[link_name = "llvm.nvvm.barrier0"]
    fn barrier0();
    #[link_name = "llvm.nvvm.bar.warp.sync"]
    fn bar_warp_sync(mask: i32);
    #[link_name = "llvm.nvvm.read.ptx.sreg.laneid"]
    fn laneid() -> i32;
    #[link_name = "llvm.nvvm.shfl.sync.up.i32"]
    fn shfl_sync_up(mask: i32, value: i32, operand: i32, segment: i32) -> i32;
    #[link_name = "llvm.nvvm.shfl.sync.down.i32"]
    fn shfl_sync_down(mask: i32, value: i32, operand: i32, segment: i32) -> i32;
    #[link_name = "llvm.nvvm.shfl.sync.idx.i32"]
    fn shfl_sync_idx(mask: i32, value: i32, operand: i32, segment: i32) -> i32;
    #[link_name = "llvm.nvvm.shfl.sync.bfly.i32"]
    fn shfl_sync_bfly(mask: i32, value: i32, operand: i32, segment: i32) -> i32;
    #[link_name = "llvm.nvvm.vote.all.sync"]
    fn vote_all_sync(mask: i32, predicate: bool) -> bool;
    #[link_name = "llvm.nvvm.vote.any.sync"]
    fn vote_any_sync(mask: i32, predicate: bool) -> bool;
    #[link_name = "llvm.nvvm.vote.ballot.sync"]
    fn vote_ballot_sync(mask: i32, predicate: bool) -> i32;
    #[link_name = "llvm.nvvm.redux.sync.add"]
    fn redux_sync_add(value: i32, mask: i32) -> i32;
    #[link_name = "llvm.nvvm.redux.sync.umin"]
    fn redux_sync_umin(value: i32, mask: i32) -> i32;
    #[link_name = "llvm.nvvm.redux.sync.umax"]
    fn redux_sync_umax(value: i32, mask: i32) -> i32;
    #[link_name = "llvm.nvvm.redux.sync.and"]
    fn redux_sync_and(value: i32, mask: i32) -> i32;
    #[link_name = "llvm.nvvm.redux.sync.or"]
    fn redux_sync_or(value: i32, mask: i32) -> i32;
    #[link_name = "llvm.nvvm.redux.sync.xor"]
    fn redux_sync_xor(value: i32, mask: i32) -> i32;
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
/// As `warp::sync_warp`.
#[inline(always)]
pub(crate) unsafe fn sync_warp(mask: u32) {
    // SAFETY: the caller's duties are the instruction's.
    unsafe { bar_warp_sync(mask as i32) }
}

/// Third operand of `shfl.sync`: segments of `width` lanes, `clamp` the lane of a segment that a source may not pass.
const fn segment(width: u32, clamp: u32) -> i32 {
    ((WARP_SIZE - width) << 8 | clamp) as i32
}

macro_rules! shuffle {
    ($($name:ident = $intrinsic:ident, $clamp:expr;)*) => {$(
        /// # Safety
        /// As the function of this name in `warp`.
        #[inline(always)]
        pub(crate) unsafe fn $name(mask: u32, value: u32, operand: u32, width: u32) -> u32 {
            // SAFETY: the caller's duties are the instruction's.
            unsafe { $intrinsic(mask as i32, value as i32, operand as i32, segment(width, $clamp)) as u32 }
        }
    )*};
}
shuffle! {
    shuffle_up = shfl_sync_up, 0;
    shuffle_down = shfl_sync_down, WARP_SIZE - 1;
    shuffle_idx = shfl_sync_idx, WARP_SIZE - 1;
    shuffle_xor = shfl_sync_bfly, WARP_SIZE - 1;
}

/// # Safety
/// As `warp::warp_vote_all`.
#[inline(always)]
pub(crate) unsafe fn vote_all(mask: u32, predicate: bool) -> bool {
    // SAFETY: the caller's duties are the instruction's.
    unsafe { vote_all_sync(mask as i32, predicate) }
}

/// # Safety
/// As `warp::warp_vote_any`.
#[inline(always)]
pub(crate) unsafe fn vote_any(mask: u32, predicate: bool) -> bool {
    // SAFETY: the caller's duties are the instruction's.
    unsafe { vote_any_sync(mask as i32, predicate) }
}

/// # Safety
/// As `warp::warp_vote_ballot`.
#[inline(always)]
pub(crate) unsafe fn vote_ballot(mask: u32, predicate: bool) -> u32 {
    // SAFETY: the caller's duties are the instruction's.
    unsafe { vote_ballot_sync(mask as i32, predicate) as u32 }
}

/// # Safety
/// As `warp::warp_reduce`.
#[inline(always)]
pub(crate) unsafe fn reduce(mask: u32, value: u32, mode: WarpReductionMode) -> u32 {
    let redux = match mode {
        WarpReductionMode::Add => redux_sync_add,
        WarpReductionMode::Min => redux_sync_umin,
        WarpReductionMode::Max => redux_sync_umax,
        WarpReductionMode::And => redux_sync_and,
        WarpReductionMode::Or => redux_sync_or,
        WarpReductionMode::Xor => redux_sync_xor,
    };
    // SAFETY: the caller's duties are the instruction's.
    unsafe { redux(value as i32, mask as i32) as u32 }
}

/// # Safety
/// As `warp::warp_reduce_max_f32`.
#[inline(always)]
pub(crate) unsafe fn reduce_max_f32(mask: u32, value: f32) -> f32 {
    // SAFETY: the caller's duties are the instruction's.
    unsafe { redux_sync_fmax(value, mask as i32) }
}
