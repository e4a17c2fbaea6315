//! What the entries refuse before they ask the device for anything: every field, without a GPU.

use crate::driver::Place;
use crate::quantizer::tests::h200;
use crate::{Error, F16, PerTensorArgs, Prepared, PreparedTensor, RawArgs};
use cust::memory::{DevicePointer, DeviceSlice};
use ptq_spec::per_token::KERNEL;
use ptq_spec::{Element, Extended, Options, Scale, Shape, ShapeError, ZeroRows, per_tensor};
use std::ptr;

const ROWS: u64 = 2;
const ROWS_OUT: u64 = 3;
const HIDDEN: u64 = 8;
const X: u64 = 1 << 20;
const Q: u64 = 2 << 20;
const S: u64 = 3 << 20;

fn shape() -> Shape {
    Shape::padded(ROWS, ROWS_OUT, HIDDEN).unwrap()
}

fn slice<T: cust::memory::DeviceCopy>(address: u64, elements: u64) -> DeviceSlice<T> {
    // SAFETY: nobody reads or writes through it: the tests see it refused.
    unsafe { DeviceSlice::from_raw_parts(DevicePointer::from_raw(address), elements as usize) }
}

/// `prepare_slices` on f16 operands, each with address and number of elements.
fn prepared(x: (u64, u64), q: (u64, u64), s: (u64, u64)) -> Result<Prepared<'static>, Error> {
    let (x, q, s) = (slice::<F16>(x.0, x.1), slice(q.0, q.1), slice(s.0, s.1));
    // SAFETY: nothing is launched.
    unsafe { h200().prepare_slices(x, q, s, shape(), Options::default()) }
}

#[test]
fn prepare_refuses_other_lengths() {
    let (x, q, s) = (ROWS * HIDDEN, ROWS_OUT * HIDDEN, ROWS_OUT);
    let error = |operand, expected, actual| Error::Shape(ShapeError::Len { kernel: KERNEL, operand, expected, actual });
    for wrong in [0, 1, x - 1, x + 1, q] {
        assert_eq!(prepared((X, wrong), (Q, q), (S, s)).unwrap_err(), error("x", x, wrong));
    }
    for wrong in [0, 1, x, q - 1, q + 1] {
        assert_eq!(prepared((X, x), (Q, wrong), (S, s)).unwrap_err(), error("q", q, wrong));
    }
    for wrong in [0, 1, ROWS, s + 1, q] {
        assert_eq!(prepared((X, x), (Q, q), (S, wrong)).unwrap_err(), error("s", s, wrong));
    }
}

/// Through every entry that takes addresses.
#[track_caller]
fn refused(x: u64, q: u64, s: u64, expected: ShapeError) {
    let prepared = prepared((x, ROWS * HIDDEN), (q, ROWS_OUT * HIDDEN), (s, ROWS_OUT));
    assert_eq!(prepared.unwrap_err(), Error::Shape(expected));
    let args = RawArgs::new(Element::F16, x, q, s, shape());
    assert_eq!(h200().choose(&args).unwrap_err(), Error::Shape(expected));
    // SAFETY: nothing is launched: the arguments are refused.
    let raw = unsafe { h200().quantize_raw(args, ptr::null_mut()) };
    assert_eq!(raw.unwrap_err(), Error::Shape(expected));
}

#[test]
fn every_entry_refuses_misaligned_operands() {
    let error = |operand, expected, actual| ShapeError::Misaligned { kernel: KERNEL, operand, expected, actual };
    refused(X + 1, Q, S, error("x", 2, X + 1));
    refused(u64::MAX, Q, S, error("x", 2, u64::MAX));
    for odd in [1, 2, 3] {
        refused(X, Q, S + odd, error("s", 4, S + odd));
    }
}

#[test]
fn every_entry_refuses_overlapping_operands() {
    let error = |operand, other| ShapeError::Overlap { kernel: KERNEL, operand, other };
    let (x_bytes, q_bytes) = (2 * ROWS * HIDDEN, ROWS_OUT * HIDDEN);
    refused(X, X, S, error("x", "q"));
    refused(X, X + x_bytes - 1, S, error("x", "q"));
    refused(Q + q_bytes - 2, Q, S, error("x", "q"));
    refused(X, Q, X + x_bytes - 4, error("x", "s"));
    refused(X, S + 4 * ROWS_OUT - 1, S, error("q", "s"));
    // Null operands, of which no two can be told apart.
    refused(0, 0, 0, error("x", "q"));
}

/// Rows of `x` 9 elements apart, of `q` 10.
const STRIDED: Extended = Extended { x_stride: 9, q_stride: 10, scale_upper_bound: None, min_scale: None };

