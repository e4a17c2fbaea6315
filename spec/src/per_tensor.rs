//! Per-tensor quantization: `x`, any number of elements, to as many E4M3 codes `q` under one scale `s`.
//!
//! # Operation
//!
//! The scale is given ([`Scale::Static`]) or the absmax of the whole tensor over 448 ([`Scale::Dynamic`]). With every value
//! first widened exactly to f32:
//!
//! | step | precise mode | fast mode |
//! |---|---|---|
//! | absmax (dynamic) | max of \|x\|, starting at 0; NaN never raises it | same, on values whose subnormals are flushed |
//! | s (dynamic) | absmax / 448, correctly rounded | flush(absmax × 0x3B124925) |
//! | inv | 1 / s, correctly rounded | `rcp.approx.ftz.f32(s)` ([`crate::rcp`]) |
//! | v | x × inv, rounded to nearest | flush(flush(x) × inv) |
//! | clamp | min(v, 448) then max(·, −448); NaN becomes 448 | same |
//! | q | f32 → E4M3, round to nearest even | same |
//!
//! Source: the machine code of SGLang's `per_tensor_absmax_kernel` and `per_tensor_quant_fp8_kernel` (PyPI `sgl-kernel`
//! 0.3.21, the last wheel that holds them: later ones compile them at run time), module `sm90` for fast mode, `sm100` for
//! precise. In both, of every CTA the maximum is divided by 448 (`FMUL.FTZ` by the rounded reciprocal, or a rounded division)
//! and an integer maximum of the bits raises `s`, which the caller has set to zero: division by 448 keeps the order, so the
//! number of CTAs never shows. No kernel looks for a zero scale.
//!
//! # Scales out of the ordinary
//!
//! A static scale is used as it is, of either sign. What the codes are follows from the table:
//!
//! | s | inv | codes |
//! |---|---|---|
//! | +0; fast: a positive subnormal; precise: 0 < s ≤ 2^−128 | +inf | zeros and NaN → 0x7E, positive → 0x7E, negative → 0xFE |
//! | −0; the same with a minus | −inf | zeros and NaN → 0x7E, positive → 0xFE, negative → 0x7E |
//! | ±inf; fast: where the reciprocal is subnormal | ±0 | finite → ±0 by both signs, infinite and NaN → 0x7E |
//! | NaN | NaN | 0x7E |
//!
//! A tensor of zeros, of NaN, or none above what s underflows at ([`crate::fp8`]) has the dynamic scale 0. That is
//! [`crate::ZeroRows::Legacy`]. With [`crate::ZeroRows::Guarded`] a scale of ±0 (fast mode: or a subnormal one) has the
//! inverse 0, so that NaN and infinite elements become 0x7E and everything else a zero of its sign. −0.0 keeps its sign where
//! inv is finite and positive.
//!
//! # What the reference takes for granted
//!
//! - 16-byte alignment of `x` and `q`; its vector accesses fault otherwise. Here any alignment of the element will do.
//! - 32-bit indices: the element after the last whole vector, and that plus the threads of the grid (at most 2^18), must stay
//!   below 2^31, else it accesses memory before the tensor. Here indices have 64 bits.
//! - At least one element. Here nothing is written for none.
//!
//! The table of kernel entries that `kernels-gpu` defines and the GPU runtime launches is below.

use crate::per_token::LANES_PER_WARP;
use crate::shape::{Span, check_len_of, check_spans_of};
use crate::{Element, ShapeError};

/// Name of the operation, in errors and artifact names.
pub const KERNEL: &str = "per_tensor";

/// Most threads of a CTA that runs an entry: the kernels' launch bound.
pub const MAX_THREADS: u32 = 256;

/// CTAs of [`MAX_THREADS`] threads that a multiprocessor of any target holds at once, and that a large tensor's grid has for
/// each: all of them start together and keep working. What registers the entries of the policy take must allow it.
pub const CTAS_PER_SM: u32 = 5;

/// Where the scale comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Scale {
    /// The caller's: `s` is read.
    Static,
    /// The tensor's absmax over 448: `s` is written.
    Dynamic,
}

/// What an entry does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Pass {
    /// Raises `s` to the tensor's scale; it holds 0 before.
    Absmax,
    /// Quantizes by `s`.
    Quantize,
}

