//! What the programs share: a device, or a word why there is none; one input; CUDA graphs; the check of every byte.

pub mod graph;

use half::bf16;
use per_token_quant_fp8::cpu::{self, Params};
use per_token_quant_fp8::{Error, Shape, probe};
use std::error;

/// What `main` returns; an error is an exit status other than 0.
pub type Outcome = Result<(), Box<dyn error::Error>>;

/// Tokens of the input.
pub const ROWS: usize = 33;
/// Elements per token.
pub const HIDDEN: usize = 1368;
/// Bytes of the outputs before: as a code and as a scale a NaN, which no input gives.
pub const POISON: u8 = 0xFF;
/// A scale of such bytes.
pub const POISON_SCALE: f32 = f32::from_bits(u32::MAX);

/// Whether there is a device. Without one it says so, and with `PTQ_REQUIRE_GPU=1` that is an error.
///
/// # Errors
/// Those of [`probe`], where they do not merely mean that there is none.
pub fn has_device() -> Result<bool, Error> {
    let required = std::env::var("PTQ_REQUIRE_GPU").is_ok_and(|v| !["", "0"].contains(&v.as_str()));
    match probe() {
        Ok(_) => Ok(true),
        Err(reason @ (Error::NoDriver { .. } | Error::NoDevice { .. })) if !required => {
            println!("skipped on a GPU: {reason}");
            Ok(false)
        }
        Err(error) => Err(error),
    }
}

/// The shape of [`input`].
///
/// # Errors
/// None: the numbers are constants.
pub fn shape() -> Result<Shape, Error> {
    Ok(Shape::new(ROWS as u64, HIDDEN as u64)?)
}

/// `x[ROWS, HIDDEN]`: rows of different ranges, one of zeros, one with a NaN and an infinity.
pub fn input() -> Vec<bf16> {
    let value = |i: usize| match (i / HIDDEN, i % HIDDEN) {
        (3, _) => 0.0,
        (5, 7) => f32::NAN,
        (5, 8) => f32::NEG_INFINITY,
        (row, column) => (column as f32 * 0.37 + row as f32).sin() * (row as f32 - 16.0).exp2(),
    };
    (0..ROWS * HIDDEN).map(value).map(bf16::from_f32).collect()
}

/// Compares codes and scales of [`input`] with what the scalar CPU implementation gives, byte by byte.
///
/// # Errors
/// The first difference.
pub fn check(q: &[u8], s: &[f32], params: Params) -> Outcome {
    let (mut want_q, mut want_s) = (vec![0; ROWS * HIDDEN], vec![0.0; ROWS]);
    cpu::scalar::quantize(&input(), &mut want_q, &mut want_s, shape()?, params)?;
    compare(q, s, &want_q, &want_s)
}

/// Compares codes of rows of [`HIDDEN`], and scales, byte by byte.
///
/// # Errors
/// The first difference.
pub fn compare(q: &[u8], s: &[f32], want_q: &[u8], want_s: &[f32]) -> Outcome {
    let (actual, expected) = ((q.len(), s.len()), (want_q.len(), want_s.len()));
    if actual != expected {
        return Err(format!("{actual:?} codes and scales, expected {expected:?}").into());
    }
    if let Some(i) = (0..q.len()).find(|&i| q[i] != want_q[i]) {
        let (row, column) = (i / HIDDEN, i % HIDDEN);
        return Err(format!("row {row} column {column}: code {:#04x}, expected {:#04x}", q[i], want_q[i]).into());
    }
    if let Some(row) = (0..s.len()).find(|&row| s[row].to_bits() != want_s[row].to_bits()) {
        return Err(format!("row {row}: scale {:e}, expected {:e}", s[row], want_s[row]).into());
    }
    println!("{} x {HIDDEN}: every byte is that of the CPU implementation", q.len() / HIDDEN);
    Ok(())
}
