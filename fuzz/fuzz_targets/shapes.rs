//! Any numbers as shape, lengths and addresses: the checks say what arithmetic without overflow says.

#![no_main]

use arbitrary::{Arbitrary, Result, Unstructured};
use libfuzzer_sys::fuzz_target;
use per_token_quant_fp8::spec::per_token::{HIDDEN_MULTIPLE, REFERENCE_ROWS_PER_SM};
use per_token_quant_fp8::spec::shape::{Span, check_spans};
use per_token_quant_fp8::{Dispatch, Element, Extended, Shape, ShapeError, ZeroRows};
use ptq_fuzz::AnyParams;

/// A number near zero, a power of two or the end of the range.
#[derive(Debug, Clone, Copy)]
struct Number(u64);

impl<'a> Arbitrary<'a> for Number {
    fn arbitrary(u: &mut Unstructured<'a>) -> Result<Self> {
        let near = u64::from(u.arbitrary::<u8>()?);
        Ok(Self(match u.int_in_range(0..=4)? {
            0 => near,
            1 => u64::MAX - near,
            2 => 1u64 << u.int_in_range(0..=63)?,
            3 => (1u64 << u.int_in_range(0..=63)?).wrapping_add(near).wrapping_sub(128),
            _ => u.arbitrary()?,
        }))
    }
}

#[derive(Debug, Arbitrary)]
struct Call {
    rows: Number,
    rows_out: Number,
    hidden: Number,
    element: u8,
    lens: [Number; 3],
    addresses: [Number; 3],
    params: AnyParams,
    spans: [(Number, Number, u8); 3],
    strides: [Number; 2],
    bounds: [Option<f32>; 2],
}

fuzz_target!(|call: Call| {
    let params = call.params.0;
    let guard = match (params.options.zero_rows, params.options.dispatch) {
        (ZeroRows::Guarded, _) | (_, Dispatch::Warp) => true,
        (_, Dispatch::Cta) => false,
        (_, Dispatch::Auto) => {
            u128::from(call.rows.0) >= u128::from(params.sm_count) * u128::from(REFERENCE_ROWS_PER_SM)
        }
    };
    assert_eq!(params.options.guard(call.rows.0, params.sm_count), guard);

    let spans = call.spans.map(|(address, bytes, align)| Span {
        operand: "x",
        address: address.0,
        bytes: bytes.0,
        align: 1 << (align % 4),
    });
    check(&spans);

    let (rows, rows_out, hidden) = (call.rows.0, call.rows_out.0, call.hidden.0);
    let bytes = u128::from(rows_out).checked_mul(u128::from(hidden)).and_then(|n| n.checked_mul(4));
    let shape = Shape::padded(rows, rows_out, hidden);
    match shape {
        Ok(_) => assert!(
            hidden > 0
                && hidden.is_multiple_of(HIDDEN_MULTIPLE)
                && rows <= rows_out
                && bytes.is_some_and(|n| n <= isize::MAX as u128)
        ),
        Err(ShapeError::HiddenZero { .. }) => assert_eq!(hidden, 0),
        Err(ShapeError::HiddenMultiple { .. }) => assert!(!hidden.is_multiple_of(HIDDEN_MULTIPLE)),
        Err(ShapeError::RowsOut { .. }) => assert!(rows_out < rows),
        Err(ShapeError::Overflow { .. }) => assert!(bytes.is_none_or(|n| n > isize::MAX as u128)),
        Err(error) => panic!("{error}"),
    }
    let Ok(shape) = shape else { return };

    let lens = [rows * hidden, rows_out * hidden, rows_out];
    assert_eq!(shape.check_lens(lens[0], lens[1], lens[2]), Ok(()));
    let [x, q, s] = call.lens.map(|n| n.0);
    assert_eq!(shape.check_lens(x, q, s).is_ok(), [x, q, s] == lens);

    let element = Element::ALL[usize::from(call.element) % Element::ALL.len()];
    let [x, q, s] = call.addresses.map(|n| n.0);
    let spans = shape.spans(element, x, q, s);
    let width = element.bytes() as u64;
    assert_eq!(spans.map(|span| span.bytes), [lens[0] * width, lens[1], lens[2] * 4]);
    check(&spans);

    let [x_stride, q_stride] = call.strides.map(|n| n.0);
    let [scale_upper_bound, min_scale] = call.bounds;
    let extended = Extended { x_stride, q_stride, scale_upper_bound, min_scale };
    let reaches = |stride: u64| stride == 0 || stride >= hidden;
    let fits = |stride: u64, rows: u64| u128::from(stride) * u128::from(rows.max(1)) * 4 <= isize::MAX as u128;
    let is_bound = |bound: Option<f32>| bound.is_none_or(|bound| bound > 0.0 && bound.is_finite());
    match extended.layout(shape) {
        Ok(layout) => {
            assert!(reaches(x_stride) && reaches(q_stride) && is_bound(scale_upper_bound) && is_bound(min_scale));
            assert!((x_stride == 0 || fits(x_stride, rows)) && (q_stride == 0 || fits(q_stride, rows_out)));
            let stride = |stride| if stride == 0 { hidden } else { stride };
            let elements = |stride, rows: u64| rows.checked_sub(1).map_or(0, |gaps| gaps * stride + hidden);
            let lens = [elements(stride(x_stride), rows), elements(stride(q_stride), rows_out), rows_out];
            assert_eq!([layout.x_elements(), layout.q_elements()], lens[..2]);
            let [x, q, s] = call.lens.map(|n| n.0);
            assert_eq!(layout.check_lens(x, q, s).is_ok(), x >= lens[0] && q >= lens[1] && s == lens[2]);
            let [x, q, s] = call.addresses.map(|n| n.0);
            let spans = layout.spans(element, x, q, s);
            assert_eq!(spans.map(|span| span.bytes), [lens[0] * width, lens[1], lens[2] * 4]);
            check(&spans);
        }
        Err(ShapeError::Stride { .. }) => assert!(!reaches(x_stride) || !reaches(q_stride)),
        Err(ShapeError::StrideOverflow { .. }) => assert!(!fits(x_stride, rows) || !fits(q_stride, rows_out)),
        Err(ShapeError::Bound { .. }) => assert!(!is_bound(scale_upper_bound) || !is_bound(min_scale)),
        Err(error) => panic!("{error}"),
    }
});

/// `check_spans` against a definition in wider numbers.
fn check(spans: &[Span]) {
    let range = |span: &Span| u128::from(span.address)..u128::from(span.address) + u128::from(span.bytes);
    let misaligned = spans.iter().any(|span| !span.address.is_multiple_of(span.align));
    let overlap = spans.iter().enumerate().any(|(i, a)| {
        spans[..i].iter().any(|b| {
            let (a, b) = (range(a), range(b));
            a.start.max(b.start) < a.end.min(b.end)
        })
    });
    match check_spans(spans) {
        Ok(()) => assert!(!misaligned && !overlap, "{spans:?}"),
        Err(ShapeError::Misaligned { .. }) => assert!(misaligned, "{spans:?}"),
        Err(ShapeError::Overlap { .. }) => assert!(!misaligned && overlap, "{spans:?}"),
        Err(error) => panic!("{error}"),
    }
}
