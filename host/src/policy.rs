//! Which kernel entry runs, with how many threads per CTA. Neither ever shows in the bits.

use crate::PlanError;
use ptq_spec::per_token::{ENTRIES, Entry, LANES_PER_WARP, MAX_CTA_THREADS, Strategy};
use ptq_spec::{ComputeCapability, Element, Target};
use std::cmp::Reverse;

/// A kernel entry and the number of threads per CTA.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Plan {
    /// One of [`ENTRIES`].
    pub entry: &'static Entry,
    /// Threads per CTA: a multiple of 32, at most [`Strategy::max_threads`].
    pub threads: u32,
}

/// What a plan depends on.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Call {
    pub element: Element,
    pub rows: u64,
    /// Elements per row.
    pub hidden: u64,
    /// Address of `x`.
    pub x: u64,
    /// Address of `q`.
    pub q: u64,
}

/// One line of the policy.
struct Rule {
    /// Lowest compute capability of the target.
    since: ComputeCapability,
    /// Fewest rows per multiprocessor.
    rows_per_sm: u64,
    /// Longest row, elements.
    hidden: u64,
    /// Bytes of `x` that a thread loads at once, at most.
    vector_bytes: u64,
    /// Who works on a row; a row too long for it falls to [`Strategy::Cta`], then to [`Strategy::CtaTwoPass`].
    strategy: Strategy,
    /// Warp entries: threads per CTA. CTA entries: threads that a CTA stays within as long as more vectors per thread
    /// can do so.
    threads: u32,
}

/// Rows of any length.
const ANY: u64 = u64::MAX;

/// Few rows leave multiprocessors idle, so a row gets many threads; many rows keep them busy, so a thread gets much work.
const BUSY: u64 = 8;

const SM_100: ComputeCapability = ComputeCapability(10, 0);
const OLDER: ComputeCapability = ComputeCapability(0, 0);

/// The policy, newest target first; the first line that holds decides, and the last always holds. None is measured yet.
const RULES: &[Rule] = &[
    Rule { since: SM_100, rows_per_sm: BUSY, hidden: 1024, vector_bytes: 32, strategy: Strategy::Warp, threads: 256 },
    Rule { since: SM_100, rows_per_sm: BUSY, hidden: ANY, vector_bytes: 32, strategy: Strategy::Cta, threads: 256 },
    Rule { since: SM_100, rows_per_sm: 0, hidden: ANY, vector_bytes: 32, strategy: Strategy::Cta, threads: 512 },
    Rule { since: OLDER, rows_per_sm: BUSY, hidden: 1024, vector_bytes: 16, strategy: Strategy::Warp, threads: 256 },
    Rule { since: OLDER, rows_per_sm: BUSY, hidden: ANY, vector_bytes: 16, strategy: Strategy::Cta, threads: 256 },
    Rule { since: OLDER, rows_per_sm: 0, hidden: ANY, vector_bytes: 16, strategy: Strategy::Cta, threads: 512 },
];

/// The plan of the policy.
pub(crate) fn plan(target: &Target, call: Call, sm_count: u32) -> Plan {
    let holds = |r: &&Rule| {
        target.capability >= r.since
            && call.rows >= r.rows_per_sm.saturating_mul(u64::from(sm_count))
            && call.hidden <= r.hidden
    };
    let rule = RULES.iter().find(holds).unwrap_or(&RULES[RULES.len() - 1]);
    [rule.strategy, Strategy::Cta, Strategy::CtaTwoPass]
        .into_iter()
        .find_map(|strategy| best(rule, strategy, target, call))
        .expect("the two-pass entry with vectors of one element fits every call")
}

/// The best plan of one strategy, if any fits.
fn best(rule: &Rule, strategy: Strategy, target: &Target, call: Call) -> Option<Plan> {
    let plans = ENTRIES.iter().filter(|e| e.strategy == strategy).map(|entry| {
        let threads = match strategy {
            Strategy::Warp => rule.threads,
            Strategy::Cta | Strategy::CtaTwoPass => covering_threads(entry, call.hidden),
        };
        Plan { entry, threads }
    });
    let wanted = |p: &Plan| u64::from(p.entry.elements_per_vector) * call.element.bytes() as u64 <= rule.vector_bytes;
    // The widest vectors; among those, the fewest per thread that keep the CTA within the rule's threads; where none
    // does, the most per thread, which comes nearest.
    plans.filter(wanted).filter(|p| p.check_call(target, call).is_ok()).min_by_key(|p| {
        let vectors = i64::from(p.entry.vectors_per_thread);
        let excess = p.threads > rule.threads;
        (Reverse(p.entry.elements_per_vector), excess, if excess { -vectors } else { vectors })
    })
}

