//! The list of case families, which every implementation iterates.

use crate::{Case, cases};

/// The largest input that an implementation takes: the emulator pays for every row, a GPU for hardly any.
///
/// A family leaves larger inputs out, or makes them smaller where it says so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Budget {
    /// Most rows.
    pub rows: usize,
    /// Most elements.
    pub elements: usize,
}

impl Budget {
    /// No limit: the largest input has 7807 x 20000 elements.
    pub const UNBOUNDED: Self = Self { rows: usize::MAX, elements: usize::MAX };

    /// Whether an input of that shape is within it.
    pub(crate) fn holds(self, rows: usize, hidden: usize) -> bool {
        rows <= self.rows && rows.saturating_mul(hidden) <= self.elements
    }
}

/// The cases of a family.
pub type Cases = Box<dyn Iterator<Item = Case>>;

/// A kind of cases.
#[derive(Debug, Clone, Copy)]
pub struct Family {
    /// Name of the function in [`cases`] that makes them.
    pub name: &'static str,
    cases: fn(Budget) -> Cases,
}

impl Family {
    /// Its cases within the budget.
    pub fn cases(&self, budget: Budget) -> Cases {
        (self.cases)(budget)
    }

    /// The family of that name.
    pub fn named(name: &str) -> Option<&'static Self> {
        FAMILIES.iter().find(|family| family.name == name)
    }
}

/// Calls `$define! { family, ... }` with the name of every family: how a new one reaches every implementation.
#[macro_export]
macro_rules! for_each_family {
    ($define:ident) => {
        $define! {
            golden,
            random,
            patterns,
            midpoints,
            specials,
            each_exponent,
            largest_at_each_column,
            boundaries,
            row_counts,
            zero_scales,
            padded,
            unaligned,
            strides,
            bounds,
            device_rows,
        }
    };
}

macro_rules! table {
    ($($family:ident,)*) => {
        /// Every family.
        pub const FAMILIES: &[Family] = &[$(Family {
            name: stringify!($family),
            cases: |budget| Box::new(cases::$family(budget)),
        }),*];
    };
}
for_each_family!(table);
