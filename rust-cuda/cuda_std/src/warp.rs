//! Collectives of a warp: 32 lanes that run together.
//!
//! Every function takes the `mask` of the lanes that take part. On all of them one duty rests, and the emulator checks it:
//! the lanes of `mask`, the caller among them, reach the same call with the same `mask`.

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

/// Which lane a shuffle reads from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WarpShuffleMode {
    /// `lane - operand`.
    Up,
    /// `lane + operand`.
    Down,
    /// Lane `operand` of the segment.
    Idx,
    /// `lane ^ operand`.
    Xor,
}

/// Lane that `lane` reads from, and whether it lies in the caller's segment of `width` lanes: if not, it is `lane`.
/// Source: `shfl.sync` in the PTX ISA.
#[inline(always)]
pub(crate) fn shuffle_source(mode: WarpShuffleMode, lane: u32, operand: u32, width: u32) -> (u32, bool) {
    let first = lane & !(width - 1);
    let last = first + width - 1;
    let operand = operand % WARP_SIZE;
    let (source, inside) = match mode {
        WarpShuffleMode::Up => (lane.wrapping_sub(operand), lane >= first + operand),
        WarpShuffleMode::Down => (lane + operand, lane + operand <= last),
        WarpShuffleMode::Idx => (first | operand & (width - 1), true),
        WarpShuffleMode::Xor => (lane ^ operand, lane ^ operand <= last),
    };
    (if inside { source } else { lane }, inside)
}

macro_rules! shuffle {
    ($(#[$doc:meta])* $name:ident, $mode:ident, $intrinsic:ident) => {
        $(#[$doc])*
        ///
        /// Returns it, and whether that lane is in the caller's segment of `width` lanes; if not, the caller's own value.
        ///
        /// # Safety
        /// - Every lane of `mask` reaches this call with the same `mask` and `width`; the caller is in `mask`, and so is
        ///   the lane it reads from.
        /// - `width` is a power of two, at most 32.
        #[inline(always)]
        #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
        pub unsafe fn $name<T: WarpShuffleValue>(mask: u32, value: T, operand: u32, width: u32) -> (T, bool) {
            // SAFETY: the caller's duties are the intrinsic's.
            let bits = unsafe { intrinsics::$intrinsic(mask, value.to_bits(), operand, width) };
            (T::from_bits(bits), shuffle_source(WarpShuffleMode::$mode, lane_id(), operand, width).1)
        }
    };
}
shuffle!(
    /// Value of the lane `operand` below the caller.
    warp_shuffle_up, Up, shuffle_up
);
shuffle!(
    /// Value of the lane `operand` above the caller.
    warp_shuffle_down, Down, shuffle_down
);
shuffle!(
    /// Value of lane `operand` of the caller's segment.
    warp_shuffle_idx, Idx, shuffle_idx
);
shuffle!(
    /// Value of lane `lane ^ operand`.
    warp_shuffle_xor, Xor, shuffle_xor
);

/// Whether `predicate` holds in all lanes of `mask`.
///
/// # Safety
/// Every lane of `mask` reaches this call with the same `mask`; the caller is in `mask`.
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
pub unsafe fn warp_vote_all(mask: u32, predicate: bool) -> bool {
    // SAFETY: the caller's duties are the intrinsic's.
    unsafe { intrinsics::vote_all(mask, predicate) }
}

/// Whether `predicate` holds in any lane of `mask`.
///
/// # Safety
/// Every lane of `mask` reaches this call with the same `mask`; the caller is in `mask`.
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
pub unsafe fn warp_vote_any(mask: u32, predicate: bool) -> bool {
    // SAFETY: the caller's duties are the intrinsic's.
    unsafe { intrinsics::vote_any(mask, predicate) }
}

/// Bit per lane of `mask` in which `predicate` holds.
///
/// # Safety
/// Every lane of `mask` reaches this call with the same `mask`; the caller is in `mask`.
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
pub unsafe fn warp_vote_ballot(mask: u32, predicate: bool) -> u32 {
    // SAFETY: the caller's duties are the intrinsic's.
    unsafe { intrinsics::vote_ballot(mask, predicate) }
}

/// How [`warp_reduce`] combines two lanes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WarpReductionMode {
    /// Wrapping sum.
    Add,
    /// Smaller one.
    Min,
    /// Larger one.
    Max,
    /// Bits of both.
    And,
    /// Bits of either.
    Or,
    /// Bits of one only.
    Xor,
}

/// Combination of `value` over the lanes of `mask`. One instruction, from compute capability 8.0 up.
///
/// # Safety
/// Every lane of `mask` reaches this call with the same `mask` and `mode`; the caller is in `mask`.
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
pub unsafe fn warp_reduce(mask: u32, value: u32, mode: WarpReductionMode) -> u32 {
    // SAFETY: the caller's duties are the intrinsic's.
    unsafe { intrinsics::reduce(mask, value, mode) }
}

/// Maximum of an f32 over the lanes of `mask`; NaN never raises it. One instruction, compute capability 10.0 and 10.3 only.
///
/// # Safety
/// - Every lane of `mask` reaches this call with the same `mask`; the caller is in `mask`.
/// - The target is `sm_100f` or of its family.
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
pub unsafe fn warp_reduce_max_f32(mask: u32, value: f32) -> f32 {
    // SAFETY: the caller's duties are the intrinsic's.
    unsafe { intrinsics::reduce_max_f32(mask, value) }
}

/// Barrier of the lanes of `mask`: memory written before it by any of them is visible after it to all of them.
///
/// # Safety
/// Every lane of `mask` reaches this call with the same `mask`; the caller is in `mask`.
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
pub unsafe fn sync_warp(mask: u32) {
    // SAFETY: the caller's duties are the intrinsic's.
    unsafe { intrinsics::sync_warp(mask) }
}
