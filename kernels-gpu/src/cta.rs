//! Collectives of one CTA.

use crate::arch::mem;
use crate::warp::reduce_max as warp_reduce_max;
use cuda_std::prelude::*;
use ptq_spec::per_token::{LANES_PER_WARP, MAX_CTA_WARPS};

/// CTA-wide maximum of a number that is not negative. Participates: all threads of the CTA, a multiple of 32.
/// Valid in: every thread. NaN: never raises the maximum. Barriers: one.
///
/// # Safety
/// - Every thread of the CTA reaches this call, converged, and once per launch: the shared array is not reused.
/// - The CTA is one-dimensional, of whole warps, with at most 1024 threads.
#[inline(always)]
pub unsafe fn reduce_max(value: f32) -> f32 {
    let partials = shared_array![f32; MAX_CTA_WARPS as usize];
    let warp = thread::thread_idx_x() / LANES_PER_WARP;
    let lane = thread::thread_idx_x() % LANES_PER_WARP;
    let warps = thread::block_dim_x() / LANES_PER_WARP;

    // SAFETY: every lane of every warp is here.
    let partial = unsafe { warp_reduce_max(value) };
    if lane == 0 {
        // SAFETY: warp < MAX_CTA_WARPS, the array's length, as the CTA has at most 1024 threads.
        let slot = unsafe { partials.add(warp as usize) };
        // SAFETY: each warp has its own slot, and nobody reads before the barrier.
        unsafe { mem::store_shared(slot, partial) };
    }
    thread::sync_threads();
    let partial = if lane < warps {
        // SAFETY: lane < warps <= MAX_CTA_WARPS, the array's length.
        let slot = unsafe { partials.add(lane as usize) };
        // SAFETY: warp `lane` wrote this slot before the barrier, and nobody writes after it.
        unsafe { mem::load_shared(slot) }
    } else {
        0.0
    };
    // SAFETY: every lane of every warp is here: the branch above has joined.
    unsafe { warp_reduce_max(partial) }
}
