//! How much of the suite runs: all of it, or with `PTQ_SHORT=1` the short form, for tools under which a launch takes long.

use ptq_suite::Budget;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    Whole,
    Short,
}

impl Form {
    pub fn of_environment() -> Self {
        if std::env::var("PTQ_SHORT").is_ok_and(|v| v == "1") { Self::Short } else { Self::Whole }
    }

    /// Of a family's cases.
    pub fn budget(self) -> Budget {
        match self {
            Self::Whole => Budget::UNBOUNDED,
            Self::Short => Budget { rows: usize::MAX, elements: 1 << 17 },
        }
    }

    /// In the short form every fifth case: they come in twos, threes and fours of math modes, element types and options, so
    /// that five meets all of them.
    pub fn some<C>(self, cases: impl Iterator<Item = C>) -> impl Iterator<Item = C> {
        cases.step_by(match self {
            Self::Whole => 1,
            Self::Short => 5,
        })
    }

    /// Generated calls of one variation.
    pub fn generated_calls(self) -> u32 {
        match self {
            Self::Whole => 1000,
            Self::Short => 50,
        }
    }

    /// Cases that run with one entry and number of threads, the longest rows first.
    pub fn cases_per_plan(self) -> usize {
        match self {
            Self::Whole => usize::MAX,
            Self::Short => 2,
        }
    }

    /// Most rows of a case that runs in grids of a few CTAs each.
    pub fn rows_in_many_grids(self) -> u64 {
        match self {
            Self::Whole => u64::MAX,
            Self::Short => 64,
        }
    }
}