/// `prepare_extended_slices` on f16 operands of that many elements.
fn prepared_extended([x, q, s]: [u64; 3], extended: Extended) -> Result<Prepared<'static>, Error> {
    let (x, q, s) = (slice::<F16>(X, x), slice(Q, q), slice(S, s));
    // SAFETY: nothing is launched.
    unsafe { h200().prepare_extended_slices(x, q, s, shape(), Options::default(), extended) }
}

#[test]
fn prepare_refuses_strided_operands_that_end_too_early() {
    let error =
        |operand, expected, actual| Error::Shape(ShapeError::TooShort { kernel: KERNEL, operand, expected, actual });
    assert_eq!(prepared_extended([16, 28, ROWS_OUT], STRIDED).unwrap_err(), error("x", 17, 16));
    assert_eq!(prepared_extended([17, 27, ROWS_OUT], STRIDED).unwrap_err(), error("q", 28, 27));
    for actual in [ROWS, ROWS_OUT + 1] {
        let error = ShapeError::Len { kernel: KERNEL, operand: "s", expected: ROWS_OUT, actual };
        assert_eq!(prepared_extended([17, 28, actual], STRIDED).unwrap_err(), Error::Shape(error));
    }
}

/// Through the entries that take a count of rows.
#[track_caller]
fn refused_raw(args: RawArgs, expected: ShapeError) {
    assert_eq!(h200().choose(&args).unwrap_err(), Error::Shape(expected));
    // SAFETY: nothing is launched: the arguments are refused.
    let raw = unsafe { h200().quantize_raw(args, ptr::null_mut()) };
    assert_eq!(raw.unwrap_err(), Error::Shape(expected));
}

#[test]
fn every_entry_refuses_bad_strides_and_bounds() {
    let stride = |operand, actual| ShapeError::Stride { kernel: KERNEL, operand, expected: HIDDEN, actual };
    let overflow = |operand, rows| ShapeError::StrideOverflow { kernel: KERNEL, operand, rows, stride: u64::MAX };
    let bound = |operand, actual: f32| ShapeError::Bound { kernel: KERNEL, operand, actual: actual.to_bits() };
    let overlap = |operand, other| ShapeError::Overlap { kernel: KERNEL, operand, other };
    for (extended, expected) in [
        (Extended { x_stride: HIDDEN - 1, ..STRIDED }, stride("x", HIDDEN - 1)),
        (Extended { q_stride: 1, ..STRIDED }, stride("q", 1)),
        (Extended { x_stride: u64::MAX, ..STRIDED }, overflow("x", ROWS)),
        (Extended { q_stride: u64::MAX, ..STRIDED }, overflow("q", ROWS_OUT)),
        (Extended { scale_upper_bound: Some(0.0), ..STRIDED }, bound("scale_upper_bound", 0.0)),
        (Extended { scale_upper_bound: Some(f32::NAN), ..STRIDED }, bound("scale_upper_bound", f32::NAN)),
        (Extended { min_scale: Some(-1.0), ..STRIDED }, bound("min_scale", -1.0)),
        (Extended { min_scale: Some(f32::INFINITY), ..STRIDED }, bound("min_scale", f32::INFINITY)),
        // The gaps of `x` are parts of it.
        (Extended { x_stride: (Q - X) / 2, ..STRIDED }, overlap("x", "q")),
    ] {
        // As long as the strides ask for, where there is such a length.
        let lens = [Q - X, S - Q, ROWS_OUT];
        assert_eq!(prepared_extended(lens, extended).unwrap_err(), Error::Shape(expected));
        refused_raw(RawArgs { extended, ..RawArgs::new(Element::F16, X, Q, S, shape()) }, expected);
    }
}

#[test]
fn raw_entries_refuse_a_count_of_rows_that_is_misaligned_or_in_an_output() {
    let args = RawArgs { extended: STRIDED, ..RawArgs::new(Element::F16, X, Q, S, shape()) };
    let overlap = |operand| ShapeError::Overlap { kernel: KERNEL, operand, other: "device_rows" };
    for odd in [1, 2, 3] {
        let actual = (4 << 20) + odd;
        let error = ShapeError::Misaligned { kernel: KERNEL, operand: "device_rows", expected: 4, actual };
        refused_raw(RawArgs { device_rows: actual, ..args }, error);
    }
    refused_raw(RawArgs { device_rows: Q + 24, ..args }, overlap("q"));
    refused_raw(RawArgs { device_rows: S + 4 * (ROWS_OUT - 1), ..args }, overlap("s"));
}

