//! The facade's choice between device and CPU, as far as it shows without a device.

use half::{bf16, f16};
use per_token_quant_fp8::cpu::{self, Input, Params};
use per_token_quant_fp8::{
    Backend, Element, Error, Executor, Extended, Granularity, Kernel, MathMode, Options, RawArgs, ScaledFp8Quant,
    ScaledFp8QuantArgs, Shape, ShapeError, ZeroRows, probe,
};
use ptq_suite::{Budget, Case, Family, Implementation, Oracle, Output, Tensor, random_rows, run};
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
            let (q_, s_) = (q.as_mut_ptr() as u64, s.as_mut_ptr() as u64);
            let args = RawArgs { options, ..RawArgs::new(T::ELEMENT, x.as_ptr() as u64, q_, s_, shape) };
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
    let args = RawArgs::new(Element::F32, address, address + 64, address + 128, Shape::new(2, 8).unwrap());
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

/// The suite's cases of strides, bounds and counts, by addresses.
#[test]
fn cpu_takes_strides_bounds_and_counts() {
    struct ByAddresses;
    impl Implementation for ByAddresses {
        fn name(&self) -> String {
            "executor on the CPU".into()
        }

        fn quantize(&self, case: &Case, out: &mut Output) -> Result<(), Box<dyn std::error::Error>> {
            let x = match &*case.x {
                Tensor::F16(x) => x.operand().as_ptr() as u64,
                Tensor::Bf16(x) => x.operand().as_ptr() as u64,
                Tensor::F32(x) => x.operand().as_ptr() as u64,
            };
            let (q, s) = (out.q.operand_mut().as_mut_ptr() as u64, out.s.operand_mut().as_mut_ptr() as u64);
            let device_rows = case.device_rows.as_ref().map_or(0, |count| ptr::from_ref(count) as u64);
            let (options, extended) = (case.params.options, case.extended);
            let args = RawArgs::new(case.x.element(), x, q, s, case.shape);
            let args = RawArgs { options, extended, device_rows, ..args };
            let executor = on_cpu(case.params.math).with_sm_count(case.params.sm_count);
            // SAFETY: buffers of the size that shape and strides ask for, and a count, which nobody else uses.
            Ok(unsafe { executor.quantize_raw(args, ptr::null_mut()) }?)
        }
    }
    let budget = Budget { rows: 100, elements: 1 << 14 };
    for family in ["strides", "bounds", "device_rows", "zero_scales"] {
        let family = Family::named(family).unwrap();
        run(&ByAddresses, Oracle::Scalar, family.cases(budget)).unwrap();
    }
}

#[test]
fn cpu_refuses_bad_strides_bounds_and_counts_and_writes_nothing() {
    let mut memory = [1.0_f32; 64];
    let address = memory.as_mut_ptr() as u64;
    let args = RawArgs::new(Element::F32, address, address + 128, address + 192, Shape::new(2, 8).unwrap());
    let off = Extended::default();
    let executor = on_cpu(MathMode::Precise);
    let kernel = per_token_quant_fp8::spec::per_token::KERNEL;
    let bound = |operand, actual: f32| ShapeError::Bound { kernel, operand, actual: actual.to_bits() };
    let cases = [
        (Extended { x_stride: 7, ..off }, ShapeError::Stride { kernel, operand: "x", expected: 8, actual: 7 }),
        (Extended { q_stride: 4, ..off }, ShapeError::Stride { kernel, operand: "q", expected: 8, actual: 4 }),
        (
            Extended { x_stride: u64::MAX, ..off },
            ShapeError::StrideOverflow { kernel, operand: "x", rows: 2, stride: u64::MAX },
        ),
        (Extended { scale_upper_bound: Some(f32::NAN), ..off }, bound("scale_upper_bound", f32::NAN)),
        (Extended { scale_upper_bound: Some(0.0), ..off }, bound("scale_upper_bound", 0.0)),
        (Extended { min_scale: Some(-1.0), ..off }, bound("min_scale", -1.0)),
        (Extended { min_scale: Some(f32::INFINITY), ..off }, bound("min_scale", f32::INFINITY)),
        // Gaps count: x reaches q.
        (Extended { x_stride: 25, ..off }, ShapeError::Overlap { kernel, operand: "x", other: "q" }),
    ];
    for (extended, error) in cases {
        // SAFETY: every access is within `memory`, which nobody else uses, here and below.
        let result = unsafe { executor.quantize_raw(RawArgs { extended, ..args }, ptr::null_mut()) };
        assert_eq!(result, Err(Error::Shape(error)));
    }
    let counts = [
        (address + 2, ShapeError::Misaligned { kernel, operand: "device_rows", expected: 4, actual: address + 2 }),
        (address + 140, ShapeError::Overlap { kernel, operand: "q", other: "device_rows" }),
        (address + 196, ShapeError::Overlap { kernel, operand: "s", other: "device_rows" }),
    ];
    for (device_rows, error) in counts {
        // SAFETY: as above.
        let result = unsafe { executor.quantize_raw(RawArgs { device_rows, ..args }, ptr::null_mut()) };
        assert_eq!(result, Err(Error::Shape(error)));
    }
    assert_eq!(memory, [1.0; 64]);
}

#[test]
fn cpu_refusals_write_nothing() {
    const BYTES: usize = ROWS * HIDDEN * 4;
    let mut block = vec![u32::from_ne_bytes([POISON; 4]); 3 * BYTES / 4];
    let x = block.as_mut_ptr() as u64;
    let (q, s) = (x + BYTES as u64, x + 2 * BYTES as u64);
    let shape = Shape::new(ROWS as u64, HIDDEN as u64).unwrap();
    let good = RawArgs::new(Element::F32, x, q, s, shape);
    let executor = on_cpu(MathMode::Precise);
    for (args, is) in [
        (RawArgs { x: x + 2, ..good }, "x misaligned"),
        (RawArgs { s: s + 1, ..good }, "s misaligned"),
        (RawArgs { q: x + BYTES as u64 - 1, ..good }, "q in x"),
        (RawArgs { s: q + 4, ..good }, "s in q"),
        (RawArgs { s: x, ..good }, "s is x"),
    ] {
        // SAFETY: every access, were there one, is within `block`, which nobody else uses.
        let error = unsafe { executor.quantize_raw(args, ptr::null_mut()) }.expect_err(is);
        assert!(matches!(error, Error::Shape(_)), "{is}: {error}");
        assert!(bytemuck::cast_slice::<_, u8>(&block).iter().all(|&byte| byte == POISON), "{is}");
    }
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
        memory.fill(-3.5);
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
        assert_eq!(memory, [-3.5; 64], "{granularity:?}");
    }
}
