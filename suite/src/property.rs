//! Calls that nobody thought of: shapes, types, options, alignments and values by chance, shrunk where one fails.

use crate::cases::{case, strided};
use crate::sample::{Random, Sample, with_element};
use crate::{Budget, Case, Failure, Tensor};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use proptest::test_runner::{Config, RngSeed, TestCaseError, TestRunner};
use ptq_cpu::Params;
use ptq_spec::per_token::{DEFAULT_SM_COUNT, HIDDEN_MULTIPLE};
use ptq_spec::{Dispatch, Element, Extended, MathMode, Options, ZeroRows};
use std::fmt;
use std::sync::Arc;

/// Where the calls start from, unless `PROPTEST_RNG_SEED` says otherwise: every run makes the same ones.
const SEED: u64 = 448;

/// The values of a row, by turns. The first is the simplest.
#[derive(Debug, Clone, Copy)]
enum Fill {
    Zeros,
    Ordinary,
    AnyBits,
    Subnormal,
    Tiny,
    Huge,
    AnyExponent,
}

const FILLS: [Fill; 7] =
    [Fill::Zeros, Fill::Ordinary, Fill::AnyBits, Fill::Subnormal, Fill::Tiny, Fill::Huge, Fill::AnyExponent];

/// One call; what a failure prints.
#[derive(Debug, Clone)]
struct Call {
    element: Element,
    math: MathMode,
    options: Options,
    sm_count: u32,
    rows: usize,
    rows_out: usize,
    hidden: usize,
    /// In elements.
    x_offset: usize,
    /// In bytes.
    q_offset: usize,
    /// Elements between rows of `x` and of `q`.
    gaps: (usize, usize),
    scale_upper_bound: Option<f32>,
    min_scale: Option<f32>,
    device_rows: Option<u32>,
    /// Of even and of odd rows.
    fills: [Fill; 2],
    seed: u64,
    /// Elements set apart: index in `x`, wrapped around, and bits.
    planted: Vec<(usize, u32)>,
}

impl Call {
    fn x<T: Sample>(&self) -> Tensor {
        let mut random = Random(self.seed);
        let elements = self.rows * self.hidden;
        strided::<T>(self.rows, self.hidden, self.hidden + self.gaps.0, self.x_offset, |row, column| {
            let value = self.fills[row % 2].value(&mut random);
            let planted = self.planted.iter().find(|(index, _)| index % elements == row * self.hidden + column);
            planted.map_or(value, |&(_, bits)| T::with_bits(bits))
        })
    }

    fn case(&self) -> Case {
        let x = with_element!(self.element, T => self.x::<T>());
        let params = Params { math: self.math, options: self.options, sm_count: self.sm_count };
        let shape = (self.rows, self.rows_out, self.hidden);
        // No gap is spelled as the default has it.
        let stride = |gap| if gap == 0 { 0 } else { (self.hidden + gap) as u64 };
        let extended = Extended {
            x_stride: stride(self.gaps.0),
            q_stride: stride(self.gaps.1),
            scale_upper_bound: self.scale_upper_bound,
            min_scale: self.min_scale,
        };
        Case {
            q_offset: self.q_offset,
            extended,
            device_rows: self.device_rows,
            ..case("property", &Arc::new(x), shape, params)
        }
    }
}

impl Fill {
    fn value<T: Sample>(self, random: &mut Random) -> T {
        match self {
            Self::Zeros => T::with_bits(0),
            Self::Ordinary => random.moderate(),
            Self::AnyBits => random.any(),
            Self::Subnormal => random.up_to(0),
            Self::Tiny => random.up_to(24),
            Self::Huge => T::with_bits(T::INFINITY - 1 - random.bits() % T::MIN_NORMAL),
            Self::AnyExponent => random.up_to(T::INFINITY / T::MIN_NORMAL - 1),
        }
    }
}

