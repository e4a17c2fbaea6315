//! The list of families, which every implementation iterates.

use super::{Call, cases};
use crate::Budget;

/// The calls of a family.
pub type Calls = Box<dyn Iterator<Item = Call>>;

/// A kind of calls.
#[derive(Debug, Clone, Copy)]
pub struct Family {
    /// Name of the function in [`cases`] that makes them.
    pub name: &'static str,
    calls: fn(Budget) -> Calls,
}

impl Family {
    /// Its calls within the budget, of which the elements count.
    pub fn calls(&self, budget: Budget) -> Calls {
        (self.calls)(budget)
    }

    /// The family of that name.
    pub fn named(name: &str) -> Option<&'static Self> {
        FAMILIES.iter().find(|family| family.name == name)
    }
}

/// Calls `$define! { family, ... }` with the name of every family of per-tensor calls.
#[macro_export]
macro_rules! for_each_per_tensor_family {
    ($define:ident) => {
        $define! {
            sizes,
            largest_at_each_part,
            any_bits,
            every_pattern,
            special_values,
            special_scales,
            exponents,
            off_alignment,
        }
    };
}

macro_rules! table {
    ($($family:ident,)*) => {
        /// Every family.
        pub const FAMILIES: &[Family] = &[$(Family {
            name: stringify!($family),
            calls: |budget| Box::new(cases::$family(budget)),
        }),*];
    };
}
for_each_per_tensor_family!(table);
