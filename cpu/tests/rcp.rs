//! The model of `rcp.approx.ftz.f32` against what an H200 returned (`data/README.md`).

use flate2::read::GzDecoder;
use ptq_spec::rcp::rcp_approx_ftz;
use std::io::Read;

const MEASURED: &[u8] = include_bytes!("data/mufu_rcp_sm90_delta.i8.gz");
const ONE: u32 = 1.0f32.to_bits();
const MANTISSAS: usize = 1 << 23;

/// Difference to the correctly rounded reciprocal, in units in the last place, for every mantissa.
fn measured() -> Vec<i8> {
    let mut deltas = Vec::with_capacity(MANTISSAS);
    GzDecoder::new(MEASURED).read_to_end(&mut deltas).expect("the file is gzip");
    assert_eq!(deltas.len(), MANTISSAS);
    deltas.into_iter().map(|delta| delta as i8).collect()
}

#[test]
fn every_mantissa_gives_what_the_hardware_gave() {
    for (bits, delta) in (ONE..).zip(measured()) {
        let rounded = (1.0 / f32::from_bits(bits)).to_bits();
        let expected = rounded.wrapping_add_signed(delta.into());
        let actual = rcp_approx_ftz(bits);
        assert_eq!(actual, expected, "of {bits:#010x}: {actual:#010x}, the hardware gave {expected:#010x}");
    }
}

/// Halving the input doubles the result, and its sign is copied, as long as the result is normal.
#[test]
fn every_exponent_scales_the_mantissas_result() {
    for mantissa in (0..MANTISSAS as u32).step_by(0x1001).chain([1, 0x7F_FFFF]) {
        let of_one_to_two = f32::from_bits(rcp_approx_ftz(ONE + mantissa));
        for exponent in 1..255u32 {
            let bits = exponent << 23 | mantissa;
            // Exact in f64; below 2^-126 the instruction flushes.
            let exact = f64::from(of_one_to_two) * 2f64.powi(127 - exponent as i32);
            let expected = if exact < f64::from(f32::MIN_POSITIVE) { 0.0 } else { exact as f32 };
            assert_eq!(rcp_approx_ftz(bits), expected.to_bits(), "of {bits:#010x}");
            assert_eq!(rcp_approx_ftz(1 << 31 | bits), (-expected).to_bits(), "of -{bits:#010x}");
        }
    }
}

#[test]
fn special_operands() {
    let rcp = |v: f32| rcp_approx_ftz(v.to_bits());
    for zero in [0.0, f32::from_bits(1), f32::MIN_POSITIVE.next_down()] {
        assert_eq!(rcp(zero), f32::INFINITY.to_bits(), "{zero:e}");
        assert_eq!(rcp(-zero), f32::NEG_INFINITY.to_bits(), "-{zero:e}");
    }
    assert_eq!(rcp(f32::INFINITY), 0.0f32.to_bits());
    assert_eq!(rcp(f32::NEG_INFINITY), (-0.0f32).to_bits());
    for nan in [0x7F80_0001, 0x7FC0_0000, 0x7FFF_FFFF, 0xFF80_0001, 0xFFC0_0000, 0xFFFF_FFFF] {
        assert_eq!(rcp_approx_ftz(nan), 0x7FFF_FFFF, "{nan:#010x}");
    }
}
