//! Microseconds per launch beside those of the reference's kernels and of a copy that moves as many bytes.
//!
//! `cargo bench --bench compare_reference -- [bf16|f16|f32]... [ROWSxHIDDEN]...`
//!
//! - `PTQ_REFERENCE=DIR`: SGLang's kernels as `cargo xtask reference` takes them out of its wheel; by default where that
//!   puts them. Those of our math mode are timed, and their bits checked against the CPU's.
//! - `PTQ_SWEEP=1`: also times every kernel entry that takes the shape, best first.

#[path = "../gpu/mod.rs"]
mod gpu;
#[path = "../../tests/gpu/sglang.rs"]
mod sglang;
mod sweep;

use gpu::graph;
use gpu::replay::Replay;
use gpu::slots::Slots;
use gpu::{BoxError, open};
use per_token_quant_fp8::cust::memory::DeviceBuffer;
use per_token_quant_fp8::cust::stream::{Stream, StreamFlags};
use per_token_quant_fp8::cust::sys;
use per_token_quant_fp8::{Element, Quantizer};
use ptq_cpu::Params;
use ptq_suite::{Case, cases};
use sglang::Sglang;
use std::process::ExitCode;

/// (rows, hidden).
type Shape = (usize, usize);

/// Replays whose median counts.
const REPETITIONS: usize = 15;

/// Shapes where none are named.
const SHAPES: [Shape; 12] = [
    (1, 512),
    (1, 4096),
    (1, 7168),
    (39, 4096),
    (128, 512),
    (128, 4096),
    (512, 4096),
    (1392, 512),
    (1392, 4096),
    (7807, 512),
    (7807, 1368),
    (7807, 4096),
];

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if !arguments.iter().any(|a| a == "--bench") {
        println!("measures only with --bench, which `cargo bench` gives");
        return ExitCode::SUCCESS;
    }
    match run(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &[String]) -> Result<(), BoxError> {
    let (elements, shapes) = parse(arguments)?;
    let (_context, quantizer) = match open()? {
        Ok(opened) => opened,
        Err(reason) => {
            println!("skipped: {reason}");
            return Ok(());
        }
    };
    let sglang = sglang::folder().map(|folder| Sglang::load(&folder, quantizer.math())).transpose()?;
    if sglang.is_none() {
        println!("no reference; run `cargo xtask reference`");
    }
    let sweep = std::env::var("PTQ_SWEEP").is_ok_and(|v| v == "1");
    println!("device {}, math {}", quantizer.device(), quantizer.math());
    let mut table = Vec::new();
    for element in elements {
        for &(rows, hidden) in &shapes {
            let params = Params { sm_count: quantizer.sm_count(), ..Params::new(quantizer.math()) };
            let case = cases::ordinary(element, rows, hidden, params);
            let row = measure(&case, &quantizer, sglang.as_ref(), sweep)?;
            println!("{row}");
            table.push(row);
        }
    }
    println!("\n{HEADER}");
    for row in &table {
        println!("{row}");
    }
    Ok(())
}

const HEADER: &str =
    "| element | rows x hidden | entry, threads | us | GB/s | copy us | reference us | ours / reference |
|---|---|---|---|---|---|---|---|";

/// One line of the table.
fn measure(case: &Case, quantizer: &Quantizer, sglang: Option<&Sglang>, sweep: bool) -> Result<String, BoxError> {
    let stream = Stream::new(StreamFlags::DEFAULT, None)?;
    let mut slots = Slots::new(case)?;
    slots.poison()?;
    let ours = ours(quantizer, &slots, &stream, REPETITIONS)?;
    if !slots.output_is(case, quantizer.math())? {
        return Err(format!("{}: other bits than the CPU's", case.name).into());
    }
    let copied = copy(case, &slots, &stream)?;
    let (theirs, ratio) = match sglang {
        Some(sglang) => {
            let theirs = reference(case, quantizer, sglang, &mut slots, &stream)?;
            (format!("{theirs:.2}"), format!("{:.3}", ours / theirs))
        }
        None => ("".to_owned(), "".to_owned()),
    };
    if sweep {
        sweep::print(case, quantizer, &slots, &stream)?;
    }
    let (element, rows, hidden) = (case.x.element(), case.shape.rows(), case.shape.hidden());
    let plan = quantizer.choose(&slots.args(0))?.ok_or("there are rows")?.plan;
    let (entry, threads) = (plan.entry.name, plan.threads);
    let rate = case.bytes() as f64 / ours / 1e3;
    Ok(format!(
        "| {element} | {rows} x {hidden} | {entry}, {threads} | {ours:.2} | {rate:.0} | {copied:.2} | {theirs} | {ratio} |"
    ))
}

