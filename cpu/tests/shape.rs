//! What both implementations refuse, and what they leave alone.

use half::bf16;
use ptq_cpu::{Params, scalar};
use ptq_spec::per_token::KERNEL;
use ptq_spec::{Extended, MIN_SCALE, MathMode, Options, Shape, ShapeError, ZeroRows};

type Quantize = fn(&[bf16], &mut [u8], &mut [f32], Shape, Params) -> Result<(), ShapeError>;

const IMPLEMENTATIONS: [(&str, Quantize); 2] = [("scalar", scalar::quantize), ("rayon", ptq_cpu::quantize)];
const UNTOUCHED_Q: u8 = 0xA5;
const UNTOUCHED_S: f32 = -3.5;
const PARAMS: Params = Params::new(MathMode::Precise);

/// 2 rows of 8 in, 3 out.
fn shape() -> Shape {
    Shape::padded(2, 3, 8).expect("a valid shape")
}

#[test]
fn another_length_is_an_error_that_names_the_operand_and_nothing_is_written() {
    let cases = [("x", 15, 24, 3, 16), ("x", 17, 24, 3, 16), ("q", 16, 16, 3, 24), ("q", 16, 25, 3, 24)]
        .into_iter()
        .chain([("s", 16, 24, 2, 3), ("s", 16, 24, 4, 3)]);
    for (operand, x, q, s, expected) in cases {
        let actual = match operand {
            "x" => x,
            "q" => q,
            _ => s,
        };
        for (name, quantize) in IMPLEMENTATIONS {
            let mut codes = vec![UNTOUCHED_Q; q];
            let mut scales = vec![UNTOUCHED_S; s];
            let result = quantize(&vec![bf16::ONE; x], &mut codes, &mut scales, shape(), PARAMS);
            let error = ShapeError::Len { kernel: KERNEL, operand, expected, actual: actual as u64 };
            assert_eq!(result, Err(error), "{name}");
            assert!(codes.iter().all(|&code| code == UNTOUCHED_Q), "{name}");
            assert!(scales.iter().all(|&scale| scale == UNTOUCHED_S), "{name}");
        }
    }
}

#[test]
fn no_rows_are_fine_and_change_nothing() {
    for (rows_out, hidden) in [(0, 4), (2, 8), (0, u64::MAX - 3)] {
        let shape = Shape::padded(0, rows_out, hidden).expect("a valid shape");
        for (name, quantize) in IMPLEMENTATIONS {
            let mut codes = vec![UNTOUCHED_Q; (rows_out * hidden) as usize];
            let mut scales = vec![UNTOUCHED_S; rows_out as usize];
            assert_eq!(quantize(&[], &mut codes, &mut scales, shape, PARAMS), Ok(()), "{name}");
            assert!(codes.iter().all(|&code| code == UNTOUCHED_Q), "{name}");
            assert!(scales.iter().all(|&scale| scale == UNTOUCHED_S), "{name}");
        }
    }
}

#[test]
fn rows_beyond_the_inputs_keep_what_they_hold() {
    for (name, quantize) in IMPLEMENTATIONS {
        let mut codes = vec![UNTOUCHED_Q; 24];
        let mut scales = vec![UNTOUCHED_S; 3];
        assert_eq!(quantize(&[bf16::ONE; 16], &mut codes, &mut scales, shape(), PARAMS), Ok(()), "{name}");
        assert_eq!(codes, [[0x7E; 16].as_slice(), &[UNTOUCHED_Q; 8]].concat(), "{name}");
        assert_eq!(scales, [1.0 / 448.0, 1.0 / 448.0, UNTOUCHED_S], "{name}");
    }
}

/// 2 rows of 8 in, 9 apart, 3 out, 10 apart.
const STRIDED: Extended = Extended { x_stride: 9, q_stride: 10, scale_upper_bound: None, min_scale: None };

type QuantizeExtended = fn(&[bf16], &mut [u8], &mut [f32], Shape, Params, Extended) -> Result<(), ShapeError>;

const EXTENDED: [(&str, QuantizeExtended); 2] =
    [("scalar", scalar::quantize_extended), ("rayon", ptq_cpu::quantize_extended)];