/// `prepare_per_tensor_slices` on f16 operands, each with address and number of elements.
fn prepared_tensor(
    x: (u64, u64),
    q: (u64, u64),
    s: (u64, u64),
    scale: Scale,
) -> Result<PreparedTensor<'static>, Error> {
    let (x, q, s) = (slice::<F16>(x.0, x.1), slice(q.0, q.1), slice(s.0, s.1));
    // SAFETY: nothing is launched.
    unsafe { h200().prepare_per_tensor_slices(x, q, s, scale, ZeroRows::Legacy) }
}

#[test]
fn prepare_per_tensor_refuses_other_lengths() {
    let kernel = per_tensor::KERNEL;
    let error = |operand, expected, actual| Error::Shape(ShapeError::Len { kernel, operand, expected, actual });
    for scale in Scale::ALL {
        for wrong in [0, 8, 10] {
            assert_eq!(prepared_tensor((X, 9), (Q, wrong), (S, 1), scale).unwrap_err(), error("q", 9, wrong));
        }
        for wrong in [0, 2, 9] {
            assert_eq!(prepared_tensor((X, 9), (Q, 9), (S, wrong), scale).unwrap_err(), error("s", 1, wrong));
        }
    }
}

#[test]
fn every_per_tensor_entry_refuses_bad_addresses() {
    let kernel = per_tensor::KERNEL;
    let misaligned = |operand, expected, actual| ShapeError::Misaligned { kernel, operand, expected, actual };
    let overlap = |operand, other| ShapeError::Overlap { kernel, operand, other };
    let raw = |args: PerTensorArgs, expected| {
        assert_eq!(h200().choose_per_tensor(&args).unwrap_err(), Error::Shape(expected));
        // SAFETY: nothing is launched: the arguments are refused.
        let raw = unsafe { h200().quantize_per_tensor_raw(args, ptr::null_mut()) };
        assert_eq!(raw.unwrap_err(), Error::Shape(expected));
    };
    for scale in Scale::ALL {
        let args = |x, q, s, elements| PerTensorArgs {
            element: Element::F16,
            x,
            q,
            s,
            elements,
            scale,
            zero_scale: ZeroRows::Legacy,
        };
        for (x, q, s, expected) in [
            (X + 1, Q, S, misaligned("x", 2, X + 1)),
            (X, Q, S + 2, misaligned("s", 4, S + 2)),
            (X, X + 17, S, overlap("x", "q")),
            (X, Q, X + 16, overlap("x", "s")),
            (X, Q, Q + 8, overlap("q", "s")),
            // Null operands, of which no two can be told apart.
            (0, 0, 0, overlap("x", "q")),
        ] {
            assert_eq!(prepared_tensor((x, 9), (q, 9), (s, 1), scale).unwrap_err(), Error::Shape(expected));
            raw(args(x, q, s, 9), expected);
        }
        for elements in [1 << 61, u64::MAX] {
            let expected = ShapeError::Overflow { kernel, operand: "x", rows: 1, hidden: elements };
            raw(args(X, Q, S, elements), expected);
        }
    }
}

#[test]
fn no_rows_are_no_error_whatever_the_addresses() {
    let nothing = Shape::padded(0, ROWS_OUT, HIDDEN).unwrap();
    let args = RawArgs::new(Element::F16, 0, Q, S, nothing);
    assert_eq!(h200().choose(&args), Ok(None));
    // SAFETY: there are no rows to touch.
    assert_eq!(unsafe { h200().quantize_raw(args, ptr::null_mut()) }, Ok(()));
}

#[test]
fn place_of_an_operand_is_checked() {
    let quantizer = h200();
    let ordinal = quantizer.device().ordinal;
    let expected = Error::NotDeviceMemory { operand: "x", address: X };
    assert_eq!(quantizer.check_placed("x", X, None), Err(expected));
    let elsewhere = Place { ordinal: ordinal + 1, context: None };
    let expected = Error::WrongDevice { operand: "q", expected: ordinal, actual: ordinal + 1 };
    assert_eq!(quantizer.check_placed("q", Q, Some(elsewhere)), Err(expected));
    let another = Place { ordinal, context: Some(0xC0DE) };
    assert_eq!(quantizer.check_placed("s", S, Some(another)), Err(Error::WrongContext { operand: "s" }));
    // Of no context, that is managed or of a pool; and of the quantizer's, whose handle is 0 in these tests.
    for context in [None, Some(0)] {
        assert_eq!(quantizer.check_placed("s", S, Some(Place { ordinal, context })), Ok(()));
    }
}
