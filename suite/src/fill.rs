//! Large inputs, made on all threads.

use crate::sample::Random;
use std::thread;

/// Fills `x[rows, hidden]` with random rows; the same ones for the same `seed`.
///
/// Of every four rows one is any bits, NaN and infinities among them; the exponents of each other row lie within 24 of a
/// random largest one, so that together they have every scale and spread over all codes.
///
/// # Panics
/// Where `x` is not whole rows.
pub fn random_rows(x: &mut [f32], hidden: usize, seed: u32) {
    assert!(x.len().is_multiple_of(hidden), "{} elements are no whole rows of {hidden}", x.len());
    let threads = thread::available_parallelism().map_or(1, usize::from);
    let rows_per_thread = (x.len() / hidden).div_ceil(threads).max(1);
    thread::scope(|scope| {
        for (thread, x) in x.chunks_mut(rows_per_thread * hidden).enumerate() {
            scope.spawn(move || {
                for (row, x) in x.chunks_exact_mut(hidden).enumerate() {
                    fill(x, seed, thread * rows_per_thread + row);
                }
            });
        }
    });
}

fn fill(x: &mut [f32], seed: u32, row: usize) {
    let mut random = Random(u64::from(seed) << 32 | row as u64);
    if row.is_multiple_of(4) {
        x.fill_with(|| random.any());
    } else {
        let largest = random.exponent();
        x.fill_with(|| random.near(largest));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    const HIDDEN: usize = 8;

    fn bits(seed: u32, rows: usize) -> Vec<u32> {
        let mut x = vec![0.0; rows * HIDDEN];
        random_rows(&mut x, HIDDEN, seed);
        x.into_iter().map(f32::to_bits).collect()
    }

    #[test]
    fn rows_depend_on_seed_and_number_alone() {
        let all = bits(1, 1000);
        assert_eq!(
            all[..HIDDEN * 17],
            bits(1, 17),
            "the number of rows, and so the split into threads, changes nothing"
        );
        assert_ne!(all, bits(2, 1000));
        let rows: BTreeSet<_> = all.chunks(HIDDEN).collect();
        assert_eq!(rows.len(), 1000, "no row twice");
    }

    #[test]
    fn every_exponent_and_sign_occurs_and_rows_stay_near_their_largest() {
        let all = bits(3, 10_000);
        let exponent = |bits: u32| (bits & f32::INFINITY.to_bits()) >> (f32::MANTISSA_DIGITS - 1);
        let seen: BTreeSet<_> = all.iter().map(|&bits| (exponent(bits), bits >> 31)).collect();
        assert_eq!(seen.len(), 2 * 256, "those of NaN and infinity too");
        for (number, row) in all.chunks(HIDDEN).enumerate().filter(|(number, _)| !number.is_multiple_of(4)) {
            let exponents = || row.iter().map(|&bits| exponent(bits));
            let (least, most) = (exponents().min().unwrap(), exponents().max().unwrap());
            assert!(most < 255 && most - least < 24, "row {number}: {least} to {most}");
        }
    }
}
