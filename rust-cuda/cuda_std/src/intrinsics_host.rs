//! No GPU: every intrinsic asks the emulator, and panics where no launch of it runs.

use crate::emulator::lane::{self, Answer};
use crate::emulator::{Collective, Request};
use crate::warp::{WARP_SIZE, WarpReductionMode, WarpShuffleMode};
use core::panic::Location;

pub(crate) fn thread_idx_x() -> u32 {
    lane::with(|_, lane| lane.thread)
}

pub(crate) fn block_dim_x() -> u32 {
    lane::with(|cta, _| cta.launch.threads)
}

pub(crate) fn block_idx_x() -> u32 {
    lane::with(|cta, _| cta.index)
}

pub(crate) fn grid_dim_x() -> u32 {
    lane::with(|cta, _| cta.launch.ctas)
}

pub(crate) fn lane_id() -> u32 {
    lane::with(|_, lane| lane.thread % WARP_SIZE)
}

#[track_caller]
pub(crate) fn sync_threads() {
    lane::wait(Request::Barrier { at: Location::caller() });
}

#[track_caller]
fn collective(collective: Collective, mask: u32, value: u32) -> Answer {
    lane::wait(Request::Warp { collective, mask, value, at: Location::caller() })
}

/// # Safety
/// None here: the emulator checks the duties.
#[track_caller]
pub(crate) unsafe fn sync_warp(mask: u32) {
    collective(Collective::Sync, mask, 0);
}

macro_rules! shuffle {
    ($($name:ident = $mode:ident;)*) => {$(
        /// # Safety
        /// None here: the emulator checks the duties.
        #[track_caller]
        pub(crate) unsafe fn $name(mask: u32, value: u32, operand: u32, width: u32) -> u32 {
            collective(Collective::Shuffle { mode: WarpShuffleMode::$mode, operand, width }, mask, value)
        }
    )*};
}
shuffle! {
    shuffle_up = Up;
    shuffle_down = Down;
    shuffle_idx = Idx;
    shuffle_xor = Xor;
}

/// # Safety
/// None here: the emulator checks the duties.
#[track_caller]
pub(crate) unsafe fn vote_ballot(mask: u32, predicate: bool) -> u32 {
    collective(Collective::Ballot, mask, predicate.into())
}

/// # Safety
/// None here: the emulator checks the duties.
#[track_caller]
pub(crate) unsafe fn vote_all(mask: u32, predicate: bool) -> bool {
    collective(Collective::Ballot, mask, predicate.into()) == mask
}

/// # Safety
/// None here: the emulator checks the duties.
#[track_caller]
pub(crate) unsafe fn vote_any(mask: u32, predicate: bool) -> bool {
    collective(Collective::Ballot, mask, predicate.into()) != 0
}

/// # Safety
/// None here: the emulator checks the duties.
#[track_caller]
pub(crate) unsafe fn reduce(mask: u32, value: u32, mode: WarpReductionMode) -> u32 {
    collective(Collective::Reduce(mode), mask, value)
}

/// # Safety
/// None here: the emulator checks the duties.
#[track_caller]
pub(crate) unsafe fn reduce_max_f32(mask: u32, value: f32) -> f32 {
    f32::from_bits(collective(Collective::ReduceMaxF32, mask, value.to_bits()))
}
