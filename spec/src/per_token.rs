//! Per-token quantization: `x[rows, hidden]` to E4M3 codes `q[rows, hidden]` and scales `s[rows]`.
//!
//! The table of kernel entries that `kernels-gpu` defines and the GPU runtime launches.

/// Name of the operation, in errors and artifact names.
pub const KERNEL: &str = "per_token";

/// `hidden` is a multiple of this many elements.
pub const HIDDEN_MULTIPLE: u64 = 4;

/// The reference runs its warp kernel from `sm_count` times this many rows up.
pub const REFERENCE_ROWS_PER_SM: u64 = 16;

/// SM count that stands for the device where none is present: an H100 or H200.
pub const DEFAULT_SM_COUNT: u32 = 132;

/// Threads of a warp.
pub const LANES_PER_WARP: u32 = 32;

/// Most threads of a CTA that runs a CTA entry.
pub const MAX_CTA_THREADS: u32 = 1024;

/// Most threads of a CTA that runs a warp entry. Fewer than [`MAX_CTA_THREADS`], so that a lane may hold more registers.
pub const MAX_WARP_ENTRY_THREADS: u32 = 256;

/// Most CTAs of one grid. Fewer than CUDA's 2^31 - 1, so that 32 bits count the rows of warp entries too.
pub const MAX_GRID: u32 = u32::MAX / (MAX_WARP_ENTRY_THREADS / LANES_PER_WARP);

/// What caches do with rows that an entry reads once. Never shows in the bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Caching {
    /// What they do with everything.
    Ordinary,
    /// L1 does not take them, and L2 parts with them first; on targets other than `sm_90`, as ordinary.
    NoAllocate,
}

impl Caching {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Ordinary, Self::NoAllocate];

    /// Its bit of the argument `flags`.
    pub const fn flag(self) -> u32 {
        match self {
            Self::Ordinary => 0,
            Self::NoAllocate => flags::NO_ALLOCATE,
        }
    }

    /// Lower-case name, for reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ordinary => "ordinary",
            Self::NoAllocate => "no_allocate",
        }
    }
}

/// Bits of the argument `flags`.
pub mod flags {
    /// With it a scale of 0 has the inverse 0, without it infinity.
    pub const GUARD: u32 = 1 << 0;
    /// [`Caching::NoAllocate`](super::Caching::NoAllocate). Entries that read a row twice ignore it.
    pub const NO_ALLOCATE: u32 = 1 << 1;
}

/// Who works on one row, and how often the row is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Strategy {
    /// One row per warp, read once and held in registers. No barrier.
    Warp,
    /// One row per CTA, read once and held in registers. Two barriers.
    Cta,
    /// One row per CTA, read twice: any `hidden`. Two barriers.
    CtaTwoPass,
}

/// One kernel entry. The same names exist in the artifact of every element type.
///
/// Arguments, in order: `x` pointer, `q` pointer, `s` pointer, `rows: u64` (below 2^32), `hidden: u64`, `flags: u32`
/// (bits of [`flags`]).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Entry {
    /// Symbol in the module.
    pub name: &'static str,
    /// Who works on one row.
    pub strategy: Strategy,
    /// Elements a thread loads and stores at once; divides `hidden`. A vector is stored by one store of as many bytes
    /// and loaded by accesses of at most [`crate::Target::vector_bytes`].
    pub elements_per_vector: u32,
    /// Vectors a thread holds in registers; 1 for [`Strategy::CtaTwoPass`].
    pub vectors_per_thread: u32,
}

/// Calls `$define! { (name, Strategy, elements per vector, vectors per thread), ... }` with every entry.
///
/// Warp entries hold at most 64 elements a lane, CTA entries at most 32 a thread: the latter may run with 1024
/// threads, which leaves 64 registers for each.
#[macro_export]
macro_rules! for_each_per_token_entry {
    ($define:ident) => {
        $define! {
            (per_token_warp_e4x1, Warp, 4, 1),
            (per_token_warp_e4x2, Warp, 4, 2),
            (per_token_warp_e4x4, Warp, 4, 4),
            (per_token_warp_e4x8, Warp, 4, 8),
            (per_token_warp_e8x1, Warp, 8, 1),
            (per_token_warp_e8x2, Warp, 8, 2),
            (per_token_warp_e8x4, Warp, 8, 4),
            (per_token_warp_e8x8, Warp, 8, 8),
            (per_token_warp_e16x1, Warp, 16, 1),
            (per_token_warp_e16x2, Warp, 16, 2),
            (per_token_warp_e16x4, Warp, 16, 4),
            (per_token_cta_e4x1, Cta, 4, 1),
            (per_token_cta_e4x2, Cta, 4, 2),
            (per_token_cta_e4x4, Cta, 4, 4),
            (per_token_cta_e4x8, Cta, 4, 8),
            (per_token_cta_e8x1, Cta, 8, 1),
            (per_token_cta_e8x2, Cta, 8, 2),
            (per_token_cta_e8x4, Cta, 8, 4),
            (per_token_cta_e16x1, Cta, 16, 1),
            (per_token_cta_e16x2, Cta, 16, 2),
            (per_token_two_pass_e1, CtaTwoPass, 1, 1),
            (per_token_two_pass_e4, CtaTwoPass, 4, 1),
            (per_token_two_pass_e8, CtaTwoPass, 8, 1),
            (per_token_two_pass_e16, CtaTwoPass, 16, 1),
        }
    };
}

