//! The families of calls, one function each. The oracle says what is right, and all inputs are the same in every run.

use super::{Call, GivenScale};
use crate::cases::{special_values as specials, tensor};
use crate::sample::{Random, Sample, with_element};
use crate::{Budget, Tensor};
use ptq_spec::{Element, MathMode};
use std::sync::Arc;

/// A static scale under which ordinary values spread over the codes.
const ORDINARY: GivenScale = GivenScale::Static(1.0 / 32.0);

/// The same input by each of the scales, in both math modes.
fn calls(what: &str, x: Tensor, scales: &[GivenScale]) -> Vec<Call> {
    let x = Arc::new(x);
    let of = |math| scales.iter().map(move |&scale| (math, scale));
    MathMode::ALL.into_iter().flat_map(of).map(|(math, scale)| Call::new(what, &x, scale, math)).collect()
}

/// Each call, and the same with a guarded zero scale.
fn both_guards(calls: Vec<Call>) -> impl Iterator<Item = Call> {
    calls.into_iter().flat_map(|call| [call.clone(), call.guarded()])
}

/// Ordinary values.
fn ordinary(element: Element, elements: usize, offset: usize, seed: u64) -> Tensor {
    let mut random = Random(seed);
    with_element!(element, T => tensor::<T>(1, elements, offset, |_, _| random.moderate()))
}

/// Any bits.
fn any(element: Element, elements: usize, seed: u64) -> Tensor {
    let mut random = Random(seed);
    with_element!(element, T => tensor::<T>(1, elements, 0, |_, _| random.any()))
}

/// Numbers of elements around those of vectors, warps, CTAs and tasks, none at all among them.
pub fn sizes(budget: Budget) -> impl Iterator<Item = Call> {
    let around = |n: usize| [n - 1, n, n + 1];
    let larger = [128, 256, 512, 1000, 1024, 2048, 4096, 8192, 1 << 15, 1 << 16, 100_003].into_iter().flat_map(around);
    let largest = [(1 << 20) + 13, (1 << 22) - 5, (1 << 24) + 3];
    let sizes = (0..=67).chain(larger).chain(largest).filter(move |&n| n <= budget.elements);
    Element::ALL.into_iter().flat_map(move |element| {
        sizes
            .clone()
            .flat_map(move |n| calls("size", ordinary(element, n, 0, n as u64), &[ORDINARY, GivenScale::Dynamic]))
    })
}

/// The largest element in each part of a tensor that several CTAs work on, and in what is left over after the vectors.
pub fn largest_at_each_part(budget: Budget) -> impl Iterator<Item = Call> {
    const ELEMENTS: usize = 5 * 4096 + 7;
    let places = (0..ELEMENTS).step_by(509).chain(ELEMENTS - 8..ELEMENTS);
    Element::ALL.into_iter().filter(move |_| ELEMENTS <= budget.elements).flat_map(move |element| {
        places.clone().flat_map(move |place| {
            let x = with_element!(element, T => largest_at::<T>(ELEMENTS, place));
            calls(&format!("the largest at {place}"), x, &[GivenScale::Dynamic])
        })
    })
}

fn largest_at<T: Sample>(elements: usize, place: usize) -> Tensor {
    let mut random = Random(place as u64);
    let largest = T::SIGN | (T::ONE + 5 * T::MIN_NORMAL + place as u32 % 7);
    tensor::<T>(1, elements, 0, |_, i| if i == place { T::with_bits(largest) } else { random.moderate() })
}

/// Any bits, by any scale: of f32 every exponent of both.
pub fn any_bits(budget: Budget) -> impl Iterator<Item = Call> {
    let elements = 3000.min(budget.elements);
    Element::ALL.into_iter().flat_map(move |element| {
        (0..150).flat_map(move |seed| {
            let scale = f32::from_bits(Random(1000 + seed).bits());
            calls("any bits", any(element, elements, seed), &[GivenScale::Static(scale), GivenScale::Dynamic])
        })
    })
}

/// All 65,536 patterns of the 16-bit types, and as many of f32: those with the same upper half.
pub fn every_pattern(budget: Budget) -> impl Iterator<Item = Call> {
    const PATTERNS: usize = 1 << 16;
    let scales = [1.0, 1.0 / 448.0, 3e-5, -7.5, 3.3e20, 1e-30].map(GivenScale::Static);
    Element::ALL.into_iter().filter(move |_| PATTERNS <= budget.elements).flat_map(move |element| {
        let x = with_element!(element, T => patterns::<T>(PATTERNS, u32::MAX));
        // Without what is not finite, so that the dynamic scale is.
        let finite = with_element!(element, T => patterns::<T>(PATTERNS, <T as Sample>::INFINITY - 1));
        calls("every pattern", x, &scales).into_iter().chain(calls(
            "every finite pattern",
            finite,
            &[GivenScale::Dynamic],
        ))
    })
}

/// One element of each pattern of the upper 16 bits, with magnitudes of up to `most`.
fn patterns<T: Sample>(elements: usize, most: u32) -> Tensor {
    tensor::<T>(1, elements, 0, |_, i| {
        let bits = if size_of::<T>() == 4 { (i as u32) << 16 | 0x8001 } else { i as u32 };
        T::with_bits(bits & T::SIGN | (bits & !T::SIGN).min(most & !T::SIGN))
    })
}

