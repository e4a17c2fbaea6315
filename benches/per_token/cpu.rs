//! The fast CPU path, on all threads; on the largest shape also each instruction set, and fewer threads.

use criterion::{BenchmarkGroup, BenchmarkId, Criterion, Throughput, measurement::WallTime};
use per_token_quant_fp8::cpu::{Isa, Params};
use per_token_quant_fp8::{Element, MathMode};
use ptq_suite::{Case, Implementation, Oracle, Output, cases, check, cpu};
use rayon::{ThreadPool, ThreadPoolBuilder};
use std::error::Error;

/// (rows, hidden).
const SHAPES: [(usize, usize); 2] = [(512, 4096), LARGEST];
const LARGEST: (usize, usize) = (4096, 4096);

pub fn benches(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("cpu");
    for shape in SHAPES {
        for element in Element::ALL {
            for math in MathMode::ALL {
                bench(&mut group, &format!("{element}/{math}"), &case(element, shape, math), &cpu::Rayon);
            }
        }
    }
    let largest = case(Element::Bf16, LARGEST, MathMode::Precise);
    for isa in Isa::ALL.into_iter().filter(|isa| isa.is_available()) {
        bench(&mut group, &format!("isa/{isa}"), &largest, &cpu::With(isa));
    }
    let all = rayon::current_num_threads();
    for threads in std::iter::successors(Some(1), |threads| Some(threads * 2)).take_while(|&threads| threads < all) {
        let pool = ThreadPoolBuilder::new().num_threads(threads).build().expect("threads start");
        bench(&mut group, &format!("threads/{threads}"), &largest, &On(pool));
    }
    group.finish();
}

/// [`cpu::Rayon`] on the threads of a pool.
struct On(ThreadPool);

impl Implementation for On {
    fn name(&self) -> String {
        format!("{} on {} threads", cpu::Rayon.name(), self.0.current_num_threads())
    }

    fn quantize(&self, case: &Case, out: &mut Output) -> Result<(), Box<dyn Error>> {
        Ok(self.0.install(|| cpu::Rayon.quantize(case, out).map_err(|error| error.to_string()))?)
    }
}

fn case(element: Element, (rows, hidden): (usize, usize), math: MathMode) -> Case {
    cases::ordinary(element, rows, hidden, Params::new(math))
}

fn bench(group: &mut BenchmarkGroup<WallTime>, name: &str, case: &Case, subject: &impl Implementation) {
    check(subject, Oracle::Scalar, case).expect("the bits are right");
    let mut out = case.output();
    group.throughput(Throughput::Bytes(case.bytes()));
    let id = BenchmarkId::new(name, format!("{}x{}", case.shape.rows(), case.shape.hidden()));
    group.bench_function(id, |bencher| bencher.iter(|| subject.quantize(case, &mut out)));
}
