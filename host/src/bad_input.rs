//! What the entries refuse before they ask the device for anything: every field, without a GPU.

use crate::driver::Place;
use crate::quantizer::tests::h200;
use crate::{Error, F16, Prepared, RawArgs};
use cust::memory::{DevicePointer, DeviceSlice};
use ptq_spec::per_token::KERNEL;
use ptq_spec::{Element, Options, Shape, ShapeError};
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
