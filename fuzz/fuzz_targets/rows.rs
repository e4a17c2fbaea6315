//! Any rows of any element: the parallel CPU implementation has the scalar one's bits and leaves the rest alone, and the
//! encoding to E4M3 is that of `float8`.

#![no_main]

use arbitrary::Arbitrary;
use float8::F8E4M3;
use libfuzzer_sys::fuzz_target;
use per_token_quant_fp8::Shape;
use per_token_quant_fp8::cpu::{self, Input, e4m3, scalar};
use ptq_fuzz::AnyParams;

#[derive(Debug, Arbitrary)]
struct Call<'a> {
    params: AnyParams,
    element: u8,
    rows: u8,
    padding: u8,
    quads: u8,
    /// Repeated until `x` is full; an odd number of bytes shifts the elements.
    x: &'a [u8],
}

fuzz_target!(|call: Call<'_>| {
    match call.element % 3 {
        0 => run::<half::f16>(&call),
        1 => run::<half::bf16>(&call),
        _ => run::<f32>(&call),
    }
});

fn run<T: Input + bytemuck::Pod>(call: &Call<'_>) {
    // Across the thresholds of automatic dispatch of one and two multiprocessors.
    let (rows, padding) = (usize::from(call.rows % 40), usize::from(call.padding % 4));
    let hidden = 4 * (1 + usize::from(call.quads % 80));
    let shape = Shape::padded(rows as u64, (rows + padding) as u64, hidden as u64).expect("a small shape");
    let bytes: Vec<u8> = call.x.iter().copied().chain([0]).cycle().take(rows * hidden * size_of::<T>()).collect();
    let x: Vec<T> = bytemuck::pod_collect_to_vec(&bytes);

    let rows_out = rows + padding;
    let (mut q, mut s) = (vec![0xA5; rows_out * hidden], vec![-1.5; rows_out]);
    let params = call.params.0;
    scalar::quantize(&x, &mut q, &mut s, shape, params).expect("the lengths are the shape's");
    // What is written has other bits than it should get; what is not, the same as in the other run.
    let mut actual_q: Vec<u8> = q.iter().map(|code| !code).collect();
    let mut actual_s: Vec<f32> = s.iter().map(|s| f32::from_bits(!s.to_bits())).collect();
    actual_q[rows * hidden..].copy_from_slice(&q[rows * hidden..]);
    actual_s[rows..].copy_from_slice(&s[rows..]);
    assert!(q[rows * hidden..].iter().all(|&code| code == 0xA5) && s[rows..].iter().all(|&s| s == -1.5));
    cpu::quantize(&x, &mut actual_q, &mut actual_s, shape, params).expect("the lengths are the shape's");
    let bits = |s: &[f32]| s.iter().map(|s| s.to_bits()).collect::<Vec<_>>();
    assert_eq!(bits(&actual_s), bits(&s));
    assert_eq!(actual_q, q);

    for v in x.iter().take(hidden).map(|x| x.widen()).filter(|v| !v.is_nan()) {
        assert_eq!(e4m3::encode(v), F8E4M3::from_f32(v).to_bits(), "{v:e} ({:#010x})", v.to_bits());
    }
}
