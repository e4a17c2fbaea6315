//! Element types, as a thread finds them in 32-bit words.

use crate::arch;
use crate::math;

/// An element type of the input, packed in 32-bit words.
///
/// The running absmax is kept in one word as well (`0` at the start), so that 16-bit types can compare two elements with
/// one instruction.
pub trait Element: Copy {
    /// Bytes of one element.
    const BYTES: usize;
    /// Elements in a word.
    const PER_WORD: usize = 4 / Self::BYTES;

    /// Raises the running absmax by the elements of `word`.
    fn absmax_word(absmax: u32, word: u32) -> u32;

    /// The running absmax as one number.
    fn absmax_value(absmax: u32) -> f32;

    /// Element `index` of `word`, widened exactly.
    fn widen(word: u32, index: usize) -> f32;
}

/// bfloat16.
#[derive(Clone, Copy)]
pub enum Bf16 {}

/// IEEE binary16.
#[derive(Clone, Copy)]
pub enum F16 {}

/// IEEE binary32.
#[derive(Clone, Copy)]
pub enum F32 {}

/// Both halves of a word without their signs.
const MAGNITUDES_16: u32 = 0x7FFF_7FFF;

impl Element for Bf16 {
    const BYTES: usize = 2;

    #[inline(always)]
    fn absmax_word(absmax: u32, word: u32) -> u32 {
        arch::max_bf16x2(absmax, word & MAGNITUDES_16)
    }

    #[inline(always)]
    fn absmax_value(absmax: u32) -> f32 {
        math::absmax(Self::widen(absmax, 0), Self::widen(absmax, 1))
    }

    #[inline(always)]
    fn widen(word: u32, index: usize) -> f32 {
        f32::from_bits(if index == 0 { word << 16 } else { word & 0xFFFF_0000 })
    }
}

impl Element for F16 {
    const BYTES: usize = 2;

    #[inline(always)]
    fn absmax_word(absmax: u32, word: u32) -> u32 {
        arch::max_f16x2(absmax, word & MAGNITUDES_16)
    }

    #[inline(always)]
    fn absmax_value(absmax: u32) -> f32 {
        math::absmax(Self::widen(absmax, 0), Self::widen(absmax, 1))
    }

    #[inline(always)]
    fn widen(word: u32, index: usize) -> f32 {
        arch::widen_f16((word >> (16 * index)) as u16)
    }
}

impl Element for F32 {
    const BYTES: usize = 4;

    #[inline(always)]
    fn absmax_word(absmax: u32, word: u32) -> u32 {
        math::absmax(f32::from_bits(absmax), f32::from_bits(word)).to_bits()
    }

    #[inline(always)]
    fn absmax_value(absmax: u32) -> f32 {
        f32::from_bits(absmax)
    }

    #[inline(always)]
    fn widen(word: u32, _index: usize) -> f32 {
        f32::from_bits(word)
    }
}
