//! What a warp computes together.

use super::FaultKind;
use super::lane::Answer;
use crate::warp::{WARP_SIZE, WarpReductionMode, WarpShuffleMode, shuffle_source};
use core::panic::Location;

/// A warp operation, without its mask and value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Collective {
    Sync,
    Shuffle { mode: WarpShuffleMode, operand: u32, width: u32 },
    Ballot,
    Reduce(WarpReductionMode),
    ReduceMaxF32,
}

impl Collective {
    /// Whether lanes that wait in both take part in one operation: a shuffle's operand may differ between them.
    pub(crate) fn joins(self, other: Self) -> bool {
        match (self, other) {
            (Self::Shuffle { mode: a, width: v, .. }, Self::Shuffle { mode: b, width: w, .. }) => (a, v) == (b, w),
            _ => self == other,
        }
    }

    /// What the lane gets. `values` has the value of every lane of `mask`.
    pub(crate) fn answer(
        self,
        at: &'static Location<'static>,
        lane: u32,
        mask: u32,
        values: &[u32; WARP_SIZE as usize],
    ) -> Result<Answer, FaultKind> {
        let lanes = || (0..WARP_SIZE).filter(|lane| mask >> lane & 1 == 1);
        let all = || lanes().map(|lane| values[lane as usize]);
        Ok(match self {
            Self::Sync => 0,
            Self::Shuffle { mode, operand, width } => {
                if !width.is_power_of_two() || width > WARP_SIZE {
                    return Err(FaultKind::ShuffleWidth { at, width });
                }
                let (source, _) = shuffle_source(mode, lane, operand, width);
                if mask >> source & 1 == 0 {
                    return Err(FaultKind::ShuffleSource { at, source, mask });
                }
                values[source as usize]
            }
            Self::Ballot => lanes().filter(|&lane| values[lane as usize] != 0).fold(0, |bits, lane| bits | 1 << lane),
            Self::Reduce(mode) => all()
                .reduce(|a, b| match mode {
                    WarpReductionMode::Add => a.wrapping_add(b),
                    WarpReductionMode::Min => a.min(b),
                    WarpReductionMode::Max => a.max(b),
                    WarpReductionMode::And => a & b,
                    WarpReductionMode::Or => a | b,
                    WarpReductionMode::Xor => a ^ b,
                })
                .unwrap_or(0),
            Self::ReduceMaxF32 => all().map(f32::from_bits).reduce(f32::max).map_or(0, f32::to_bits),
        })
    }
}
