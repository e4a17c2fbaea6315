//! Rows whose scale is zero: when the inverse is guarded.

use crate::per_token::REFERENCE_ROWS_PER_SM;
use core::fmt;

/// What becomes of a row whose scale is 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum ZeroRows {
    /// Guard exactly when the reference would, which depends on its [`Dispatch`]. Bit-exact with the reference.
    #[default]
    Legacy,
    /// Always guard, as later versions of the reference do: such a row becomes zeros.
    Guarded,
}

/// Which kernel of the reference a launch stands for. Only the bytes of zero-scale rows depend on it.
///
/// It never chooses our own kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Dispatch {
    /// The reference's choice: its warp kernel from `sm_count * 16` rows up, its CTA kernel below.
    #[default]
    Auto,
    /// The reference's warp kernel, which guards zero scales.
    Warp,
    /// The reference's CTA kernel, which does not.
    Cta,
}

/// The options of the contract that both the GPU and the CPU take.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Options {
    /// What becomes of rows whose scale is 0.
    pub zero_rows: ZeroRows,
    /// Whose bytes [`ZeroRows::Legacy`] keeps.
    pub dispatch: Dispatch,
}

impl Options {
    /// Whether a zero scale gives a zero inverse (`true`) or an infinite one, for an input of `rows` rows on a chip of
    /// `sm_count` multiprocessors.
    pub const fn guard(self, rows: u64, sm_count: u32) -> bool {
        match (self.zero_rows, self.dispatch) {
            (ZeroRows::Guarded, _) | (_, Dispatch::Warp) => true,
            (_, Dispatch::Cta) => false,
            (_, Dispatch::Auto) => rows >= sm_count as u64 * REFERENCE_ROWS_PER_SM,
        }
    }

    /// Options that guard whatever the number of rows, if these do for that one, and never else.
    pub const fn decided(self, rows: u64, sm_count: u32) -> Self {
        let dispatch = if self.guard(rows, sm_count) { Dispatch::Warp } else { Dispatch::Cta };
        Self { zero_rows: ZeroRows::Legacy, dispatch }
    }
}

impl ZeroRows {
    /// Both choices.
    pub const ALL: [Self; 2] = [Self::Legacy, Self::Guarded];

    /// Lower-case name, as command-line options spell it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Legacy => "legacy",
            Self::Guarded => "guarded",
        }
    }
}

impl Dispatch {
    /// Every choice.
    pub const ALL: [Self; 3] = [Self::Auto, Self::Warp, Self::Cta];

    /// Lower-case name, as command-line options spell it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Warp => "warp",
            Self::Cta => "cta",
        }
    }
}

impl fmt::Display for ZeroRows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl fmt::Display for Dispatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn guard_truth_table() {
        let threshold = 132 * REFERENCE_ROWS_PER_SM;
        // (zero rows, dispatch, guard one row below the threshold, guard at it)
        let table = [
            (ZeroRows::Legacy, Dispatch::Auto, false, true),
            (ZeroRows::Legacy, Dispatch::Warp, true, true),
            (ZeroRows::Legacy, Dispatch::Cta, false, false),
            (ZeroRows::Guarded, Dispatch::Auto, true, true),
            (ZeroRows::Guarded, Dispatch::Warp, true, true),
            (ZeroRows::Guarded, Dispatch::Cta, true, true),
        ];
        assert_eq!(table.len(), ZeroRows::ALL.len() * Dispatch::ALL.len());
        for (zero_rows, dispatch, below, at) in table {
            let options = Options { zero_rows, dispatch };
            assert_eq!(options.guard(threshold - 1, 132), below, "{options:?} below");
            assert_eq!(options.guard(threshold, 132), at, "{options:?} at");
            for rows in [0, threshold - 1, threshold, u64::MAX] {
                assert_eq!(options.decided(threshold - 1, 132).guard(rows, 132), below, "{options:?} decided below");
                assert_eq!(options.decided(threshold, 132).guard(rows, 132), at, "{options:?} decided at");
            }
        }
    }

    #[test]
    fn the_default_is_the_reference_s_choice() {
        assert_eq!(Options::default(), Options { zero_rows: ZeroRows::Legacy, dispatch: Dispatch::Auto });
    }

    #[test]
    fn the_threshold_follows_the_chip_and_does_not_overflow() {
        let options = Options::default();
        assert!(!options.guard(2111, 132) && options.guard(2112, 132));
        assert!(!options.guard(15, 1) && options.guard(16, 1));
        let threshold = u32::MAX as u64 * REFERENCE_ROWS_PER_SM;
        assert!(!options.guard(threshold - 1, u32::MAX) && options.guard(threshold, u32::MAX));
    }
}
