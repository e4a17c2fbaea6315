//! Per-tensor quantization against the tables of `ptq_spec::per_tensor`, written out; what it refuses, and what it leaves alone.

use ptq_cpu::per_tensor::{self, scalar};
use ptq_spec::MathMode::{self, Fast, Precise};
use ptq_spec::per_tensor::KERNEL;
use ptq_spec::{ShapeError, ZeroRows};

/// Both zeros, ordinary values, infinities, NaN.
const X: [f32; 7] = [0.0, -0.0, 1.0, -1.0, f32::INFINITY, f32::NEG_INFINITY, f32::NAN];

type Static = fn(&[f32], &mut [u8], f32, MathMode, ZeroRows) -> Result<(), ShapeError>;
type Dynamic = fn(&[f32], &mut [u8], &mut f32, MathMode, ZeroRows) -> Result<(), ShapeError>;

const STATIC: [Static; 2] = [scalar::quantize_static, per_tensor::quantize_static];
const DYNAMIC: [Dynamic; 2] = [scalar::quantize_dynamic, per_tensor::quantize_dynamic];

#[test]
fn static_scales_of_every_kind() {
    let infinite = [0x7E, 0x7E, 0x7E, 0xFE, 0x7E, 0xFE, 0x7E];
    let minus_infinite = [0x7E, 0x7E, 0xFE, 0x7E, 0xFE, 0x7E, 0x7E];
    let zero = [0x00, 0x80, 0x00, 0x80, 0x7E, 0x7E, 0x7E];
    let minus_zero = [0x80, 0x00, 0x80, 0x00, 0x7E, 0x7E, 0x7E];
    let one = [0x00, 0x80, 0x38, 0xB8, 0x7E, 0xFE, 0x7E];
    let minus_one = [0x80, 0x00, 0xB8, 0x38, 0xFE, 0x7E, 0x7E];
    let huge = [0x00, 0x80, 0x7E, 0xFE, 0x7E, 0xFE, 0x7E];
    let subnormal = f32::MIN_POSITIVE / 2.0;
    let overflows = f32::from_bits(1 << 21); // 2^-128
    let table = [
        (0.0, Fast, infinite),
        (0.0, Precise, infinite),
        (-0.0, Fast, minus_infinite),
        (-0.0, Precise, minus_infinite),
        (subnormal, Fast, infinite),
        (subnormal, Precise, huge),
        (overflows, Precise, infinite),
        (-overflows, Precise, minus_infinite),
        (f32::INFINITY, Fast, zero),
        (f32::INFINITY, Precise, zero),
        (f32::NEG_INFINITY, Fast, minus_zero),
        (f32::NEG_INFINITY, Precise, minus_zero),
        // The reciprocal is subnormal: flushed in the one mode, in the other too small to show, but not times infinity.
        (f32::MAX, Fast, zero),
        (f32::MAX, Precise, [0x00, 0x80, 0x00, 0x80, 0x7E, 0xFE, 0x7E]),
        (1.0, Fast, one),
        (1.0, Precise, one),
        (-1.0, Fast, minus_one),
        (-1.0, Precise, minus_one),
        (f32::NAN, Fast, [0x7E; 7]),
        (-f32::NAN, Precise, [0x7E; 7]),
    ];
    for (s, math, expected) in table {
        for quantize in STATIC {
            let mut q = [0xA5; 7];
            quantize(&X, &mut q, s, math, ZeroRows::Legacy).unwrap();
            assert_eq!(q, expected, "{s:e} {math}");
            let zero_scale = s == 0.0 || math == Fast && s.is_subnormal();
            quantize(&X, &mut q, s, math, ZeroRows::Guarded).unwrap();
            assert_eq!(q, if zero_scale { zero } else { expected }, "{s:e} {math}, guarded");
        }
    }
}

#[test]
fn dynamic_scales_of_tensors_without_an_ordinary_one() {
    for math in MathMode::ALL {
        for quantize in DYNAMIC {
            let run = |x: [f32; 4], zero_scale| {
                let (mut q, mut s) = ([0xA5; 4], -1.0);
                quantize(&x, &mut q, &mut s, math, zero_scale).unwrap();
                (q, s)
            };
            let (legacy, guarded) = (ZeroRows::Legacy, ZeroRows::Guarded);
            assert_eq!(run([0.0, -0.0, 0.0, f32::NAN], legacy), ([0x7E; 4], 0.0), "{math}");
            assert_eq!(run([0.0, -0.0, 0.0, f32::NAN], guarded), ([0x00, 0x80, 0x00, 0x7E], 0.0), "{math}");
            assert_eq!(run([f32::NAN; 4], guarded), ([0x7E; 4], 0.0), "{math}");
            let infinite = ([0x00, 0x80, 0x7E, 0x7E], f32::INFINITY);
            assert_eq!(run([1.0, -1.0, f32::INFINITY, f32::NEG_INFINITY], legacy), infinite, "{math}");
            assert_eq!(run([448.0, -448.0, 1.0, f32::NAN], legacy), ([0x7E, 0xFE, 0x38, 0x7E], 1.0), "{math}");
        }
    }
}

#[test]
fn another_length_is_an_error_and_nothing_is_written() {
    for (elements, codes) in [(3, 2), (3, 4), (0, 1)] {
        let x = vec![1.0; elements];
        let error = ShapeError::Len { kernel: KERNEL, operand: "q", expected: elements as u64, actual: codes as u64 };
        let mut q = vec![0xA5; codes];
        for quantize in STATIC {
            assert_eq!(quantize(&x, &mut q, 1.0, Precise, ZeroRows::Legacy), Err(error));
        }
        let mut s = -1.0;
        for quantize in DYNAMIC {
            assert_eq!(quantize(&x, &mut q, &mut s, Precise, ZeroRows::Legacy), Err(error));
        }
        assert_eq!((q, s), (vec![0xA5; codes], -1.0));
    }
}

#[test]
fn no_elements_change_nothing() {
    let mut s = -1.0;
    for quantize in DYNAMIC {
        assert_eq!(quantize(&[], &mut [], &mut s, Fast, ZeroRows::Legacy), Ok(()));
    }
    for quantize in STATIC {
        assert_eq!(quantize(&[], &mut [], 1.0, Fast, ZeroRows::Legacy), Ok(()));
    }
    assert_eq!(s, -1.0);
}
