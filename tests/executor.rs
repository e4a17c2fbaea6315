//! The facade's choice between device and CPU, as far as it shows without a device.

use half::{bf16, f16};
use per_token_quant_fp8::cpu::{self, Input, Params};
use per_token_quant_fp8::{
    Backend, Element, Error, Executor, Granularity, Kernel, MathMode, Options, RawArgs, ScaledFp8Quant,
    ScaledFp8QuantArgs, Shape, ShapeError, ZeroRows, probe,
};
use ptq_suite::random_rows;
use std::ptr;

const ROWS: usize = 37;
const ROWS_OUT: usize = 40;
const HIDDEN: usize = 1076;
/// Bytes of the outputs before: as a code and as a scale a NaN, which no input gives.
const POISON: u8 = 0xFF;

fn on_cpu(math: MathMode) -> Executor {
    Executor::new(Some(Backend::Cpu)).unwrap().with_math(math).unwrap().with_sm_count(132)
}

/// The rows are those of the CPU implementation, and the rows after them keep their bytes.
fn same_bits<T: Input>(convert: impl Fn(f32) -> T) {
    let mut values = vec![0.0; ROWS * HIDDEN];
    random_rows(&mut values, HIDDEN, 3);
    values[HIDDEN..2 * HIDDEN].fill(0.0);
    let x: Vec<T> = values.into_iter().map(convert).collect();
    for math in [MathMode::Fast, MathMode::Precise] {
        for zero_rows in [ZeroRows::Legacy, ZeroRows::Guarded] {
            let options = Options { zero_rows, ..Options::default() };
            let (mut q, mut s) = (vec![POISON; ROWS_OUT * HIDDEN], vec![f32::from_bits(u32::MAX); ROWS_OUT]);
            let (mut want_q, mut want_s) = (q.clone(), s.clone());
            let shape = Shape::padded(ROWS as u64, ROWS_OUT as u64, HIDDEN as u64).unwrap();
            cpu::quantize(&x, &mut want_q, &mut want_s, shape, Params { math, options, sm_count: 132 }).unwrap();
            let args = RawArgs {
                element: T::ELEMENT,
                x: x.as_ptr() as u64,
                q: q.as_mut_ptr() as u64,
                s: s.as_mut_ptr() as u64,
                shape,
                options,
            };
            // SAFETY: vectors of the shape's size, which nobody else uses.
            unsafe { on_cpu(math).quantize_raw(args, ptr::null_mut()) }.unwrap();
            assert!(q == want_q, "{} {math} {zero_rows:?}: codes", T::ELEMENT);
            assert!(s.iter().zip(&want_s).all(|(a, b)| a.to_bits() == b.to_bits()), "{math} {zero_rows:?}: scales");
        }
    }
}

#[test]
fn cpu_by_addresses_gives_the_bits_of_slices() {
    same_bits::<f16>(f16::from_f32);
    same_bits::<bf16>(bf16::from_f32);
    same_bits::<f32>(|value| value);
}

#[test]
fn cpu_checks_alignment_and_overlap_and_asks_nothing_of_no_rows() {
    let mut memory = [0.0_f32; 64];
    let address = memory.as_mut_ptr() as u64;
    let args = RawArgs {
        element: Element::F32,
        x: address,
        q: address + 64,
        s: address + 128,
        shape: Shape::new(2, 8).unwrap(),
        options: Options::default(),
    };
    let executor = on_cpu(MathMode::Precise);
    // SAFETY: every access is within `memory`, which nobody else uses.
    let quantize = |args| unsafe { executor.quantize_raw(args, ptr::null_mut()) };
    assert_eq!(quantize(args), Ok(()));
    let error = quantize(RawArgs { s: address + 129, ..args }).unwrap_err();
    assert!(matches!(error, Error::Shape(ShapeError::Misaligned { operand: "s", .. })), "{error}");
    let error = quantize(RawArgs { q: address + 63, ..args }).unwrap_err();
    assert!(matches!(error, Error::Shape(ShapeError::Overlap { operand: "x", other: "q", .. })), "{error}");
    let nothing = Shape::padded(0, 7, 8).unwrap();
    assert_eq!(quantize(RawArgs { x: 0, q: 0, s: 1 << 20, shape: nothing, ..args }), Ok(()));
}

#[test]
fn backend_decides_what_a_missing_device_means() {
    assert_eq!(Executor::new(Some(Backend::Cpu)).unwrap().backend(), Backend::Cpu);
    match probe() {
        Err(reason @ (Error::NoDriver { .. } | Error::NoDevice { .. })) => {
            let auto = Executor::new(Some(Backend::Auto)).unwrap();
            assert_eq!((auto.backend(), auto.math(), auto.sm_count()), (Backend::Cpu, MathMode::Precise, 132));
            assert_eq!(auto.load(Kernel::PerToken, Element::Bf16), Ok(()));
            for backend in [Backend::Aot, Backend::Jit] {
                assert_eq!(Executor::new(Some(backend)).unwrap_err(), reason);
            }
        }
        // Nobody made a context current: operands by address would be taken for something else than they are.
        _ => assert!(Executor::new(Some(Backend::Auto)).is_err()),
    }
}

