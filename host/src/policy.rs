//! Which kernel entry runs, with how many threads per CTA, and what caches do. None of it ever shows in the bits.

use crate::PlanError;
use ptq_spec::per_token::{Caching, Entry, LANES_PER_WARP, MAX_CTA_THREADS, MAX_WARP_ENTRY_THREADS, Strategy};
use ptq_spec::{ComputeCapability, Element, Kernel, Target};

/// A kernel entry, and how it is launched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Plan {
    /// One of [`Kernel::row_entries`].
    pub entry: &'static Entry,
    /// Threads per CTA: a multiple of 32, at most [`Strategy::max_threads`].
    pub threads: u32,
    /// What caches do with the input; ignored by [`Strategy::CtaTwoPass`].
    pub caching: Caching,
}

/// What a plan depends on.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Call {
    /// The operation, which has the entry.
    pub kernel: Kernel,
    pub element: Element,
    pub rows: u64,
    /// Elements per row.
    pub hidden: u64,
    /// Address of `x`.
    pub x: u64,
    /// Address of `q`.
    pub q: u64,
    /// Elements from the start of one row of `x` to the next.
    pub x_stride: u64,
    /// The same for `q`.
    pub q_stride: u64,
}

/// One line of the policy.
struct Rule {
    /// Lowest compute capability of the target.
    since: ComputeCapability,
    /// Most bytes of `x` in a call.
    input_bytes: u64,
    /// Bytes of one vector of `x`, at most, in entries that no share is for: of warps, of two passes.
    vector_bytes: u64,
    /// Elements of the longest row that a warp takes.
    warp_hidden: u64,
    /// What a thread of a CTA takes of longer rows: the first that suffices.
    shares: &'static [Share],
    caching: Caching,
}

/// What a thread of a CTA takes of a row.
struct Share {
    /// Bytes of one vector of `x`, at most; the target loads it in parts of its own width.
    vector_bytes: u64,
    /// Bytes of `x` in all, or the next larger share that there is an entry for.
    bytes: u64,
    /// Most threads.
    threads: u32,
}

/// One share, whatever the number of threads.
const fn share(vector_bytes: u64, bytes: u64) -> Share {
    Share { vector_bytes, bytes, threads: MAX_CTA_THREADS }
}

/// As [`share`], up to so many threads.
const fn share_up_to(threads: u32, vector_bytes: u64, bytes: u64) -> Share {
    Share { vector_bytes, bytes, threads }
}

/// The policy, newest target first.
///
/// The lines of 9.0 are from benches/record/2026-11-29-h200-sweep.csv (H200, fast mode, cold L2): `cargo xtask tune` says how
/// far they are from the fastest plans. Few rows want threads, many want loads in flight, and of threads at most 512 a row.
/// Not to allocate takes 0.97 of the time at 39 and 128 rows, and 1.10 at 65536 x 4096; the sweep has either for the plan of every shape.
const RULES: &[Rule] = &[
    // Not run: 32 bytes, as measured on 9.0, in one vector.
    Rule {
        since: ComputeCapability(10, 0),
        input_bytes: u64::MAX,
        vector_bytes: 32,
        warp_hidden: 512,
        shares: &[share(32, 32)],
        caching: Caching::Ordinary,
    },
    Rule {
        since: ComputeCapability(9, 0),
        input_bytes: 3 << 20,
        vector_bytes: 16,
        warp_hidden: 0,
        shares: &[share_up_to(384, 16, 16), share(16, 32)],
        caching: Caching::NoAllocate,
    },
    Rule {
        since: ComputeCapability(9, 0),
        input_bytes: u64::MAX,
        vector_bytes: 16,
        warp_hidden: 512,
        shares: &[share_up_to(512, 16, 32), share(32, 64)],
        caching: Caching::Ordinary,
    },
    // Not run: what was measured on 9.0 for many rows of at most 512 threads.
    Rule {
        since: ComputeCapability(0, 0),
        input_bytes: u64::MAX,
        vector_bytes: 16,
        warp_hidden: 512,
        shares: &[share(16, 32)],
        caching: Caching::Ordinary,
    },
];

/// Vectors that a thread may hold, fewest first.
const VECTORS: [u32; 4] = [1, 2, 4, 8];