/// What becomes of a list of entries, in the module that has it.
macro_rules! table {
    ($(($name:ident, $strategy:ident, $elements:literal, $vectors:literal),)*) => {
        /// Every kernel entry.
        pub const ENTRIES: &[Entry] = &[$(Entry {
            name: stringify!($name),
            strategy: Strategy::$strategy,
            elements_per_vector: $elements,
            vectors_per_thread: $vectors,
        }),*];

        /// Their names, in the same order.
        pub const ENTRY_NAMES: &[&str] = &[$(stringify!($name)),*];
    };
}
for_each_per_token_entry!(table);
pub(crate) use table;

impl Strategy {
    /// Most threads of a CTA that runs an entry of this strategy: what the kernels declare as their launch bound.
    pub const fn max_threads(self) -> u32 {
        match self {
            Self::Warp => MAX_WARP_ENTRY_THREADS,
            Self::Cta | Self::CtaTwoPass => MAX_CTA_THREADS,
        }
    }

    /// Barriers (`bar.sync`) that an entry of this strategy executes, and that its PTX holds.
    pub const fn barriers(self) -> usize {
        match self {
            Self::Warp => 0,
            Self::Cta | Self::CtaTwoPass => 2,
        }
    }
}

impl Entry {
    /// The entry of [`ENTRIES`], those of the plain operation, of that strategy and shape, if there is one.
    pub fn find(strategy: Strategy, elements_per_vector: u32, vectors_per_thread: u32) -> Option<&'static Self> {
        crate::Kernel::PerToken.row_entry(strategy, elements_per_vector, vectors_per_thread)
    }

    /// Longest row that `threads` threads (per warp entry: the 32 lanes) hold in registers; `None`: any row.
    pub const fn max_hidden(&self, threads: u32) -> Option<u64> {
        let lanes = match self.strategy {
            Strategy::Warp => LANES_PER_WARP,
            Strategy::Cta => threads,
            Strategy::CtaTwoPass => return None,
        };
        Some(lanes as u64 * self.elements_per_vector as u64 * self.vectors_per_thread as u64)
    }
}

#[cfg(test)]
mod tests {
    extern crate std;

    use super::*;
    use std::format;

    #[test]
    fn entry_names_are_unique_and_say_what_the_entry_is() {
        for (i, entry) in ENTRIES.iter().enumerate() {
            let (elements, vectors) = (entry.elements_per_vector, entry.vectors_per_thread);
            let name = match entry.strategy {
                Strategy::Warp => format!("{KERNEL}_warp_e{elements}x{vectors}"),
                Strategy::Cta => format!("{KERNEL}_cta_e{elements}x{vectors}"),
                Strategy::CtaTwoPass => format!("{KERNEL}_two_pass_e{elements}"),
            };
            assert_eq!(entry.name, name);
            assert!(ENTRIES[..i].iter().all(|other| other.name != entry.name), "{} twice", entry.name);
            assert_eq!(Entry::find(entry.strategy, elements, vectors), Some(entry));
        }
    }

    #[test]
    fn every_vector_is_a_power_of_two_and_only_two_pass_entries_take_any_row() {
        for entry in ENTRIES {
            assert!(entry.elements_per_vector.is_power_of_two(), "{}", entry.name);
            assert!(entry.vectors_per_thread.is_power_of_two(), "{}", entry.name);
            assert_eq!(entry.max_hidden(MAX_CTA_THREADS).is_none(), entry.strategy == Strategy::CtaTwoPass);
        }
        // Any pointer and any valid row finds an entry.
        assert!(Entry::find(Strategy::CtaTwoPass, 1, 1).is_some());
    }

    #[test]
    fn longest_rows() {
        let max_hidden = |strategy, threads| Entry::find(strategy, 8, 2).and_then(|entry| entry.max_hidden(threads));
        assert_eq!(max_hidden(Strategy::Warp, 256), Some(32 * 8 * 2));
        assert_eq!(max_hidden(Strategy::Cta, 256), Some(256 * 8 * 2));
        assert_eq!(Entry::find(Strategy::CtaTwoPass, 8, 2), None);
    }
}