/// Microseconds of one launch of ours.
fn ours(quantizer: &Quantizer, slots: &Slots, stream: &Stream, repetitions: usize) -> Result<f64, BoxError> {
    let replay = Replay::new(stream, slots.count, |slot| {
        // SAFETY: the slot's operands are of the call's shape and outlive the replay; launches follow one another in one
        // stream.
        unsafe { quantizer.quantize_raw(slots.args(slot), stream.as_inner()) }?;
        Ok(())
    })?;
    median_micros(&replay, repetitions)
}

/// Microseconds of one launch of the reference's, which takes the place of `slots`' outputs.
fn reference(
    case: &Case,
    quantizer: &Quantizer,
    sglang: &Sglang,
    slots: &mut Slots,
    stream: &Stream,
) -> Result<f64, BoxError> {
    slots.poison()?;
    let kernel = sglang.kernel(&slots.args(0), quantizer.device().sm_count)?;
    let replay = Replay::new(stream, slots.count, |slot| {
        // SAFETY: every slot's operands have the shape and the alignment of the first's, for which the kernel was chosen, and
        // outlive the replay; launches follow one another in one stream.
        unsafe { kernel.launch(&slots.args(slot), stream) }
    })?;
    let micros = median_micros(&replay, REPETITIONS)?;
    if slots.output_is(case, quantizer.math())? {
        Ok(micros)
    } else {
        Err(format!("{}: the reference's bytes are not those of math {}", case.name, quantizer.math()).into())
    }
}

/// Microseconds of a copy that reads and writes as many bytes as one launch.
fn copy(case: &Case, slots: &Slots, stream: &Stream) -> Result<f64, BoxError> {
    let bytes = case.bytes() as usize / 2;
    // Starts where an allocation of its own would.
    let stride = bytes.next_multiple_of(256);
    let to = DeviceBuffer::<u8>::zeroed(stride * slots.count)?;
    let replay = Replay::new(stream, slots.count, |slot| {
        let (to, from) = (to.as_device_ptr().as_raw() + (stride * slot) as u64, slots.args(slot).x);
        // SAFETY: half of a call's bytes are at most those of `x`, and `to` has room for as many per slot.
        graph::check(unsafe { sys::cuMemcpyDtoDAsync_v2(to, from, bytes, stream.as_inner()) })
    })?;
    median_micros(&replay, REPETITIONS)
}

/// Microseconds of one launch: the median of several replays.
fn median_micros(replay: &Replay<'_>, repetitions: usize) -> Result<f64, BoxError> {
    let mut times = (0..repetitions).map(|_| replay.time()).collect::<Result<Vec<_>, _>>()?;
    times.sort_unstable();
    Ok(times[repetitions / 2].as_secs_f64() * 1e6 / replay.launches() as f64)
}

fn parse(arguments: &[String]) -> Result<(Vec<Element>, Vec<Shape>), BoxError> {
    let (mut elements, mut shapes) = (Vec::new(), Vec::new());
    for argument in arguments.iter().filter(|a| !a.starts_with("--")) {
        let shape = argument.split_once('x').and_then(|(r, h)| Some((r.parse().ok()?, h.parse().ok()?)));
        match (Element::ALL.into_iter().find(|e| e.name() == argument), shape) {
            (Some(element), _) => elements.push(element),
            (_, Some(shape)) => shapes.push(shape),
            _ => return Err(format!("`{argument}` is neither an element type nor ROWSxHIDDEN").into()),
        }
    }
    if elements.is_empty() {
        elements.push(Element::Bf16);
    }
    if shapes.is_empty() {
        shapes.extend(SHAPES);
    }
    Ok((elements, shapes))
}