/// One kernel entry. The same names exist in the artifact of every element type.
///
/// Arguments, in order: `x` pointer, `q` pointer, `s` pointer, `elements: u64`, `guard: u32` (non-zero: a zero scale gives a
/// zero inverse). [`Pass::Absmax`] leaves `q` and `guard` alone. Any grid will do: its threads take vectors in turn, and the
/// first of them the elements that are left over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Entry {
    /// Symbol in the module.
    pub name: &'static str,
    /// What it does.
    pub pass: Pass,
    /// Elements a thread loads at once, less than the threads of a warp. A vector is loaded by accesses of at most
    /// [`crate::Target::vector_bytes`] and stored by one store.
    pub elements_per_vector: u32,
}

/// Calls `$define! { (name, Pass, elements per vector), ... }` with every entry.
#[macro_export]
macro_rules! for_each_per_tensor_entry {
    ($define:ident) => {
        $define! {
            (per_tensor_absmax_e1, Absmax, 1),
            (per_tensor_absmax_e4, Absmax, 4),
            (per_tensor_absmax_e8, Absmax, 8),
            (per_tensor_absmax_e16, Absmax, 16),
            (per_tensor_quantize_e1, Quantize, 1),
            (per_tensor_quantize_e4, Quantize, 4),
            (per_tensor_quantize_e8, Quantize, 8),
            (per_tensor_quantize_e16, Quantize, 16),
        }
    };
}

macro_rules! table {
    ($(($name:ident, $pass:ident, $elements:literal),)*) => {
        /// Every kernel entry.
        pub const ENTRIES: &[Entry] =
            &[$(Entry { name: stringify!($name), pass: Pass::$pass, elements_per_vector: $elements }),*];

        /// Their names, in the same order.
        pub const ENTRY_NAMES: &[&str] = &[$(stringify!($name)),*];

        // The elements after the last vector are one a thread, of the first warp alone.
        const _: () = assert!($($elements < LANES_PER_WARP)&&*);
    };
}
for_each_per_tensor_entry!(table);

impl Scale {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Static, Self::Dynamic];

    /// Lower-case name, for reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Static => "static",
            Self::Dynamic => "dynamic",
        }
    }
}

impl core::fmt::Display for Scale {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(self.name())
    }
}

impl Pass {
    /// Barriers (`bar.sync`) that an entry of this pass executes, and that its PTX holds.
    pub const fn barriers(self) -> usize {
        match self {
            Self::Absmax => 2,
            Self::Quantize => 0,
        }
    }
}

impl Entry {
    /// The entry of that pass and width, if there is one.
    pub fn find(pass: Pass, elements_per_vector: u32) -> Option<&'static Self> {
        ENTRIES.iter().find(|e| e.pass == pass && e.elements_per_vector == elements_per_vector)
    }

    /// The entry of that name, if there is one.
    pub fn named(name: &str) -> Option<&'static Self> {
        ENTRIES.iter().find(|e| e.name == name)
    }

    /// Whether operands at these addresses are aligned for its vectors, where one access is of at most `vector_bytes`.
    pub const fn suits(&self, element: Element, vector_bytes: usize, x: u64, q: u64) -> bool {
        let width = self.elements_per_vector as u64;
        let bytes = width * element.bytes() as u64;
        let load = if bytes < vector_bytes as u64 { bytes } else { vector_bytes as u64 };
        let stores = matches!(self.pass, Pass::Quantize);
        x.is_multiple_of(load) && (!stores || q.is_multiple_of(width))
    }
}

/// Checks a call by addresses: size, alignment, overlap. `x` and `q` have `elements` elements, `s` has one.
///
/// # Errors
/// [`ShapeError::Overflow`], [`ShapeError::Misaligned`], [`ShapeError::Overlap`].
pub fn check_addresses(element: Element, elements: u64, x: u64, q: u64, s: u64) -> Result<(), ShapeError> {
    // The widest element bounds all operands.
    let widest = Element::F32.bytes() as u64;
    if elements.checked_mul(widest).is_none_or(|bytes| bytes > isize::MAX as u64) {
        return Err(ShapeError::Overflow { kernel: KERNEL, operand: "x", rows: 1, hidden: elements });
    }
    check_spans_of(
        KERNEL,
        &[
            Span { operand: "x", address: x, bytes: elements * element.bytes() as u64, align: element.bytes() as u64 },
            Span { operand: "q", address: q, bytes: elements, align: 1 },
            Span { operand: "s", address: s, bytes: 4, align: 4 },
        ],
    )
}

