//! What both implementations refuse, and what they leave alone.

use half::bf16;
use ptq_cpu::{Params, scalar};
use ptq_spec::per_token::KERNEL;
use ptq_spec::{MathMode, Shape, ShapeError};

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
