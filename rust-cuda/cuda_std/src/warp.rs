//! Collectives of a warp: 32 lanes that run together.

use crate::intrinsics;

/// Lanes of a warp.
pub const WARP_SIZE: u32 = 32;

/// Mask that names all lanes.
pub const FULL_MASK: u32 = u32::MAX;

/// Index of the thread in its warp, 0..32.
#[inline(always)]
pub fn lane_id() -> u32 {
    intrinsics::lane_id()
}

/// A value that lanes can exchange: 32 bits.
pub trait WarpShuffleValue: Copy + sealed::Sealed {
    #[doc(hidden)]
    fn to_bits(self) -> u32;
    #[doc(hidden)]
    fn from_bits(bits: u32) -> Self;
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for f32 {}
    impl Sealed for u32 {}
    impl Sealed for i32 {}
}

impl WarpShuffleValue for f32 {
    #[inline(always)]
    fn to_bits(self) -> u32 {
        self.to_bits()
    }
    #[inline(always)]
    fn from_bits(bits: u32) -> Self {
        Self::from_bits(bits)
    }
}

impl WarpShuffleValue for u32 {
    #[inline(always)]
    fn to_bits(self) -> u32 {
        self
    }
    #[inline(always)]
    fn from_bits(bits: u32) -> Self {
        bits
    }
}

impl WarpShuffleValue for i32 {
    #[inline(always)]
    fn to_bits(self) -> u32 {
        self as u32
    }
    #[inline(always)]
    fn from_bits(bits: u32) -> Self {
        bits as i32
    }
}

/// Third operand of `shfl.sync`: segments of `width` lanes (a power of two up to 32), `clamp` the last lane of each.
const fn segment(width: u32, clamp: u32) -> u32 {
    (WARP_SIZE - width) << 8 | clamp
}

/// Value of lane `lane ^ delta` of the caller's segment of `width` lanes, and whether that lane is in the segment.
///
/// # Safety
/// - Every lane of `mask` reaches this call, converged, with the same `mask`, `delta` and `width`; the caller is in `mask`.
/// - `width` is a power of two, at most 32.
#[inline(always)]
pub unsafe fn warp_shuffle_xor<T: WarpShuffleValue>(mask: u32, value: T, delta: u32, width: u32) -> (T, bool) {
    // SAFETY: the caller's duties are the intrinsic's.
    let bits = unsafe { intrinsics::shuffle_xor(mask, value.to_bits(), delta, segment(width, WARP_SIZE - 1)) };
    (T::from_bits(bits), delta < width)
}

/// Maximum of a u32 over the lanes of `mask`. One instruction, from compute capability 8.0 up.
///
/// # Safety
/// Every lane of `mask` reaches this call, converged, with the same `mask`; the caller is in `mask`.
#[inline(always)]
pub unsafe fn warp_reduce_max_u32(mask: u32, value: u32) -> u32 {
    // SAFETY: the caller's duties are the intrinsic's.
    unsafe { intrinsics::reduce_max_u32(mask, value) }
}

/// Maximum of an f32 over the lanes of `mask`; NaN never raises it. One instruction, compute capability 10.0 and 10.3 only.
///
/// # Safety
/// - Every lane of `mask` reaches this call, converged, with the same `mask`; the caller is in `mask`.
/// - The target is `sm_100f` or of its family.
#[inline(always)]
pub unsafe fn warp_reduce_max_f32(mask: u32, value: f32) -> f32 {
    // SAFETY: the caller's duties are the intrinsic's.
    unsafe { intrinsics::reduce_max_f32(mask, value) }
}
