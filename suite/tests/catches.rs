//! The suite itself: what it must catch, it catches, and says where.

use ptq_spec::{Extended, MathMode};
use ptq_suite::{
    Budget, Case, FAMILIES, Failure, Implementation, Mismatch, Oracle, Output, Place, Reason, Tensor, cases, check,
    cpu, golden, run,
};
use std::error::Error;

/// The scalar implementation, then `spoil`.
struct Spoiled<F>(F);

impl<F: Fn(&Case, &mut Output) -> Result<(), Box<dyn Error>>> Implementation for Spoiled<F> {
    fn name(&self) -> String {
        "spoiled".into()
    }

    fn quantize(&self, case: &Case, out: &mut Output) -> Result<(), Box<dyn Error>> {
        cpu::Scalar.quantize(case, out)?;
        (self.0)(case, out)
    }
}

/// 1 row of 1076 into 17 rows.
fn case() -> Case {
    cases::padded(Budget::UNBOUNDED).find(|case| case.shape.rows() == 1).expect("there is such a case")
}

fn mismatch(spoil: impl Fn(&Case, &mut Output)) -> Mismatch {
    let spoiled = Spoiled(|case: &Case, out: &mut Output| {
        spoil(case, out);
        Ok(())
    });
    match check(&spoiled, Oracle::Scalar, &case()) {
        Err(Failure { reason: Reason::Bits(mismatch), .. }) => *mismatch,
        other => panic!("expected a mismatch, got {other:?}"),
    }
}

#[test]
fn the_same_bits_pass() {
    check(&cpu::Scalar, Oracle::Scalar, &case()).unwrap();
}

/// Every element differs from what is expected before the implementation writes it.
#[test]
fn nothing_written() {
    struct Nothing;
    impl Implementation for Nothing {
        fn name(&self) -> String {
            "nothing".into()
        }
        fn quantize(&self, _: &Case, _: &mut Output) -> Result<(), Box<dyn Error>> {
            Ok(())
        }
    }
    for case in cases::padded(Budget::UNBOUNDED).chain(golden::cases()) {
        match check(&Nothing, Oracle::Scalar, &case) {
            Err(Failure { reason: Reason::Bits(mismatch), .. }) => {
                assert_eq!((mismatch.operand, mismatch.differing as u64), ("s", case.shape.rows()), "{}", case.name);
            }
            other => assert!(other.is_ok() && case.shape.rows() == 0, "{}: {other:?}", case.name),
        }
    }
}

#[test]
fn one_code_left_unwritten() {
    let untouched = std::cell::Cell::new(0);
    // The scalar implementation has overwritten the poison; its complement is what was there.
    let found = mismatch(|_, out| {
        let code = &mut out.q.operand_mut()[1075];
        *code = !*code;
        untouched.set(*code);
    });
    assert_eq!((found.operand, found.differing, found.total), ("q", 1, 17 * 1076));
    assert_eq!((found.expected, found.actual), (u32::from(!untouched.get()), u32::from(untouched.get())));
    assert!(matches!(found.place, Place::Row { row: 0, column: Some(1075), .. }), "{}", found.place);
}

#[test]
fn one_bit_of_a_scale() {
    let found = mismatch(|_, out| {
        let scale = &mut out.s.operand_mut()[0];
        *scale = f32::from_bits(scale.to_bits() ^ 1);
    });
    assert_eq!((found.operand, found.differing, found.total), ("s", 1, 17));
    assert_eq!(found.expected, found.actual ^ 1);
    assert_eq!(found.place, Place::Row { row: 0, column: None, kind: String::new(), x: None });
}

#[test]
fn the_sign_of_zero() {
    let zeros = cases::specials(Budget::UNBOUNDED).next().expect("there are special values");
    let negate_first_zero = Spoiled(|_: &Case, out: &mut Output| {
        let zero = out.q.operand_mut().iter_mut().find(|code| **code == 0).expect("a special row holds zeros");
        *zero = 0x80;
        Ok(())
    });
    match check(&negate_first_zero, Oracle::Scalar, &zeros) {
        Err(Failure { reason: Reason::Bits(found), .. }) => {
            assert_eq!((found.operand, found.differing, found.expected, found.actual), ("q", 1, 0, 0x80));
            let Place::Row { kind, .. } = found.place else { panic!("{}", found.place) };
            assert!(!kind.is_empty());
        }
        other => panic!("expected a mismatch, got {other:?}"),
    }
}

#[test]
fn writes_beyond_the_input_s_rows() {
    let found = mismatch(|_, out| out.q.operand_mut()[16 * 1076] = 0);
    assert_eq!((found.operand, found.place), ("q", Place::Tail { row: 16 }));
    let found = mismatch(|_, out| out.s.operand_mut()[1] = 1.0);
    assert_eq!((found.operand, found.place), ("s", Place::Tail { row: 1 }));
}