/// The serving entry is the operation it names, on the input's rows alone.
fn serving_is<T: Input>(convert: impl Fn(f32) -> T) {
    let mut values = vec![0.0; ROWS * HIDDEN];
    random_rows(&mut values, HIDDEN, 5);
    let x: Vec<T> = values.into_iter().map(convert).collect();
    let elements = ROWS * HIDDEN;
    for math in [MathMode::Fast, MathMode::Precise] {
        for zero_rows in [ZeroRows::Legacy, ZeroRows::Guarded] {
            for granularity in Granularity::ALL {
                let options = Options { zero_rows, ..Options::default() };
                let call = ScaledFp8Quant { granularity, num_token_padding: Some(ROWS_OUT as u64), options };
                let output = call.output_shape(ROWS as u64, HIDDEN as u64).unwrap();
                let (mut q, mut s) = (vec![POISON; ROWS_OUT * HIDDEN], vec![0.0; output.scales as usize]);
                let (mut want_q, mut want_s) = (q.clone(), s.clone());
                match granularity {
                    Granularity::PerToken => {
                        let shape = Shape::padded(ROWS as u64, output.rows_out, output.hidden).unwrap();
                        let params = Params { math, options, sm_count: 132 };
                        cpu::quantize(&x, &mut want_q, &mut want_s, shape, params).unwrap();
                    }
                    Granularity::PerTensor => {
                        let (q, s) = (&mut want_q[..elements], &mut want_s[0]);
                        cpu::per_tensor::scalar::quantize_dynamic(&x, q, s, math, zero_rows).unwrap();
                    }
                    Granularity::Static => {
                        // Zero, of which the guard shows.
                        let q = &mut want_q[..elements];
                        cpu::per_tensor::scalar::quantize_static(&x, q, want_s[0], math, zero_rows).unwrap();
                    }
                }
                let args = ScaledFp8QuantArgs {
                    element: T::ELEMENT,
                    x: x.as_ptr() as u64,
                    q: q.as_mut_ptr() as u64,
                    s: s.as_mut_ptr() as u64,
                    rows: ROWS as u64,
                    hidden: HIDDEN as u64,
                };
                // SAFETY: vectors of the shapes that the call asks for, which nobody else uses.
                unsafe { on_cpu(math).scaled_fp8_quant_raw(call, args, ptr::null_mut()) }.unwrap();
                assert!(q == want_q, "{} {math} {call:?}: codes", T::ELEMENT);
                let same = s.iter().zip(&want_s).all(|(a, b)| a.to_bits() == b.to_bits());
                assert!(same, "{} {math} {call:?}: scales", T::ELEMENT);
            }
        }
    }
}

#[test]
fn serving_entry_is_the_operation_it_names() {
    serving_is::<f16>(f16::from_f32);
    serving_is::<bf16>(bf16::from_f32);
    serving_is::<f32>(|value| value);
}

#[test]
fn serving_entry_refuses_what_the_operations_refuse() {
    let mut memory = [0.0_f32; 64];
    let address = memory.as_mut_ptr() as u64;
    let (x, q, s) = (address, address + 64, address + 128);
    let args = ScaledFp8QuantArgs { element: Element::F32, x, q, s, rows: 2, hidden: 8 };
    let executor = on_cpu(MathMode::Precise);
    for granularity in Granularity::ALL {
        let call = ScaledFp8Quant::new(granularity);
        // SAFETY: every access is within `memory`, which nobody else uses.
        let quantize = |args| unsafe { executor.scaled_fp8_quant_raw(call, args, ptr::null_mut()) };
        assert_eq!(quantize(args), Ok(()), "{granularity:?}");
        let error = quantize(ScaledFp8QuantArgs { s: s + 1, ..args }).unwrap_err();
        assert!(matches!(error, Error::Shape(ShapeError::Misaligned { operand: "s", .. })), "{error}");
        let error = quantize(ScaledFp8QuantArgs { q: x + 1, ..args }).unwrap_err();
        assert!(matches!(error, Error::Shape(ShapeError::Overlap { operand: "x", other: "q", .. })), "{error}");
        let error = quantize(ScaledFp8QuantArgs { rows: u64::MAX, ..args }).unwrap_err();
        assert!(matches!(error, Error::Shape(ShapeError::Overflow { .. })), "{error}");
        let error = quantize(ScaledFp8QuantArgs { hidden: 0, ..args }).unwrap_err();
        assert!(matches!(error, Error::Shape(ShapeError::HiddenZero { .. })), "{error}");
        let nothing = ScaledFp8QuantArgs { x: 0, q: 0, s: 4096, rows: 0, ..args };
        assert_eq!(quantize(nothing), Ok(()), "{granularity:?} of no rows");
    }
}
