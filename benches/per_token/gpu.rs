//! The GPU path, launches back to back with cold operands. Without a device: nothing, and it says so.

use crate::gpu::input::Input;
use crate::gpu::replay::{Flush, Replay};
use crate::gpu::slots::Slots;
use crate::gpu::{BoxError, open};
use criterion::{BenchmarkId, Criterion, Throughput};
use per_token_quant_fp8::Quantizer;
use per_token_quant_fp8::cust::stream::{Stream, StreamFlags};
use ptq_spec::Element;
use std::time::Duration;

/// (rows, hidden).
const SHAPES: [(u64, u64); 3] = [(1, 4096), (128, 4096), (7807, 4096)];

pub fn benches(criterion: &mut Criterion) {
    match open().expect("driver and device work") {
        Ok((_context, quantizer)) => measure(criterion, &quantizer).expect("the GPU path works"),
        Err(reason) => println!("gpu: skipped: {reason}"),
    }
}

fn measure(criterion: &mut Criterion, quantizer: &Quantizer) -> Result<(), BoxError> {
    let (stream, flush) = (Stream::new(StreamFlags::DEFAULT, None)?, Flush::new()?);
    let math = quantizer.math();
    let mut group = criterion.benchmark_group("gpu");
    for (rows, hidden) in SHAPES {
        let input = Input::new(Element::Bf16, hidden, math)?;
        let mut slots = Slots::new(&input, rows)?;
        slots.poison()?;
        let replay = Replay::new(&stream, &flush, (slots.count, slots.bytes()), |slot| {
            // SAFETY: the slot's operands are of the call's shape and outlive the replay; launches follow one another in
            // one stream.
            unsafe { quantizer.quantize_raw(slots.args(slot), stream.as_inner()) }?;
            Ok(())
        })?;
        slots.check(&input.contract)?;
        group.throughput(Throughput::Bytes(slots.bytes() as u64));
        let id = BenchmarkId::new(format!("{}/{math}", Element::Bf16), format!("{rows}x{hidden}"));
        group.bench_function(id, |bencher| bencher.iter_custom(|n| time(&replay, n).expect("a replay works")));
    }
    group.finish();
    Ok(())
}

/// Time of `n` launches, from as many whole replays as have them.
fn time(replay: &Replay<'_>, n: u64) -> Result<Duration, BoxError> {
    let replays = n.div_ceil(replay.launches() as u64);
    let mut total = Duration::ZERO;
    for _ in 0..replays {
        total += replay.time()?;
    }
    Ok(total.mul_f64(n as f64 / (replays * replay.launches() as u64) as f64))
}