/// Threads, in whole warps, with which a CTA covers a row at once; at most those of a CTA.
fn covering_threads(entry: &Entry, hidden: u64) -> u32 {
    let per_thread = u64::from(entry.elements_per_vector) * u64::from(entry.vectors_per_thread);
    let threads = hidden.div_ceil(per_thread).min(u64::from(MAX_CTA_THREADS));
    (threads as u32).next_multiple_of(LANES_PER_WARP)
}

impl Plan {
    /// Checks a plan from outside: what does not depend on a call.
    pub(crate) fn check_entry(self) -> Result<(), PlanError> {
        let Self { entry, threads } = self;
        if !ENTRIES.contains(entry) {
            return Err(PlanError::UnknownEntry { entry: entry.name });
        }
        let most = entry.strategy.max_threads();
        if threads == 0 || threads > most || !threads.is_multiple_of(LANES_PER_WARP) {
            return Err(PlanError::Threads { entry: entry.name, multiple: LANES_PER_WARP, most, actual: threads });
        }
        Ok(())
    }

    /// Checks that a plan whose entry and threads are sound quantizes every element of the call and makes no misaligned
    /// access.
    pub(crate) fn check_call(self, target: &Target, call: Call) -> Result<(), PlanError> {
        let Self { entry, threads } = self;
        if let Some(expected) = entry.max_hidden(threads).filter(|&most| call.hidden > most) {
            return Err(PlanError::RowTooLong { entry: entry.name, threads, expected, actual: call.hidden });
        }
        let width = u64::from(entry.elements_per_vector);
        if !call.hidden.is_multiple_of(width) {
            return Err(PlanError::VectorLength { entry: entry.name, expected: width, actual: call.hidden });
        }
        // A vector is loaded by accesses of at most the target's width and stored by one. Every row starts as aligned as
        // the first, because the width divides `hidden`.
        let load = (width * call.element.bytes() as u64).min(target.vector_bytes as u64);
        for (operand, expected, actual) in [("x", load, call.x), ("q", width, call.q)] {
            if !actual.is_multiple_of(expected) {
                return Err(PlanError::VectorAlignment { entry: entry.name, operand, expected, actual });
            }
        }
        Ok(())
    }

    /// Rows that one CTA works on.
    pub fn rows_per_cta(self) -> u32 {
        match self.entry.strategy {
            Strategy::Warp => self.threads / LANES_PER_WARP,
            Strategy::Cta | Strategy::CtaTwoPass => 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ptq_spec::TARGETS;

    const ALIGNED: u64 = 1 << 20;

    fn call(element: Element, rows: u64, hidden: u64) -> Call {
        Call { element, rows, hidden, x: ALIGNED, q: 2 * ALIGNED }
    }

    fn sm_90() -> &'static Target {
        Target::by_name("sm_90").unwrap()
    }

    fn entry(strategy: Strategy, elements: u32, vectors: u32) -> &'static Entry {
        Entry::find(strategy, elements, vectors).unwrap()
    }

    fn check(plan: Plan, target: &Target, call: Call) -> Result<(), PlanError> {
        plan.check_entry().and_then(|()| plan.check_call(target, call))
    }

    #[test]
    fn last_rule_always_holds() {
        let last = &RULES[RULES.len() - 1];
        assert_eq!((last.since, last.rows_per_sm, last.hidden), (OLDER, 0, ANY));
        assert!(RULES.windows(2).all(|w| w[0].since >= w[1].since), "newest first");
    }

    #[test]
    fn every_rule_decides_some_call() {
        // A rule that an earlier one always shadows is dead.
        for (i, rule) in RULES.iter().enumerate() {
            let shadowed = RULES[..i].iter().any(|earlier| {
                earlier.since <= rule.since && earlier.rows_per_sm <= rule.rows_per_sm && earlier.hidden >= rule.hidden
            });
            assert!(!shadowed, "rule {i}");
        }
    }