#[test]
fn strided_operands_reach_to_the_last_row_s_end_at_least() {
    let kernel = KERNEL;
    let too_short = |operand, expected, actual| ShapeError::TooShort { kernel, operand, expected, actual };
    let cases = [
        (17, 28, 3, Ok(())),
        (18, 30, 3, Ok(())),
        (16, 28, 3, Err(too_short("x", 17, 16))),
        (17, 27, 3, Err(too_short("q", 28, 27))),
        (17, 28, 2, Err(ShapeError::Len { kernel, operand: "s", expected: 3, actual: 2 })),
        (17, 28, 4, Err(ShapeError::Len { kernel, operand: "s", expected: 3, actual: 4 })),
    ];
    for (x, q, s, expected) in cases {
        for (name, quantize) in EXTENDED {
            let mut codes = vec![UNTOUCHED_Q; q];
            let mut scales = vec![UNTOUCHED_S; s];
            let result = quantize(&vec![bf16::ONE; x], &mut codes, &mut scales, shape(), PARAMS, STRIDED);
            assert_eq!(result, expected, "{name}");
            // Two rows, and nothing between or after them.
            let row_written = |row: usize| expected.is_ok() && row < 2;
            for (i, &code) in codes.iter().enumerate() {
                let expected = if row_written(i / 10) && i % 10 < 8 { 0x7E } else { UNTOUCHED_Q };
                assert_eq!(code, expected, "{name}: {i}");
            }
            for (row, &scale) in scales.iter().enumerate() {
                assert_eq!(scale, if row_written(row) { 1.0 / 448.0 } else { UNTOUCHED_S }, "{name}: {row}");
            }
        }
    }
}

#[test]
fn bad_strides_and_bounds_are_errors_and_nothing_is_written() {
    let kernel = KERNEL;
    let bound = |operand, actual: f32| ShapeError::Bound { kernel, operand, actual: actual.to_bits() };
    let cases = [
        (Extended { x_stride: 7, ..STRIDED }, ShapeError::Stride { kernel, operand: "x", expected: 8, actual: 7 }),
        (Extended { q_stride: 7, ..STRIDED }, ShapeError::Stride { kernel, operand: "q", expected: 8, actual: 7 }),
        (
            Extended { q_stride: u64::MAX, ..STRIDED },
            ShapeError::StrideOverflow { kernel, operand: "q", rows: 3, stride: u64::MAX },
        ),
        (Extended { scale_upper_bound: Some(f32::NAN), ..STRIDED }, bound("scale_upper_bound", f32::NAN)),
        (Extended { min_scale: Some(-0.0), ..STRIDED }, bound("min_scale", -0.0)),
    ];
    for (extended, error) in cases {
        for (name, quantize) in EXTENDED {
            let (mut codes, mut scales) = ([UNTOUCHED_Q; 28], [UNTOUCHED_S; 3]);
            let result = quantize(&[bf16::ONE; 17], &mut codes, &mut scales, shape(), PARAMS, extended);
            assert_eq!(result, Err(error), "{name}");
            assert_eq!((codes, scales), ([UNTOUCHED_Q; 28], [UNTOUCHED_S; 3]), "{name}");
        }
    }
}

/// What the contract says of a floor, by example: rows of zeros have it for a scale, whether zero scales are guarded or
/// not.
#[test]
fn a_floor_makes_zero_rows_zeros() {
    let x = [0.0, -0.0, f32::NAN, 0.0].map(bf16::from_f32);
    let floor = Extended { min_scale: Some(MIN_SCALE), ..Extended::default() };
    for (name, quantize) in EXTENDED {
        for math in MathMode::ALL {
            for zero_rows in ZeroRows::ALL {
                let options = Options { zero_rows, ..Options::default() };
                let (mut codes, mut scales) = ([UNTOUCHED_Q; 4], [UNTOUCHED_S; 1]);
                let params = Params { options, ..Params::new(math) };
                quantize(&x, &mut codes, &mut scales, Shape::new(1, 4).expect("a valid shape"), params, floor)
                    .expect("a valid call");
                assert_eq!((codes, scales), ([0x00, 0x80, 0x7E, 0x00], [MIN_SCALE]), "{name} {math} {zero_rows}");
            }
        }
    }
}