/// Each special value at places of its own among ordinary values, zeros, NaN and subnormals; tensors of nothing else.
pub fn special_values(budget: Budget) -> impl Iterator<Item = Call> {
    const ELEMENTS: usize = 61;
    Element::ALL.into_iter().filter(move |_| ELEMENTS <= budget.elements).flat_map(|element| {
        let values: Vec<(String, u32)> = with_element!(element, T => specials::<T>().collect());
        values.into_iter().flat_map(move |(name, bits)| {
            ["ordinary values", "zeros", "NaN", "subnormals", "itself"].into_iter().flat_map(move |background| {
                let x = with_element!(element, T => among::<T>(ELEMENTS, bits, background));
                both_guards(calls(&format!("{name} among {background}"), x, &[ORDINARY, GivenScale::Dynamic]))
            })
        })
    })
}

fn among<T: Sample>(elements: usize, bits: u32, background: &str) -> Tensor {
    let mut random = Random(2);
    tensor::<T>(1, elements, 0, |_, i| {
        T::with_bits(match background {
            _ if [0, 30, elements - 1].contains(&i) => bits,
            "ordinary values" => return random.moderate(),
            "subnormals" => return random.up_to(0),
            "zeros" => 0,
            "NaN" => T::NAN,
            _ => bits,
        })
    })
}

/// Scales out of the ordinary: zeros, subnormals, infinities, NaN, negative ones, and those whose reciprocal is none of the
/// ordinary numbers; guarded too.
pub fn special_scales(budget: Budget) -> impl Iterator<Item = Call> {
    const ELEMENTS: usize = 997;
    /// 2^-128, up to which the rounded reciprocal is infinite.
    const OVERFLOWS: u32 = 1 << 21;
    /// 2^126, from which on reciprocals are subnormal but for this one.
    const UNDERFLOWS: u32 = (127 + 126) << 23;
    let magnitudes = [
        0,
        1,
        OVERFLOWS - 1,
        OVERFLOWS,
        OVERFLOWS + 1,
        OVERFLOWS + 64,
        0x007F_FFFF,
        0x0080_0000,
        0x0080_0001,
        0x04E0_0000,
        UNDERFLOWS - 1,
        UNDERFLOWS,
        UNDERFLOWS + 1,
        0x7F00_0000,
        0x7F7F_FFFF,
        0x7F80_0000,
        0x7F80_0001,
        0x7FC0_0000,
        0x7FFF_FFFF,
        1.0f32.to_bits(),
        (1.0f32 / 448.0).to_bits(),
    ];
    let scales = magnitudes.into_iter().flat_map(|bits| [bits, 1 << 31 | bits]);
    Element::ALL.into_iter().filter(move |_| ELEMENTS <= budget.elements).flat_map(move |element| {
        let inputs = [("any bits", any(element, ELEMENTS, 7)), ("ordinary values", ordinary(element, ELEMENTS, 0, 8))];
        let scales: Vec<_> = scales.clone().map(|bits| GivenScale::Static(f32::from_bits(bits))).collect();
        inputs.into_iter().flat_map(move |(what, x)| both_guards(calls(what, x, &scales)))
    })
}

/// Tensors whose largest element has each exponent: every dynamic scale's, zero and what underflows among them.
pub fn exponents(budget: Budget) -> impl Iterator<Item = Call> {
    const ELEMENTS: usize = 37;
    Element::ALL.into_iter().filter(move |_| ELEMENTS <= budget.elements).flat_map(|element| {
        let exponents = with_element!(element, T => <T as Sample>::INFINITY / <T as Sample>::MIN_NORMAL);
        (0..exponents).flat_map(move |exponent| {
            let mut random = Random(exponent.into());
            let x = with_element!(element, T => tensor::<T>(1, ELEMENTS, 0, |_, _| random.up_to(exponent)));
            both_guards(calls(&format!("exponents up to {exponent}"), x, &[GivenScale::Dynamic]))
        })
    })
}

/// `x` and `q` off a vector's alignment, each alone and both: a vector access would fault or a narrower path be taken.
pub fn off_alignment(budget: Budget) -> impl Iterator<Item = Call> {
    let alone = (1..=8).flat_map(|offset| [(offset, 0), (0, offset)]);
    let offsets = [(1, 1), (3, 5), (2, 2), (4, 4), (8, 8), (4, 8), (8, 4), (16, 16)].into_iter().chain(alone);
    let sizes = [1, 15, 16, 33, 1076, 4099, 20_001];
    Element::ALL.into_iter().flat_map(move |element| {
        let offsets = offsets.clone();
        sizes.into_iter().filter(move |&n| n <= budget.elements).flat_map(move |n| {
            offsets.clone().flat_map(move |(x_offset, q_offset)| {
                let x = ordinary(element, n, x_offset, n as u64);
                let what = format!("x off by {x_offset} elements, q by {q_offset} bytes");
                calls(&what, x, &[ORDINARY, GivenScale::Dynamic]).into_iter().map(move |call| Call { q_offset, ..call })
            })
        })
    })
}
