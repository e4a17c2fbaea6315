//! What launches cost on the host, and the CPU implementation beside PyTorch.

use super::goals::{Bound, Goals};
use crate::record::{Error, Record, Row};
use std::fmt::Write as _;

/// A launch costs at most so many times as much as the driver's own.
const LAUNCH_RATIO: f64 = 1.10;
/// Preparing a launch, in microseconds.
const PREPARE_MICROS: f64 = 2.0;
/// First use by backend, in milliseconds.
const FIRST_USE_MILLIS: [(&str, f64); 2] = [("aot", 10.0), ("jit", 200.0)];

/// How many times as fast as torch.compile.
const OVER_COMPILE: f64 = 1.5;
/// Fast mode's time over precise mode's.
const FAST_OVER_PRECISE: f64 = 1.15;

/// The table of a `launch` record.
pub fn launch(record: &Record, goals: &mut Goals) -> Result<String, Error> {
    let find = |wanted: [(&str, &str); 3]| -> Result<Option<f64>, Error> {
        let rows = matching(record, &wanted)?;
        rows.first().map(|row| row.number("value")).transpose()
    };
    let cost = |subject, threads| find([("quantity", "launch"), ("subject", subject), ("threads", threads)]);
    for threads in ["1", "8"] {
        let ratio = divided(cost("Prepared::launch", threads)?, cost("cuLaunchKernel", threads)?);
        let what = format!("launch of a `Prepared` over `cuLaunchKernel`, threads: {threads}");
        goals.add(&what, Bound::AtMost(LAUNCH_RATIO), "", ratio, "");
    }
    let prepare = find([("quantity", "prepare"), ("subject", "Quantizer::prepare"), ("threads", "1")])?;
    goals.add("`Quantizer::prepare`", Bound::AtMost(PREPARE_MICROS), " µs", prepare, "");
    for (backend, most) in FIRST_USE_MILLIS {
        let mut slowest: Option<(&str, f64)> = None;
        for row in matching(record, &[("quantity", "first use"), ("subject", backend)])? {
            let time = row.number("value")?;
            if slowest.is_none_or(|(_, slowest)| time > slowest) {
                slowest = Some((row.text("element")?, time));
            }
        }
        let (element, time) = slowest.unzip();
        let what = format!("first use, {backend}, slowest element type");
        goals.add(&what, Bound::AtMost(most), " ms", time, element.unwrap_or_default());
    }
    let mut text = String::from("| | | element | threads | |\n|---|---|---|---|---|\n");
    for row in record.rows() {
        let (quantity, subject, element) = (row.text("quantity")?, row.text("subject")?, row.text("element")?);
        let (threads, value, unit) = (row.count("threads")?, row.number("value")?, row.text("unit")?);
        // Writing to a String cannot fail, here and below.
        let _ = writeln!(text, "| {quantity} | `{subject}` | {element} | {threads} | {value:.2} {unit} |");
    }
    Ok(text)
}

/// The table of a `cpu` record.
pub fn cpu(record: &Record, goals: &mut Goals) -> Result<String, Error> {
    let time = |subject, element, math| -> Result<Option<f64>, Error> {
        let wanted = [("subject", subject), ("element", element), ("math", math), ("threads", "2")];
        let rows = matching(record, &wanted)?;
        // The largest shape is the goals'.
        let mut largest: Option<(u64, f64)> = None;
        for row in rows {
            let size = row.count("rows")? * row.count("hidden")?;
            if largest.is_none_or(|(most, _)| size > most) {
                largest = Some((size, row.number("ms")?));
            }
        }
        Ok(largest.map(|(_, millis)| millis))
    };
    for element in ["bf16", "f16", "f32"] {
        for (ours, into) in [("ours", "the same outputs"), ("ours new outputs", "new outputs, as PyTorch does")] {
            let ratio = divided(time("torch.compile", element, "precise")?, time(ours, element, "precise")?);
            let what = format!("CPU, {element}: times as fast as torch.compile, precise, 2 threads, into {into}");
            goals.add(&what, Bound::AtLeast(OVER_COMPILE), "", ratio, "");
        }
    }
    let fast = divided(time("ours", "bf16", "fast")?, time("ours beside fast", "bf16", "precise")?);
    let what = "CPU, bf16: fast mode's time over precise mode's, 2 threads";
    goals.add(what, Bound::AtMost(FAST_OVER_PRECISE), "", fast, "");
    let mut text = String::from("| element | rows x hidden | math | threads | | ms |\n|---|---|---|---|---|---|\n");
    for row in record.rows() {
        let (element, math, subject) = (row.text("element")?, row.text("math")?, row.text("subject")?);
        let (rows, hidden, threads) = (row.count("rows")?, row.count("hidden")?, row.count("threads")?);
        let millis = row.number("ms")?;
        let _ = writeln!(text, "| {element} | {rows} x {hidden} | {math} | {threads} | {subject} | {millis:.3} |");
    }
    Ok(text)
}

/// The lines whose columns have these values.
fn matching<'r>(record: &'r Record, wanted: &[(&str, &str)]) -> Result<Vec<Row<'r>>, Error> {
    let mut rows = Vec::new();
    for row in record.rows() {
        let mut fits = true;
        for (column, value) in wanted {
            fits &= row.text(column)? == *value;
        }
        if fits {
            rows.push(row);
        }
    }
    Ok(rows)
}

fn divided(over: Option<f64>, under: Option<f64>) -> Option<f64> {
    Some(over? / under?)
}
