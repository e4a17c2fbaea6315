//! Signal to quantization noise.

use crate::chunks::elements;
use float8::F8E4M3;
use half::{bf16, f16};
use per_token_quant_fp8::Element;
use per_token_quant_fp8::cpu::Input;
use rayon::prelude::*;
use std::fmt;
use std::sync::LazyLock;

/// Energies, summed over the finite elements of rows with a finite scale.
///
/// Rows are added in order, so the sums depend neither on the number of threads nor on how rows are grouped in calls.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Sqnr {
    signal: f64,
    noise: f64,
}

impl Sqnr {
    /// Adds rows: `x[rows, hidden]` as bytes, codes `q[rows, hidden]`, scales `s[rows]`.
    pub fn add_rows(&mut self, element: Element, x: &[u8], q: &[u8], s: &[f32], hidden: usize) {
        match element {
            Element::F16 => self.add::<f16>(&elements(x), q, s, hidden),
            Element::Bf16 => self.add::<bf16>(&elements(x), q, s, hidden),
            Element::F32 => self.add::<f32>(&elements(x), q, s, hidden),
        }
    }

    /// Adds the sums of another tensor.
    pub fn add_tensor(&mut self, other: Self) {
        self.signal += other.signal;
        self.noise += other.noise;
    }

    fn add<T: Input>(&mut self, x: &[T], q: &[u8], s: &[f32], hidden: usize) {
        let rows = x.par_chunks_exact(hidden).zip(q.par_chunks_exact(hidden)).zip(s);
        let sums: Vec<_> = rows.map(|((x, q), &s)| row(x, q, s)).collect();
        for (signal, noise) in sums {
            self.signal += signal;
            self.noise += noise;
        }
    }
}

/// Values of the codes.
static VALUES: LazyLock<[f64; 256]> =
    LazyLock::new(|| std::array::from_fn(|code| F8E4M3::from_bits(code as u8).to_f64()));

fn row<T: Input>(x: &[T], q: &[u8], s: f32) -> (f64, f64) {
    let (mut signal, mut noise) = (0.0, 0.0);
    let values = &*VALUES;
    if s.is_finite() {
        for (&x, &q) in x.iter().zip(q) {
            let x = f64::from(x.widen());
            if x.is_finite() {
                // The product is exact: 4 and 24 bits of mantissa.
                let error = x - values[usize::from(q)] * f64::from(s);
                signal += x * x;
                noise += error * error;
            }
        }
    }
    (signal, noise)
}

/// Decibels with two digits; `inf` without noise, `-` without signal.
impl fmt::Display for Sqnr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.signal == 0.0 {
            f.pad("-")
        } else {
            f.pad(&format!("{:.2}", 10.0 * (self.signal / self.noise).log10()))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn f32_rows(x: &[f32], q: &[u8], s: &[f32], hidden: usize) -> Sqnr {
        let mut sqnr = Sqnr::default();
        sqnr.add_rows(Element::F32, bytemuck::cast_slice(x), q, s, hidden);
        sqnr
    }

    // Codes of 1, 2 and -1.
    const ONE: u8 = 0x38;
    const TWO: u8 = 0x40;
    const MINUS_ONE: u8 = 0xB8;

    #[test]
    fn errors_are_relative_to_the_values() {
        // 9.5 and 20 became 10 and 20: 490.25 / 0.25 = 1961.
        let sqnr = f32_rows(&[9.5, 20.0], &[ONE, TWO], &[10.0], 2);
        assert_eq!(sqnr, Sqnr { signal: 9.5 * 9.5 + 400.0, noise: 0.25 });
        assert_eq!(sqnr.to_string(), "32.92");
    }

    #[test]
    fn exact_codes_have_no_noise_and_zeros_no_signal() {
        assert_eq!(f32_rows(&[1.0, -1.0], &[ONE, MINUS_ONE], &[1.0], 2).to_string(), "inf");
        assert_eq!(f32_rows(&[0.0, -0.0], &[0, 0x80], &[0.0], 2).to_string(), "-");
        // What an unguarded zero row makes of its zeros.
        assert_eq!(f32_rows(&[0.0, 0.0], &[0x7E, 0x7E], &[0.0], 2).to_string(), "-");
        assert_eq!(Sqnr::default().to_string(), "-");
    }

    #[test]
    fn only_finite_elements_of_rows_with_a_finite_scale_count() {
        let x = [1.0, f32::NAN, f32::INFINITY, 5.0];
        assert_eq!(f32_rows(&x, &[ONE, 0x7E, 0x7E, 0], &[1.0, f32::INFINITY], 2), Sqnr { signal: 1.0, noise: 0.0 });
    }

    #[test]
    fn grouping_of_rows_does_not_show() {
        let x: Vec<f32> = (0..4000).map(|i| (i as f32 * 0.37).sin()).collect();
        let q = vec![ONE; x.len()];
        let s = vec![0.3; 1000];
        let whole = f32_rows(&x, &q, &s, 4);
        let mut parts = Sqnr::default();
        for (x, (q, s)) in x.chunks(28).zip(q.chunks(28).zip(s.chunks(7))) {
            parts.add_rows(Element::F32, bytemuck::cast_slice(x), q, s, 4);
        }
        assert_eq!(whole, parts);
    }

    #[test]
    fn half_types_are_widened() {
        let mut sqnr = Sqnr::default();
        sqnr.add_rows(Element::F16, bytemuck::bytes_of(&[f16::from_f32(2.0)]), &[TWO], &[1.0], 1);
        sqnr.add_rows(Element::Bf16, bytemuck::bytes_of(&[bf16::from_f32(3.0)]), &[TWO], &[1.0], 1);
        assert_eq!(sqnr, Sqnr { signal: 13.0, noise: 1.0 });
    }
}