/// Checks the element counts of three operands: `q` has as many as `x`, `s` one.
///
/// # Errors
/// [`ShapeError::Len`] naming the first operand of another length.
pub const fn check_lens(x: u64, q: u64, s: u64) -> Result<(), ShapeError> {
    if let Err(e) = check_len_of(KERNEL, "q", x, q) {
        return Err(e);
    }
    check_len_of(KERNEL, "s", 1, s)
}

#[cfg(test)]
mod tests {
    extern crate std;

    use super::*;
    use std::format;

    #[test]
    fn entry_names_say_what_the_entry_is() {
        for entry in ENTRIES {
            let pass = if entry.pass == Pass::Absmax { "absmax" } else { "quantize" };
            assert_eq!(entry.name, format!("{KERNEL}_{pass}_e{}", entry.elements_per_vector));
            assert_eq!(Entry::find(entry.pass, entry.elements_per_vector), Some(entry));
            assert_eq!(Entry::named(entry.name), Some(entry));
        }
        assert!(Entry::find(Pass::Absmax, 2).is_none() && Entry::named("per_tensor").is_none());
    }

    #[test]
    fn any_address_finds_an_entry() {
        for element in Element::ALL {
            for pass in [Pass::Absmax, Pass::Quantize] {
                assert!(Entry::find(pass, 1).unwrap().suits(element, 16, element.bytes() as u64, 1));
            }
        }
        let quantize = Entry::find(Pass::Quantize, 8).unwrap();
        assert!(quantize.suits(Element::Bf16, 16, 16, 8) && !quantize.suits(Element::Bf16, 16, 8, 8));
        assert!(!quantize.suits(Element::Bf16, 16, 16, 4), "q is stored 8 bytes at a time");
        assert!(quantize.suits(Element::F32, 16, 16, 8) && !quantize.suits(Element::F32, 32, 16, 8));
        assert!(Entry::find(Pass::Absmax, 8).unwrap().suits(Element::Bf16, 16, 16, 1), "q is not touched");
    }

    #[test]
    fn addresses_are_checked() {
        let check = |elements, x, q, s| check_addresses(Element::Bf16, elements, x, q, s);
        assert_eq!(check(16, 0x1000, 0x2001, 0x3004), Ok(()));
        let misaligned =
            |operand, expected, actual| Err(ShapeError::Misaligned { kernel: KERNEL, operand, expected, actual });
        assert_eq!(check(16, 0x1001, 0x2000, 0x3000), misaligned("x", 2, 0x1001));
        assert_eq!(check(16, 0x1000, 0x2000, 0x3002), misaligned("s", 4, 0x3002));
        let overlap = |operand, other| Err(ShapeError::Overlap { kernel: KERNEL, operand, other });
        assert_eq!(check(16, 0x1000, 0x101F, 0x3000), overlap("x", "q"));
        assert_eq!(check(16, 0x1000, 0x2000, 0x101C), overlap("x", "s"));
        assert_eq!(check(16, 0x1000, 0x2000, 0x200C), overlap("q", "s"));
        let most = isize::MAX as u64 / 4;
        assert_eq!(check(most, 0, u64::MAX / 2, u64::MAX - 3), Ok(()));
        for elements in [most + 1, 1 << 62, u64::MAX] {
            let error = ShapeError::Overflow { kernel: KERNEL, operand: "x", rows: 1, hidden: elements };
            assert_eq!(check(elements, 0, 0, 0), Err(error));
        }
    }

    #[test]
    fn lengths_are_the_input_s_and_one() {
        assert_eq!(check_lens(7, 7, 1), Ok(()));
        let error = |operand, expected, actual| Err(ShapeError::Len { kernel: KERNEL, operand, expected, actual });
        assert_eq!(check_lens(7, 8, 1), error("q", 7, 8));
        assert_eq!(check_lens(7, 7, 0), error("s", 1, 0));
        assert_eq!(check_lens(7, 7, 7), error("s", 1, 7));
    }
}