/// The plan of the policy.
pub(crate) fn plan(target: &Target, call: Call) -> Plan {
    let bytes = call.rows.saturating_mul(call.hidden).saturating_mul(call.element.bytes() as u64);
    let holds = |rule: &&Rule| target.capability >= rule.since && bytes <= rule.input_bytes;
    let rule = RULES.iter().find(holds).expect("the last rule is for every target and call");
    let widths = |vector_bytes| widths(vector_bytes, target, call);
    widths(rule.vector_bytes)
        .find_map(|width| by_warp(rule, call, width))
        .or_else(|| {
            let of = |share: &Share| widths(share.vector_bytes).find_map(|width| by_share(rule, share, call, width));
            rule.shares.iter().find_map(of)
        })
        // The extended operation lacks the entries of large shares.
        .or_else(|| widths(rule.vector_bytes).find_map(|width| by_cta(rule, call, width, 1)))
        .or_else(|| {
            let find = |width| call.kernel.row_entry(Strategy::CtaTwoPass, width, 1);
            let entry = widths(rule.vector_bytes).find_map(find)?;
            Some(Plan::new(entry, covering_threads(entry, call.hidden)))
        })
        .expect("the two-pass entry with vectors of one element fits every call")
}

/// Each row by a warp, if it is for one.
fn by_warp(rule: &Rule, call: Call, width: u32) -> Option<Plan> {
    if call.hidden > rule.warp_hidden {
        return None;
    }
    let enough = call.hidden.div_ceil(u64::from(LANES_PER_WARP * width));
    let mut vectors = VECTORS.into_iter().filter(|&vectors| u64::from(vectors) >= enough);
    let entry = vectors.find_map(|vectors| call.kernel.row_entry(Strategy::Warp, width, vectors))?;
    Some(Plan { entry, threads: MAX_WARP_ENTRY_THREADS, caching: rule.caching })
}

/// Each row by a CTA whose threads take that share of it, if it suffices: where there is no such entry, the next larger share.
fn by_share(rule: &Rule, share: &Share, call: Call, width: u32) -> Option<Plan> {
    let vectors = share.bytes / (u64::from(width) * call.element.bytes() as u64);
    by_cta(rule, call, width, vectors as u32).filter(|plan| plan.threads <= share.threads)
}

/// Each row by a CTA whose threads take the fewest vectors, from so many on, that there is an entry for and suffice.
fn by_cta(rule: &Rule, call: Call, width: u32, at_least: u32) -> Option<Plan> {
    VECTORS.into_iter().filter(|&vectors| vectors >= at_least).find_map(|vectors| {
        let entry = call.kernel.row_entry(Strategy::Cta, width, vectors)?;
        let threads = covering_threads(entry, call.hidden);
        (entry.max_hidden(threads)? >= call.hidden).then_some(Plan { entry, threads, caching: rule.caching })
    })
}

/// Elements of the vectors of at most so many bytes that the call's rows consist of, widest first.
fn widths(vector_bytes: u64, target: &Target, call: Call) -> impl Iterator<Item = u32> {
    let suits = move |&width: &u32| {
        u64::from(width) * call.element.bytes() as u64 <= vector_bytes
            && check_vectors("any", width, target, call).is_ok()
    };
    [16, 8, 4, 1].into_iter().filter(suits)
}

/// Checks that rows consist of vectors of so many elements, and that no access to them is misaligned; `entry` is for the error.
fn check_vectors(entry: &'static str, width: u32, target: &Target, call: Call) -> Result<(), PlanError> {
    let width = u64::from(width);
    if !is_multiple(call.hidden, width) {
        return Err(PlanError::VectorLength { entry, expected: width, actual: call.hidden });
    }
    // A vector is loaded by accesses of at most the target's width and stored by one. Every row starts as aligned as
    // the first if the stride is a multiple of that too.
    let bytes = call.element.bytes() as u64;
    let load = (width * bytes).min(target.vector_bytes as u64);
    for (operand, expected, actual) in [("x", load, call.x), ("q", width, call.q)] {
        if !is_multiple(actual, expected) {
            return Err(PlanError::VectorAlignment { entry, operand, expected, actual });
        }
    }
    // The product fits: strides are checked in bytes of the widest element.
    for (operand, expected, actual) in [("x", load, call.x_stride * bytes), ("q", width, call.q_stride)] {
        if !is_multiple(actual, expected) {
            return Err(PlanError::VectorStride { entry, operand, expected, actual });
        }
    }
    Ok(())
}

/// Threads, in whole warps, with which a CTA covers a row at once; at most those of a CTA.
fn covering_threads(entry: &Entry, hidden: u64) -> u32 {
    let per_thread = u64::from(entry.elements_per_vector) * u64::from(entry.vectors_per_thread);
    let threads = hidden.div_ceil(per_thread).min(u64::from(MAX_CTA_THREADS));
    (threads as u32).next_multiple_of(LANES_PER_WARP)
}