fn calls(budget: Budget, math: &[MathMode]) -> impl Strategy<Value = Call> + use<> {
    // Half of the rows are short, and half of the inputs have few of them.
    let most = budget.elements / HIDDEN_MULTIPLE as usize;
    let hidden = prop_oneof![1..=16.min(most), 1..=400.min(most), 1..=most];
    let rows = prop_oneof![0..=9.min(budget.rows), 0..=budget.rows];
    let sm_counts = vec![1, 2, DEFAULT_SM_COUNT];
    let options = (select(ZeroRows::ALL.to_vec()), select(Dispatch::ALL.to_vec()));
    let how = (select(Element::ALL.to_vec()), select(math.to_vec()), options, select(sm_counts));
    let wheres = (0..=8usize, 0..=16usize, 0..=3usize);
    let fill = || select(FILLS.to_vec());
    let values = ([fill(), fill()], any::<u64>(), vec((any::<usize>(), any::<u32>()), 0..6));
    // Half of the calls have none of each.
    let gap = || prop_oneof![Just(0), 0..=40usize];
    let bound = || proptest::option::of((1..f32::INFINITY.to_bits()).prop_map(f32::from_bits));
    let counts = proptest::option::of(prop_oneof![0..=9u32, any::<u32>()]);
    let extended = prop_oneof![Just(((0, 0), (None, None), None)), ((gap(), gap()), (bound(), bound()), counts),];
    (how, (rows, hidden), wheres, extended, values).prop_map(move |(how, (rows, hidden), wheres, extended, values)| {
        let (element, math, (zero_rows, dispatch), sm_count) = how;
        let hidden = hidden * HIDDEN_MULTIPLE as usize;
        let rows = rows.min(budget.elements / hidden);
        let (x_offset, q_offset, more_rows) = wheres;
        let (gaps, (scale_upper_bound, min_scale), device_rows) = extended;
        let (fills, seed, planted) = values;
        let options = Options { zero_rows, dispatch };
        Call {
            element,
            math,
            options,
            sm_count,
            rows,
            rows_out: rows + more_rows,
            hidden,
            x_offset,
            q_offset,
            gaps,
            scale_upper_bound,
            min_scale,
            device_rows,
            fills,
            seed,
            planted,
        }
    })
}

/// The simplest call found that fails.
#[derive(thiserror::Error)]
#[error("{0}")]
pub struct Falsified(String);

/// As [`Display`](fmt::Display), so that `unwrap` in a test prints it.
impl fmt::Debug for Falsified {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Checks that many calls within the budget, in the math modes that the implementation has: the same ones in every run, or
/// those of `PROPTEST_RNG_SEED`.
///
/// # Errors
/// Why the simplest failing call fails, and the call.
///
/// # Panics
/// If `math` is empty.
pub fn property(
    budget: Budget,
    math: &[MathMode],
    calls: u32,
    check: impl Fn(&Case) -> Result<(), Failure>,
) -> Result<(), Falsified> {
    let given = Config::default();
    let rng_seed = if let RngSeed::Random = given.rng_seed { RngSeed::Fixed(SEED) } else { given.rng_seed };
    let mut runner = TestRunner::new(Config { cases: calls, rng_seed, failure_persistence: None, ..given });
    let test = |call: Call| check(&call.case()).map_err(|failure| TestCaseError::fail(failure.to_string()));
    runner.run(&self::calls(budget, math), test).map_err(|error| Falsified(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Oracle, cpu};
    use ptq_spec::per_token::REFERENCE_ROWS_PER_SM;
    use std::cell::Cell;

    #[test]
    fn a_failure_shrinks_to_the_call_that_matters() {
        let refuse_long_rows = |case: &Case| match case.shape.hidden() {
            ..100 => Ok(()),
            _ => Err(crate::check(&Refusing, Oracle::Rayon, case).expect_err("it refuses")),
        };
        let budget = Budget { rows: 20, elements: 4096 };
        let message = property(budget, &MathMode::ALL, 256, refuse_long_rows).unwrap_err().to_string();
        for part in ["out of paper", "rows: 0,", "hidden: 100,", "x_offset: 0,", "planted: []"] {
            assert!(message.contains(part), "{part:?} is not in {message}");
        }
    }

    struct Refusing;

    impl crate::Implementation for Refusing {
        fn name(&self) -> String {
            "refusing".into()
        }
        fn quantize(&self, _: &Case, _: &mut crate::Output) -> Result<(), Box<dyn std::error::Error>> {
            Err("out of paper".into())
        }
    }

    #[test]
    fn every_run_makes_the_same_calls_and_as_many_as_asked_for() {
        let names = || {
            let names = std::cell::RefCell::new(Vec::new());
            let budget = Budget { rows: 20, elements: 4096 };
            property(budget, &[MathMode::Fast], 50, |case| {
                names.borrow_mut().push(case.name.clone());
                Ok(())
            })
            .unwrap();
            names.into_inner()
        };
        assert_eq!(names().len(), 50);
        assert_eq!(names(), names());
        assert!(names().iter().all(|name| name.ends_with("fast")));
    }

    #[test]
    fn calls_stay_within_the_budget_and_are_varied() {
        let budget = Budget { rows: 33, elements: 1 << 12 };
        let (zero_rows, guarded) = (Cell::new(0), Cell::new(0));
        property(budget, &MathMode::ALL, 200, |case| {
            let (rows, hidden) = (case.shape.rows(), case.shape.hidden());
            assert!(budget.holds(rows as usize, hidden as usize), "{}", case.name);
            zero_rows.set(zero_rows.get() + u32::from(rows == 0));
            guarded.set(guarded.get() + u32::from(rows >= REFERENCE_ROWS_PER_SM && case.params.sm_count == 1));
            crate::check(&cpu::Rayon, Oracle::Scalar, case)
        })
        .unwrap();
        assert!(zero_rows.get() > 0 && guarded.get() > 0, "{zero_rows:?} {guarded:?}");
    }
}