#[test]
fn writes_outside_the_operands() {
    let found = mismatch(|_, out| {
        let end = out.q.range().end;
        out.q.whole_mut()[end] = 0;
    });
    assert_eq!((found.operand, found.place), ("q", Place::Guard { index: 17 * 1076 }));
    let found = mismatch(|_, out| {
        let start = out.s.range().start;
        out.s.whole_mut()[start - 1] = 0.0;
    });
    assert_eq!((found.operand, found.place), ("s", Place::Guard { index: -1 }));
}

fn place_of(case: &Case, spoil: impl Fn(&mut Output)) -> (&'static str, Place) {
    let spoiled = Spoiled(|_: &Case, out: &mut Output| {
        spoil(out);
        Ok(())
    });
    match check(&spoiled, Oracle::Scalar, case) {
        Err(Failure { reason: Reason::Bits(mismatch), .. }) => (mismatch.operand, mismatch.place),
        other => panic!("{}: expected a mismatch, got {other:?}", case.name),
    }
}

#[test]
fn writes_between_rows() {
    let gap = |case: &Case| case.layout().q_stride() > case.shape.hidden();
    let case = cases::strides(Budget::UNBOUNDED).find(gap).expect("there is such a case");
    let (hidden, stride) = (case.shape.hidden() as usize, case.layout().q_stride() as usize);
    assert_eq!(place_of(&case, |out| out.q.operand_mut()[stride + hidden] = 0), ("q", Place::Gap { row: 1 }));
    let (operand, place) = place_of(&case, |out| out.q.operand_mut()[stride] ^= 1);
    assert!(operand == "q" && matches!(place, Place::Row { row: 1, column: Some(0), .. }), "{place}");
}

#[test]
fn writes_beyond_the_count_in_device_memory() {
    let counted = |case: &Case| case.device_rows == Some(7);
    let case = cases::device_rows(Budget::UNBOUNDED).find(counted).expect("there is such a case");
    let stride = case.layout().q_stride() as usize;
    assert_eq!(place_of(&case, |out| out.q.operand_mut()[7 * stride] = 0), ("q", Place::Tail { row: 7 }));
    assert_eq!(place_of(&case, |out| out.s.operand_mut()[7] = 1.0), ("s", Place::Tail { row: 7 }));
}

#[test]
fn a_bound_left_out() {
    let unbounded = Spoiled(|case: &Case, out: &mut Output| {
        let mut case = case.clone();
        case.extended = Extended::default();
        cpu::Scalar.quantize(&case, out)
    });
    let wrong = cases::bounds(Budget::UNBOUNDED).filter(|case| check(&unbounded, Oracle::Scalar, case).is_err());
    let alone = |case: &Case| case.extended.scale_upper_bound.is_some() != case.extended.min_scale.is_some();
    let (upper, floor): (Vec<_>, Vec<_>) =
        wrong.filter(alone).partition(|case| case.extended.scale_upper_bound.is_some());
    assert!(!upper.is_empty() && !floor.is_empty());
}

#[test]
fn the_other_math_mode() {
    let other_mode = Spoiled(|case: &Case, out: &mut Output| {
        let math = match case.params.math {
            MathMode::Fast => MathMode::Precise,
            MathMode::Precise => MathMode::Fast,
        };
        let mut case = case.clone();
        case.params.math = math;
        cpu::Scalar.quantize(&case, out)
    });
    for case in golden::cases() {
        assert!(check(&other_mode, Oracle::Scalar, &case).is_err(), "{}", case.name);
    }
}

#[test]
fn an_error_and_no_case_at_all() {
    let refusing = Spoiled(|_: &Case, _: &mut Output| Err("out of paper".into()));
    let failures = run(&refusing, Oracle::Scalar, [case()]).unwrap_err();
    assert_eq!((failures.cases, failures.failures.len()), (1, 1));
    assert!(matches!(&failures.failures[0].reason, Reason::Refused(error) if error.to_string() == "out of paper"));

    let failures = run(&cpu::Scalar, Oracle::Scalar, []).unwrap_err();
    assert_eq!((failures.cases, failures.failures.len()), (0, 0));
}

#[test]
fn a_failure_names_the_kernel() {
    let spoiled = Spoiled(|_: &Case, out: &mut Output| {
        out.kernel = Some("per_token_warp_e4x1");
        out.q.operand_mut()[1] ^= 1;
        Ok(())
    });
    let message = check(&spoiled, Oracle::Scalar, &case()).unwrap_err().to_string();
    for part in ["per_token_warp_e4x1", "in row 0", "column 1,", "expected 0x", "actual 0x"] {
        assert!(message.contains(part), "{part:?} is not in {message}");
    }
}

