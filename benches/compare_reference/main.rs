//! Microseconds per launch beside those of SGLang's and vLLM's kernels, of a copy that moves as many bytes, and of a kernel
//! that does nothing.
//!
//! `cargo bench --bench compare_reference -- [bf16|f16|f32]... [ROWSxHIDDEN]... [seed]`
//!
//! - `PTQ_REFERENCE=DIR`: the kernels as `cargo xtask reference` takes them out of their wheels; by default where that
//!   puts them. Of SGLang's, those of our math mode.
//! - `PTQ_RECORD=FILE`: also writes what it prints there, for `cargo xtask bench-report`.
//! - `PTQ_SWEEP=1`: instead times every kernel entry that takes a shape, for `cargo xtask tune`.
//!
//! Every output is poisoned before and checked after: ours and SGLang's against the CPU, vLLM's against its own arithmetic
//! on the CPU, each byte of the first and of the last call. What fails has no time, and fails the run at its end.

mod arguments;
mod columns;
#[path = "../gpu/empty.rs"]
mod empty;
#[path = "../gpu/mod.rs"]
mod gpu;
#[path = "../gpu/median.rs"]
mod median;
#[path = "../gpu/record.rs"]
mod record;
mod rounds;
mod seed;
#[path = "../../tests/gpu/sglang.rs"]
mod sglang;
mod subjects;
mod sweep;
mod vllm;
#[path = "../../tests/gpu/vllm.rs"]
mod vllm_kernel;

use arguments::Arguments;
use gpu::input::{Expected, Input};
use gpu::replay::{Flush, Replay};
use gpu::slots::Slots;
use gpu::{BoxError, open};
use per_token_quant_fp8::cust::stream::{Stream, StreamFlags};
use per_token_quant_fp8::{Element, Quantizer};
use record::Record;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::process::ExitCode;
use subjects::Subjects;

/// What every measurement needs.
struct Bench {
    quantizer: Quantizer,
    stream: Stream,
    flush: Flush,
}

/// One element type and shape, on the device.
struct Cell<'a> {
    input: &'a Block,
    slots: Slots,
    rows: u64,
}

/// The rows of which inputs consist, and what vLLM makes of them.
struct Block {
    input: Input,
    vllm: Expected,
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if !arguments.iter().any(|a| a == "--bench") {
        println!("measures only with --bench, which `cargo bench` gives");
        return ExitCode::SUCCESS;
    }
    match Arguments::parse(&arguments).map_err(Into::into).and_then(|arguments| run(&arguments)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &Arguments) -> Result<(), BoxError> {
    let (_context, quantizer) = match open()? {
        Ok(opened) => opened,
        Err(reason) => {
            println!("skipped: {reason}");
            return Ok(());
        }
    };
    let stream = Stream::new(StreamFlags::DEFAULT, None)?;
    let bench = Bench { quantizer, stream, flush: Flush::new()? };
    let subjects = Subjects::load(&bench.quantizer)?;
    let sweep = std::env::var("PTQ_SWEEP").is_ok_and(|v| v == "1");
    let mut inputs = HashMap::new();
    for &element in &arguments.elements {
        for &(_, hidden) in &arguments.shapes {
            if let Entry::Vacant(entry) = inputs.entry((element, hidden)) {
                let input = Input::new(element, hidden, bench.quantizer.math())?;
                entry.insert(Block { vllm: vllm::expected(&input), input });
            }
        }
    }
    let mut record = start_record(&bench, &subjects, sweep)?;
    let mut wrong = Vec::new();
    for &(rows, hidden) in &arguments.shapes {
        for &element in &arguments.elements {
            let input = &inputs[&(element, hidden)];
            let cell = Cell { input, slots: Slots::new(&input.input, rows)?, rows };
            if sweep {
                sweep::measure(&bench, cell, &mut record)?;
            } else {
                wrong.extend(measure(&bench, &subjects, cell, &mut record)?);
            }
        }
    }
    record.finish()?;
    if wrong.is_empty() { Ok(()) } else { Err(format!("wrong bytes:\n{}", wrong.join("\n")).into()) }
}

/// The record, with its lines about machine and method.
fn start_record(bench: &Bench, subjects: &Subjects, sweep: bool) -> Result<Record, BoxError> {
    const WARM_UP: (Element, u64, u64) = (Element::Bf16, 4096, 1392);
    let (element, hidden, rows) = WARM_UP;
    let slots = Slots::new(&Input::new(element, hidden, bench.quantizer.math())?, rows)?;
    let replay = bench.replay(&slots, |slot| bench.launch(&bench.quantizer, &slots, slot))?;
    let mut about = record::about(bench.quantizer.device(), || {
        // Long enough for the clocks to rise where nobody asks for them.
        (0..100).try_for_each(|_| replay.time().map(|_| ()))
    })?;
    about.push(("math", bench.quantizer.math().to_string()));
    about.push(("reference", subjects.names().to_owned()));
    about.push(("repetitions", if sweep { sweep::REPETITIONS } else { REPETITIONS }.to_string()));
    let (kind, columns) =
        if sweep { (columns::SWEEP, columns::SWEEP_COLUMNS) } else { (columns::MATRIX, columns::MATRIX_COLUMNS) };
    Record::create(kind, &about, columns)
}

/// Replays whose median counts.
const REPETITIONS: usize = 15;

/// Times one cell and records it; returns whose bytes were wrong.
fn measure(
    bench: &Bench,
    subjects: &Subjects,
    mut cell: Cell<'_>,
    record: &mut Record,
) -> Result<Vec<String>, BoxError> {
    let mut wrong = Vec::new();
    let times = subjects.time(bench, &mut cell, &mut wrong)?;
    let input = &cell.input.input;
    let plan = bench.quantizer.choose(&cell.slots.args(0))?.ok_or("there are rows")?.plan;
    let mut row = vec![
        input.element.to_string(),
        cell.rows.to_string(),
        input.hidden.to_string(),
        plan.entry.name.to_owned(),
        plan.threads.to_string(),
        cell.slots.bytes().to_string(),
        times.launches.to_string(),
    ];
    row.extend(times.micros.iter().map(|micros| micros.map_or_else(String::new, |micros| format!("{micros:.4}"))));
    record.row(&row)?;
    Ok(wrong)
}

impl Bench {
    /// A replay of launches on these slots.
    fn replay(
        &self,
        slots: &Slots,
        enqueue: impl FnMut(usize) -> Result<(), BoxError>,
    ) -> Result<Replay<'_>, BoxError> {
        Replay::new(&self.stream, &self.flush, (slots.count, slots.bytes()), enqueue)
    }

    /// Enqueues one launch of ours.
    fn launch(&self, quantizer: &Quantizer, slots: &Slots, slot: usize) -> Result<(), BoxError> {
        // SAFETY: the slot's operands are of the call's shape; they outlive the replay, which the caller drops first, and
        // launches follow one another in one stream.
        Ok(unsafe { quantizer.quantize_raw(slots.args(slot), self.stream.as_inner()) }?)
    }
}
