//! The fast CPU path, on all threads.

use criterion::{BenchmarkId, Criterion, Throughput};
use per_token_quant_fp8::cpu::Params;
use per_token_quant_fp8::{Element, MathMode};
use ptq_suite::{Implementation, Oracle, cases, check, cpu};

/// (rows, hidden).
const SHAPES: [(usize, usize); 2] = [(512, 4096), (4096, 4096)];

pub fn benches(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("cpu");
    for (rows, hidden) in SHAPES {
        for math in MathMode::ALL {
            let case = cases::ordinary(Element::Bf16, rows, hidden, Params::new(math));
            check(&cpu::Rayon, Oracle::Scalar, &case).expect("the bits are right");
            let mut out = case.output();
            group.throughput(Throughput::Bytes(case.bytes()));
            let id = BenchmarkId::new(format!("{}/{math}", Element::Bf16), format!("{rows}x{hidden}"));
            group.bench_function(id, |bencher| bencher.iter(|| cpu::Rayon.quantize(&case, &mut out)));
        }
    }
    group.finish();
}