#[test]
fn every_family_has_cases_within_its_budget() {
    let budget = Budget { rows: 2048, elements: 1 << 20 };
    for family in FAMILIES {
        let mut cases = 0;
        for case in family.cases(budget) {
            let (rows, elements) = (case.shape.rows() as usize, (case.shape.rows() * case.shape.hidden()) as usize);
            assert!(rows <= budget.rows && elements <= budget.elements, "{}: {}", family.name, case.name);
            cases += 1;
        }
        assert!(cases > 0, "{}", family.name);
    }
}

/// Without a budget every pattern is alone in a row, and under every larger value, in rows of every length.
#[test]
fn patterns_are_all_there() {
    let mut seen = std::collections::BTreeMap::<String, Vec<bool>>::new();
    for case in cases::patterns(Budget::UNBOUNDED).filter(|case| case.params.math == MathMode::Precise) {
        let what = case.name.split(':').next().expect("a name has a part before its shape");
        let seen =
            seen.entry(format!("{what} {} {}", case.x.element(), case.shape.hidden())).or_insert(vec![false; 1 << 16]);
        match &*case.x {
            Tensor::F16(x) => x.operand().iter().for_each(|x| seen[usize::from(x.to_bits())] = true),
            Tensor::Bf16(x) => x.operand().iter().for_each(|x| seen[usize::from(x.to_bits())] = true),
            Tensor::F32(_) => panic!("f32 has more patterns"),
        }
    }
    // Alone in rows of 2 lengths, under 5 larger values in rows of 4 lengths.
    assert_eq!(seen.len(), 2 * (2 + 5 * 4));
    for (what, seen) in seen {
        assert!(seen.iter().all(|&seen| seen), "{what}");
    }
}

#[test]
fn a_run_stops_after_sixteen_failures() {
    let refusing = Spoiled(|_: &Case, _: &mut Output| Err("out of paper".into()));
    let failures = run(&refusing, Oracle::Scalar, std::iter::repeat_with(case)).unwrap_err();
    assert_eq!((failures.cases, failures.failures.len()), (16, 16));
}

mod per_tensor {
    //! The same of per-tensor calls.

    use ptq_suite::per_tensor::{Call, FAMILIES, PerTensor, cases, check, cpu, run};
    use ptq_suite::{Budget, Failure, Mismatch, Oracle, Output, Reason};
    use std::error::Error;

    /// The scalar implementation, then `spoil`; without it nothing.
    struct Spoiled<F>(Option<F>);

    impl<F: Fn(&Call, &mut Output)> PerTensor for Spoiled<F> {
        fn name(&self) -> String {
            "spoiled".into()
        }

        fn quantize(&self, call: &Call, out: &mut Output) -> Result<(), Box<dyn Error>> {
            if let Some(spoil) = &self.0 {
                cpu::Scalar.quantize(call, out)?;
                spoil(call, out);
            }
            Ok(())
        }
    }

    const SMALL: Budget = Budget { rows: usize::MAX, elements: 1 << 12 };

    fn mismatch(subject: &dyn PerTensor, call: &Call) -> Mismatch {
        match check(subject, Oracle::Scalar, call) {
            Err(Failure { reason: Reason::Bits(mismatch), .. }) => *mismatch,
            other => panic!("expected a mismatch, got {other:?}"),
        }
    }

    #[test]
    fn every_family_has_small_calls_which_the_oracle_passes() {
        for family in FAMILIES {
            let calls: Vec<_> = family.calls(Budget { elements: 1 << 16, ..SMALL }).collect();
            run(&cpu::Scalar, Oracle::Scalar, calls).unwrap_or_else(|failures| panic!("{}: {failures}", family.name));
        }
    }

    #[test]
    fn nothing_written() {
        let nothing = Spoiled(None::<fn(&Call, &mut Output)>);
        for call in cases::sizes(SMALL).filter(|call| call.elements() > 0) {
            let mismatch = mismatch(&nothing, &call);
            let all = if mismatch.operand == "q" { call.elements() } else { 1 };
            assert_eq!(mismatch.differing, all, "{}", call.name);
        }
    }

    #[test]
    fn one_code_a_guard_and_the_given_scale() {
        let call = cases::sizes(SMALL).find(|call| call.elements() == 33).expect("there is such a call");
        let last = mismatch(
            &Spoiled(Some(|call: &Call, out: &mut Output| out.q.operand_mut()[call.elements() - 1] ^= 1)),
            &call,
        );
        assert_eq!((last.operand, last.differing), ("q", 1));
        let beyond = mismatch(
            &Spoiled(Some(|_: &Call, out: &mut Output| {
                let end = out.q.range().end;
                out.q.whole_mut()[end] ^= 1;
            })),
            &call,
        );
        assert_eq!((beyond.operand, beyond.differing), ("q", 1));
        // A static scale is the caller's.
        let scale = mismatch(&Spoiled(Some(|_: &Call, out: &mut Output| out.s.operand_mut()[0] *= 2.0)), &call);
        assert_eq!((scale.operand, scale.differing), ("s", 1));
    }
}