/// Whether `value` is a multiple of a power of two, which widths are: without a division, of which a call would take dozens.
fn is_multiple(value: u64, power_of_two: u64) -> bool {
    debug_assert!(power_of_two.is_power_of_two());
    value & (power_of_two - 1) == 0
}

impl Plan {
    /// That entry with that many threads; caches do what they ordinarily do.
    pub const fn new(entry: &'static Entry, threads: u32) -> Self {
        Self { entry, threads, caching: Caching::Ordinary }
    }

    /// Checks a plan from outside: what does not depend on a call.
    pub(crate) fn check_entry(self) -> Result<(), PlanError> {
        let Self { entry, threads, .. } = self;
        if !Kernel::ALL.iter().any(|kernel| kernel.row_entries().contains(entry)) {
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
        let Self { entry, threads, .. } = self;
        if !call.kernel.row_entries().contains(entry) {
            return Err(PlanError::OtherKernel { entry: entry.name, expected: call.kernel.name() });
        }
        if let Some(expected) = entry.max_hidden(threads).filter(|&most| call.hidden > most) {
            return Err(PlanError::RowTooLong { entry: entry.name, threads, expected, actual: call.hidden });
        }
        check_vectors(entry.name, entry.elements_per_vector, target, call)
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
    use std::cmp::Reverse;

    const ALIGNED: u64 = 1 << 20;

    /// Rows that are too many for any rule of few.
    const MANY: u64 = 1 << 40;

    /// Of the plain operation.
    fn call(element: Element, hidden: u64) -> Call {
        let (x, q) = (ALIGNED, 2 * ALIGNED);
        Call { kernel: Kernel::PerToken, element, rows: MANY, hidden, x, q, x_stride: hidden, q_stride: hidden }
    }

    fn few(element: Element, hidden: u64) -> Call {
        Call { rows: 1, ..call(element, hidden) }
    }

    /// Of the extended operation, with other strides.
    fn strided(element: Element, hidden: u64, x_stride: u64, q_stride: u64) -> Call {
        Call { kernel: Kernel::PerTokenExtended, x_stride, q_stride, ..call(element, hidden) }
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
    fn rules_are_newest_first_and_some_rule_always_holds() {
        let order = |rule: &Rule| (Reverse(rule.since), rule.input_bytes);
        assert!(RULES.is_sorted_by(|a, b| order(a) < order(b)));
        for target in TARGETS {
            let mut of_target = RULES.iter().filter(|rule| target.capability >= rule.since);
            assert!(of_target.any(|rule| rule.input_bytes == u64::MAX), "{target}");
        }
        assert!(RULES.iter().all(|rule| rule.shares.last().is_some_and(|share| share.threads == MAX_CTA_THREADS)));
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
                    for call in [call(element, hidden), few(element, hidden)] {
                        check(plan(target, call), target, call).unwrap();
                        let call = Call { kernel: Kernel::PerTokenExtended, ..call };
                        check(plan(target, call), target, call).unwrap();
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
                            for call in [call(element, hidden), few(element, hidden)] {
                                let call = Call { x: ALIGNED + x, q: 2 * ALIGNED + q, ..call };
                                check(plan(target, call), target, call).unwrap();
                            }
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn every_stride_gets_a_plan_that_fits() {
        for target in TARGETS {
            for element in Element::ALL {
                for hidden in [4, 8, 16, 1368, 4096, 100_000] {
                    for (x_gap, q_gap) in (0..40).flat_map(|x_gap| (0..20).map(move |q_gap| (x_gap, q_gap))) {
                        let many = strided(element, hidden, hidden + x_gap, hidden + q_gap);
                        for call in [many, Call { rows: 1, ..many }] {
                            check(plan(target, call), target, call).unwrap();
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn vectors_are_as_wide_as_strides_allow() {
        let chosen = |element, x_stride, q_stride| plan(sm_90(), strided(element, 4096, x_stride, q_stride)).entry.name;
        assert_eq!(chosen(Element::Bf16, 4096, 4096), "per_token_extended_cta_e8x2");
        assert_eq!(chosen(Element::Bf16, 4104, 4112), "per_token_extended_cta_e8x2");
        assert_eq!(
            chosen(Element::Bf16, 4100, 4096),
            "per_token_extended_cta_e4x4",
            "x 8 bytes off in every other row"
        );
        assert_eq!(
            chosen(Element::Bf16, 4096, 4100),
            "per_token_extended_cta_e4x4",
            "q 4 bytes off in every other row"
        );
        assert_eq!(chosen(Element::Bf16, 4098, 4096), "per_token_extended_two_pass_e1");
        assert_eq!(chosen(Element::F32, 4097, 4096), "per_token_extended_two_pass_e1");
        assert_eq!(chosen(Element::F32, 4100, 4100), "per_token_extended_cta_e4x2");
        let long = plan(sm_90(), strided(Element::Bf16, 20000, 20008, 20000)).entry.name;
        assert_eq!(long, "per_token_extended_two_pass_e8");
        let short = plan(sm_90(), strided(Element::Bf16, 512, 1024, 512)).entry.name;
        assert_eq!(short, "per_token_extended_warp_e8x2");
    }

    #[test]
    fn vectors_are_as_wide_as_row_and_addresses_allow() {
        let width = |element, hidden, x, q| {
            let call = Call { x: ALIGNED + x, q: 2 * ALIGNED + q, ..call(element, hidden) };
            plan(sm_90(), call).entry.elements_per_vector
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
        assert_eq!(plan(sm_100f, call(Element::Bf16, 4096)).entry.elements_per_vector, 16);
        assert_eq!(plan(sm_100f, call(Element::F32, 4096)).entry.elements_per_vector, 8);
    }

    #[test]
    fn many_rows_get_loads_in_flight() {
        let chosen = |element, hidden| {
            let plan = plan(sm_90(), call(element, hidden));
            assert_eq!(plan.caching, Caching::Ordinary);
            (plan.entry.name, plan.threads)
        };
        assert_eq!(chosen(Element::Bf16, 4), ("per_token_warp_e4x1", 256));
        assert_eq!(chosen(Element::Bf16, 512), ("per_token_warp_e8x2", 256));
        assert_eq!(chosen(Element::F32, 512), ("per_token_warp_e4x4", 256));
        assert_eq!(chosen(Element::F16, 768), ("per_token_cta_e8x2", 64));
        assert_eq!(chosen(Element::Bf16, 1076), ("per_token_cta_e4x4", 96));
        assert_eq!(chosen(Element::Bf16, 4096), ("per_token_cta_e8x2", 256));
        assert_eq!(chosen(Element::F32, 4096), ("per_token_cta_e4x2", 512));
        assert_eq!(chosen(Element::F32, 7168), ("per_token_cta_e8x2", 448), "512 threads at most with 32 bytes each");
        assert_eq!(chosen(Element::Bf16, 16384), ("per_token_cta_e16x2", 512));
        assert_eq!(chosen(Element::Bf16, 16392), ("per_token_cta_e8x4", 544), "no multiple of 16");
        assert_eq!(chosen(Element::Bf16, 20000), ("per_token_cta_e16x2", 640));
        assert_eq!(chosen(Element::Bf16, 32768), ("per_token_cta_e16x2", 1024));
        assert_eq!(chosen(Element::Bf16, 32776), ("per_token_two_pass_e8", 1024));
    }

    #[test]
    fn few_rows_get_threads() {
        let chosen = |element, hidden| {
            let plan = plan(sm_90(), few(element, hidden));
            (plan.entry.name, plan.threads)
        };
        assert_eq!(chosen(Element::Bf16, 4), ("per_token_cta_e4x2", 32));
        assert_eq!(chosen(Element::Bf16, 512), ("per_token_cta_e8x1", 64));
        assert_eq!(chosen(Element::F32, 1536), ("per_token_cta_e4x1", 384));
        assert_eq!(chosen(Element::F32, 2048), ("per_token_cta_e4x2", 256), "384 threads at most with 16 bytes each");
        assert_eq!(chosen(Element::Bf16, 1076), ("per_token_cta_e4x2", 160));
        assert_eq!(chosen(Element::F16, 4096), ("per_token_cta_e8x2", 256));
        assert_eq!(chosen(Element::Bf16, 16384), ("per_token_cta_e8x2", 1024));
        assert_eq!(chosen(Element::Bf16, 20000), ("per_token_cta_e8x4", 640), "two vectors would take 1250 threads");
    }

    /// It has fewer entries: where one lacks, the vectors stay as wide and become more.
    #[test]
    fn the_extended_operation_keeps_wide_vectors() {
        let chosen = |target, call| {
            let call = Call { kernel: Kernel::PerTokenExtended, ..call };
            let plan = plan(Target::by_name(target).unwrap(), call);
            (plan.entry.name, plan.threads)
        };
        assert_eq!(chosen("sm_90", few(Element::Bf16, 2048)), ("per_token_extended_cta_e8x2", 128));
        assert_eq!(chosen("sm_90", few(Element::F32, 1024)), ("per_token_extended_cta_e4x2", 128));
        assert_eq!(chosen("sm_90", call(Element::Bf16, 128)), ("per_token_extended_warp_e8x2", 256));
        assert_eq!(chosen("sm_90", call(Element::F32, 512)), ("per_token_extended_cta_e4x2", 64));
        assert_eq!(chosen("sm_100f", few(Element::F32, 4096)), ("per_token_extended_cta_e8x2", 256));
    }

    #[test]
    fn caches_keep_what_is_more_than_3_mib() {
        let caching = |element, rows, hidden| plan(sm_90(), Call { rows, ..call(element, hidden) }).caching;
        assert_eq!(caching(Element::Bf16, 1, 4096), Caching::NoAllocate);
        assert_eq!(caching(Element::F32, 512, 1536), Caching::NoAllocate);
        assert_eq!(caching(Element::F32, 513, 1536), Caching::Ordinary);
        assert_eq!(caching(Element::Bf16, 1024, 1536), Caching::NoAllocate);
        assert_eq!(caching(Element::Bf16, 1, 65536), Caching::Ordinary, "read twice");
        assert_eq!(caching(Element::Bf16, u64::MAX, 4096), Caching::Ordinary, "no overflow");
        let sm_89 = Target::by_name("sm_89").unwrap();
        assert_eq!(plan(sm_89, few(Element::Bf16, 4096)).caching, Caching::Ordinary, "not measured");
    }

    #[test]
    fn rows_per_cta() {
        let plan = |strategy, threads| Plan::new(entry(strategy, 4, 1), threads).rows_per_cta();
        assert_eq!(plan(Strategy::Warp, 256), 8);
        assert_eq!(plan(Strategy::Cta, 256), 1);
        assert_eq!(plan(Strategy::CtaTwoPass, 256), 1);
    }

    #[test]
    fn forced_plan_is_checked() {
        let warp = entry(Strategy::Warp, 8, 2);
        let check = |entry, threads, call| check(Plan::new(entry, threads), sm_90(), call);
        let fits = call(Element::Bf16, 512);
        assert_eq!(check(warp, 128, fits), Ok(()));
        for actual in [0, 1, 33, 288, 1024] {
            let expected = PlanError::Threads { entry: warp.name, multiple: 32, most: 256, actual };
            assert_eq!(check(warp, actual, fits), Err(expected));
        }
        let long = call(Element::Bf16, 520);
        assert_eq!(
            check(warp, 128, long),
            Err(PlanError::RowTooLong { entry: warp.name, threads: 128, expected: 512, actual: 520 })
        );
        let odd = call(Element::Bf16, 508);
        assert_eq!(check(warp, 128, odd), Err(PlanError::VectorLength { entry: warp.name, expected: 8, actual: 508 }));
        let x = Call { x: ALIGNED + 8, ..fits };
        let expected = PlanError::VectorAlignment { entry: warp.name, operand: "x", expected: 16, actual: x.x };
        assert_eq!(check(warp, 128, x), Err(expected));
        let q = Call { q: ALIGNED + 4, ..fits };
        let expected = PlanError::VectorAlignment { entry: warp.name, operand: "q", expected: 8, actual: q.q };
        assert_eq!(check(warp, 128, q), Err(expected));
        let extended = strided(Element::Bf16, 512, 516, 520);
        let other = PlanError::OtherKernel { entry: warp.name, expected: "per_token_extended" };
        assert_eq!(check(warp, 128, extended), Err(other));
        let warp = &ptq_spec::per_token_extended::ENTRIES[1];
        let other = PlanError::OtherKernel { entry: warp.name, expected: "per_token" };
        assert_eq!(check(warp, 128, fits), Err(other));
        let stride =
            |operand, expected, actual| PlanError::VectorStride { entry: warp.name, operand, expected, actual };
        assert_eq!(check(warp, 128, extended), Err(stride("x", 16, 1032)));
        assert_eq!(check(warp, 128, strided(Element::Bf16, 512, 520, 516)), Err(stride("q", 8, 516)));
        assert_eq!(check(warp, 128, strided(Element::Bf16, 512, 520, 520)), Ok(()));
    }

    #[test]
    fn entry_from_elsewhere_is_refused() {
        // The right name with other numbers would have the kernel leave elements out.
        static FORGED: Entry = Entry { vectors_per_thread: 8, ..ptq_spec::per_token::ENTRIES[0] };
        let forged = Plan::new(&FORGED, 32);
        assert_eq!(forged.check_entry(), Err(PlanError::UnknownEntry { entry: FORGED.name }));
    }
}