    #[test]
    fn every_call_gets_a_plan_that_fits() {
        let hiddens = (4..=2048).step_by(4).chain([
            3072,
            4096,
            4100,
            7168,
            7172,
            8192,
            16384,
            20000,
            32764,
            32768,
            32772,
            65536,
            100_000,
            1 << 32,
            1 << 60,
        ]);
        for hidden in hiddens {
            for target in TARGETS {
                for element in Element::ALL {
                    for rows in [1, 39, 2112, 7807, 1 << 33] {
                        for sm_count in [0, 1, 132] {
                            let call = call(element, rows, hidden);
                            check(plan(target, call, sm_count), target, call).unwrap();
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn every_alignment_gets_a_plan_that_fits() {
        for target in TARGETS {
            for element in Element::ALL {
                for hidden in [4, 8, 16, 1368, 4096, 100_000] {
                    for x in (0..64).step_by(element.bytes()) {
                        for q in 0..32 {
                            let call = Call { element, rows: 7807, hidden, x: ALIGNED + x, q: 2 * ALIGNED + q };
                            check(plan(target, call, 132), target, call).unwrap();
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn vectors_are_as_wide_as_row_and_addresses_allow() {
        let width = |element, hidden, x, q| {
            let call = Call { element, rows: 1, hidden, x: ALIGNED + x, q: 2 * ALIGNED + q };
            plan(sm_90(), call, 132).entry.elements_per_vector
        };
        // Bytes of one load are at most 16 on this target.
        assert_eq!(width(Element::Bf16, 4096, 0, 0), 8);
        assert_eq!(width(Element::F16, 1076, 0, 0), 4, "1076 is no multiple of 8");
        assert_eq!(width(Element::F32, 4096, 0, 0), 4);
        assert_eq!(width(Element::Bf16, 4096, 8, 0), 4, "x aligned to 8 bytes");
        assert_eq!(width(Element::Bf16, 4096, 0, 4), 4, "q aligned to 4 bytes");
        assert_eq!(width(Element::Bf16, 4096, 2, 0), 1, "x aligned to its element");
        assert_eq!(width(Element::Bf16, 4096, 0, 1), 1, "q aligned to its element");
        assert_eq!(width(Element::F32, 4096, 4, 0), 1, "x aligned to its element");
        let sm_100f = Target::by_name("sm_100f").unwrap();
        assert_eq!(plan(sm_100f, call(Element::Bf16, 1, 4096), 148).entry.elements_per_vector, 16);
        assert_eq!(plan(sm_100f, call(Element::F32, 1, 4096), 148).entry.elements_per_vector, 8);
    }

    #[test]
    fn strategy_follows_rows_and_length() {
        let chosen = |rows, hidden| {
            let plan = plan(sm_90(), call(Element::Bf16, rows, hidden), 132);
            (plan.entry.name, plan.threads)
        };
        assert_eq!(chosen(7807, 512), ("per_token_warp_e8x2", 256));
        assert_eq!(chosen(1, 512), ("per_token_cta_e8x1", 64));
        assert_eq!(chosen(7807, 4096), ("per_token_cta_e8x2", 256));
        assert_eq!(chosen(1, 4096), ("per_token_cta_e8x1", 512));
        assert_eq!(chosen(7807, 7168), ("per_token_cta_e8x4", 224));
        assert_eq!(chosen(7807, 20000), ("per_token_cta_e8x4", 640), "no entry keeps 256 threads");
        assert_eq!(chosen(7807, 32768), ("per_token_cta_e8x4", 1024));
        assert_eq!(chosen(7807, 32776), ("per_token_two_pass_e8", 1024));
        assert_eq!(chosen(1, 4), ("per_token_cta_e4x1", 32));
    }

    #[test]
    fn rows_per_cta() {
        let plan = |strategy, threads| Plan { entry: entry(strategy, 4, 1), threads }.rows_per_cta();
        assert_eq!(plan(Strategy::Warp, 256), 8);
        assert_eq!(plan(Strategy::Cta, 256), 1);
        assert_eq!(plan(Strategy::CtaTwoPass, 256), 1);
    }

    #[test]
    fn forced_plan_is_checked() {
        let warp = entry(Strategy::Warp, 8, 2);
        let check = |entry, threads, call| check(Plan { entry, threads }, sm_90(), call);
        let fits = call(Element::Bf16, 1, 512);
        assert_eq!(check(warp, 128, fits), Ok(()));
        for actual in [0, 1, 33, 288, 1024] {
            let expected = PlanError::Threads { entry: warp.name, multiple: 32, most: 256, actual };
            assert_eq!(check(warp, actual, fits), Err(expected));
        }
        let long = call(Element::Bf16, 1, 520);
        assert_eq!(
            check(warp, 128, long),
            Err(PlanError::RowTooLong { entry: warp.name, threads: 128, expected: 512, actual: 520 })
        );
        let odd = call(Element::Bf16, 1, 508);
        assert_eq!(check(warp, 128, odd), Err(PlanError::VectorLength { entry: warp.name, expected: 8, actual: 508 }));
        let x = Call { x: ALIGNED + 8, ..fits };
        let expected = PlanError::VectorAlignment { entry: warp.name, operand: "x", expected: 16, actual: x.x };
        assert_eq!(check(warp, 128, x), Err(expected));
        let q = Call { q: ALIGNED + 4, ..fits };
        let expected = PlanError::VectorAlignment { entry: warp.name, operand: "q", expected: 8, actual: q.q };
        assert_eq!(check(warp, 128, q), Err(expected));
    }

    #[test]
    fn entry_from_elsewhere_is_refused() {
        // The right name with other numbers would have the kernel leave elements out.
        static FORGED: Entry = Entry { vectors_per_thread: 8, ..ENTRIES[0] };
        let forged = Plan { entry: &FORGED, threads: 32 };
        assert_eq!(forged.check_entry(), Err(PlanError::UnknownEntry { entry: FORGED.name }));
    }
}
