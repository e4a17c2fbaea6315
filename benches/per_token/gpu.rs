//! The GPU path, launches back to back with cold operands. Without a device: nothing, and it says so.

use crate::gpu::{BoxError, open, replay::Replay, slots::Slots};
use criterion::{BenchmarkId, Criterion, Throughput};
use per_token_quant_fp8::Quantizer;
use per_token_quant_fp8::cust::stream::{Stream, StreamFlags};
use ptq_cpu::Params;
use ptq_spec::Element;
use ptq_suite::cases;
use std::time::Duration;

/// (rows, hidden).
const SHAPES: [(usize, usize); 3] = [(1, 4096), (128, 4096), (7807, 4096)];

pub fn benches(criterion: &mut Criterion) {
    match open().expect("driver and device work") {
        Ok((_context, quantizer)) => measure(criterion, &quantizer).expect("the GPU path works"),
        Err(reason) => println!("gpu: skipped: {reason}"),
    }
}

fn measure(criterion: &mut Criterion, quantizer: &Quantizer) -> Result<(), BoxError> {
    let stream = Stream::new(StreamFlags::DEFAULT, None)?;
    let math = quantizer.math();
    let mut group = criterion.benchmark_group("gpu");
    for (rows, hidden) in SHAPES {
        let params = Params { sm_count: quantizer.sm_count(), ..Params::new(math) };
        let case = cases::ordinary(Element::Bf16, rows, hidden, params);
        let mut slots = Slots::new(&case)?;
        slots.poison()?;
        let replay = Replay::new(&stream, slots.count, |slot| {
            // SAFETY: the slot's operands are of the call's shape and outlive the replay; launches follow one another in
            // one stream.
            unsafe { quantizer.quantize_raw(slots.args(slot), stream.as_inner()) }?;
            Ok(())
        })?;
        if !slots.output_is(&case, math)? {
            return Err(format!("{}: other bits than the CPU's", case.name).into());
        }
        group.throughput(Throughput::Bytes(case.bytes()));
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
