//! The facade's choice between device and CPU, as far as it shows without a device.

use half::{bf16, f16};
use per_token_quant_fp8::cpu::{self, Input, Params};
use per_token_quant_fp8::{
    Backend, Element, Error, Executor, Kernel, MathMode, Options, RawArgs, Shape, ShapeError, ZeroRows, probe,
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
fn cpu_refusals_write_nothing() {
    const BYTES: usize = ROWS * HIDDEN * 4;
    let mut block = vec![u32::from_ne_bytes([POISON; 4]); 3 * BYTES / 4];
    let x = block.as_mut_ptr() as u64;
    let (q, s) = (x + BYTES as u64, x + 2 * BYTES as u64);
    let shape = Shape::new(ROWS as u64, HIDDEN as u64).unwrap();
    let good = RawArgs { element: Element::F32, x, q, s, shape, options: Options::default() };
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
