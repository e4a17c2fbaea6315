//! `cargo xtask tune`: how far the policy's plans are from the fastest, by a recorded sweep, and which constants would do
//! better.
//!
//! A sweep comes from the benchmark `compare_reference` with `PTQ_SWEEP=1`, on a GPU.

use crate::record::compare::{SWEEP, SWEEP_COLUMNS};
use crate::record::{self, Record, geometric_mean};
use crate::staging;
use crate::workspace;
use clap::Args;
use ptq_spec::Element;
use ptq_spec::per_token::{ENTRIES, Entry, Strategy};
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Options of the task.
#[derive(Args)]
pub struct Options {
    /// A record of a sweep; by default the newest in benches/record.
    file: Option<PathBuf>,
}

/// Why there is no advice.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// There is no sweep.
    #[error(
        "{} has no record of a sweep; on a GPU, run the benchmark compare_reference with PTQ_SWEEP=1 and PTQ_RECORD=FILE",
        record::FOLDER
    )]
    NoSweep,
    /// The sweep cannot be used.
    #[error(transparent)]
    Record(#[from] record::Error),
    /// A shape of the sweep lacks the plan that the policy chose.
    #[error("{name}: {element} {rows} x {hidden} has {actual} chosen plans, expected one; measure again")]
    Chosen {
        /// The file.
        name: String,
        /// Element type.
        element: Element,
        /// Rows.
        rows: u64,
        /// Elements per row.
        hidden: u64,
        /// Plans that are marked.
        actual: usize,
    },
    /// The file could not be read.
    #[error(transparent)]
    Io(#[from] staging::Error),
}

/// One plan, timed.
#[derive(Debug, Clone, Copy)]
struct Timed {
    entry: &'static Entry,
    threads: u32,
    chosen: bool,
    micros: f64,
}

/// Element type (by its place in [`Element::ALL`]), elements per row, rows.
type Key = (usize, u64, u64);

/// Every plan of every shape.
type Sweep = BTreeMap<Key, Vec<Timed>>;

/// The constants of a line of `RULES` in host/src/policy.rs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Constants {
    vector_bytes: u64,
    warp_vectors: u32,
    warp_threads: u32,
    cta_vectors: u32,
}

/// How far from the fastest plans.
#[derive(Debug, Clone, Copy)]
struct Distance {
    /// Geometric mean of the time over the fastest plan's.
    mean: f64,
    /// The largest such ratio.
    worst: f64,
    /// Shapes for which the constants name a plan that was timed.
    shapes: usize,
}

/// Prints the distance of every row length, and the best constants.
///
/// # Errors
/// [`Error`].
pub fn run(options: &Options) -> Result<(), Error> {
    let record = match &options.file {
        Some(file) => Some(Record::read(file)?),
        None => Record::newest(&workspace::root().join(record::FOLDER), SWEEP, SWEEP_COLUMNS)?,
    };
    let record = record.ok_or(Error::NoSweep)?;
    println!("{}", advice(&record)?);
    Ok(())
}

fn advice(record: &Record) -> Result<String, Error> {
    let sweep = read(record)?;
    let mut text = format!("{}\n\n", record.name);
    text += "| element | hidden | policy's plan | over the fastest, mean | worst (rows) | fastest plan in the mean | policy over it |\n";
    text += "|---|---|---|---|---|---|---|\n";
    let mut lengths: Vec<_> = sweep.keys().map(|&(element, hidden, _)| (element, hidden)).collect();
    lengths.dedup();
    for (element, hidden) in lengths {
        let shapes: Vec<_> = sweep.range((element, hidden, 0)..=(element, hidden, u64::MAX)).collect();
        text += &length(Element::ALL[element], hidden, &shapes);
    }
    text += "\nOver all shapes, time over the fastest plan's:\n";
    for element in 0..Element::ALL.len() {
        let of_element = sweep.iter().filter(|((e, ..), _)| *e == element).map(|(_, plans)| over_fastest(plans));
        if let Some(mean) = geometric_mean(of_element.clone()) {
            let worst = of_element.fold(1.0, f64::max);
            text += &format!("  {}: {mean:.4} in the mean, {worst:.3} at worst\n", Element::ALL[element]);
        }
    }
    text += "\nConstants of one rule for all, best first:\n";
    let mut ranked: Vec<_> = candidates().filter_map(|c| Some((c, distance(&sweep, c)?))).collect();
    ranked.sort_by(|a, b| a.1.mean.total_cmp(&b.1.mean));
    let current = ranked.iter().position(|(constants, _)| reproduces(&sweep, *constants));
    for (i, (constants, Distance { mean, worst, shapes })) in ranked.iter().enumerate() {
        if i < 5 || Some(i) == current {
            let mark = if Some(i) == current { "  <- the recorded policy" } else { "" };
            text += &format!("  {mean:.4} in the mean, {worst:.3} at worst, {shapes} shapes: {constants:?}{mark}\n");
        }
    }
    if current.is_none() {
        text += "  None of those tried gives the recorded choices: the policy is no longer one rule of this form, see `plan` \
                 in xtask/src/tune.rs and host/src/policy.rs.\n";
    }
    Ok(text)
}

fn read(record: &Record) -> Result<Sweep, Error> {
    let mut sweep = Sweep::new();
    for row in record.rows() {
        let (element, entry) = (row.text("element")?, row.text("entry")?);
        let element = Element::ALL.into_iter().position(|e| e.name() == element);
        let element = element.ok_or_else(|| row.unexpected("element"))?;
        let entry = ENTRIES.iter().find(|e| e.name == entry).ok_or_else(|| row.unexpected("entry"))?;
        let threads = u32::try_from(row.count("threads")?).map_err(|_| row.unexpected("threads"))?;
        let timed = Timed { entry, threads, chosen: row.count("chosen")? == 1, micros: row.number("us")? };
        sweep.entry((element, row.count("hidden")?, row.count("rows")?)).or_default().push(timed);
    }
    for (&(element, hidden, rows), plans) in &sweep {
        let actual = plans.iter().filter(|plan| plan.chosen).count();
        if actual != 1 {
            let element = Element::ALL[element];
            return Err(Error::Chosen { name: record.name.clone(), element, rows, hidden, actual });
        }
    }
    Ok(sweep)
}

/// One line of the table: all numbers of rows of one row length.
fn length(element: Element, hidden: u64, shapes: &[(&Key, &Vec<Timed>)]) -> String {
    let name = |plan: &Timed| format!("{}, {}", plan.entry.name, plan.threads);
    let chosen = shapes.iter().filter_map(|(_, plans)| plans.iter().find(|plan| plan.chosen)).map(name).next();
    let mean = geometric_mean(shapes.iter().map(|(_, plans)| over_fastest(plans))).unwrap_or(1.0);
    let (rows, worst) = shapes
        .iter()
        .map(|((.., rows), plans)| (*rows, over_fastest(plans)))
        .max_by(|a, b| a.1.total_cmp(&b.1))
        .unwrap_or_default();
    // Of the plans that every shape has: one plan for a row length, as the rows decide nothing.
    let mut times: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    for (_, plans) in shapes {
        for plan in *plans {
            times.entry(name(plan)).or_default().push(plan.micros / chosen_micros(plans));
        }
    }
    let everywhere = times.into_iter().filter(|(_, times)| times.len() == shapes.len());
    let best = everywhere.filter_map(|(plan, times)| Some((plan, geometric_mean(times)?)));
    let (best, ratio) = best.min_by(|a, b| a.1.total_cmp(&b.1)).unwrap_or_default();
    let (chosen, over) = (chosen.unwrap_or_default(), 1.0 / ratio);
    format!("| {element} | {hidden} | {chosen} | {mean:.3} | {worst:.3} ({rows}) | {best} | {over:.3} |\n")
}

fn chosen_micros(plans: &[Timed]) -> f64 {
    plans.iter().find(|plan| plan.chosen).map_or(f64::NAN, |plan| plan.micros)
}

fn fastest(plans: &[Timed]) -> f64 {
    plans.iter().map(|plan| plan.micros).fold(f64::INFINITY, f64::min)
}

fn over_fastest(plans: &[Timed]) -> f64 {
    chosen_micros(plans) / fastest(plans)
}

fn candidates() -> impl Iterator<Item = Constants> {
    let warp_vectors = [0, 1, 2, 4, 8].into_iter();
    warp_vectors.flat_map(|warp_vectors| {
        [64, 128, 256].into_iter().flat_map(move |warp_threads| {
            [8, 16, 32].into_iter().flat_map(move |vector_bytes| {
                let constants = move |cta_vectors| Constants { vector_bytes, warp_vectors, warp_threads, cta_vectors };
                [1, 2, 4, 8].into_iter().map(constants)
            })
        })
    })
}

/// The timed plan that a rule with these constants takes: what `best` in host/src/policy.rs does, on aligned operands.
fn plan(constants: Constants, element: Element, plans: &[Timed]) -> Option<&Timed> {
    [Strategy::Warp, Strategy::Cta, Strategy::CtaTwoPass].into_iter().find_map(|strategy| {
        let wanted = |plan: &&Timed| {
            let entry = plan.entry;
            let bytes = u64::from(entry.elements_per_vector) * element.bytes() as u64;
            let warp = entry.vectors_per_thread <= constants.warp_vectors && plan.threads == constants.warp_threads;
            entry.strategy == strategy && bytes <= constants.vector_bytes && (strategy != Strategy::Warp || warp)
        };
        plans.iter().filter(wanted).min_by_key(|plan| {
            let vectors = plan.entry.vectors_per_thread;
            let too_few = strategy == Strategy::Cta && vectors < constants.cta_vectors;
            // Two-pass entries are timed with several numbers of threads; the policy takes the most.
            (Reverse(plan.entry.elements_per_vector), too_few, vectors, Reverse(plan.threads))
        })
    })
}

fn distance(sweep: &Sweep, constants: Constants) -> Option<Distance> {
    let ratios: Vec<_> = sweep
        .iter()
        .filter_map(|(&(element, ..), plans)| {
            Some(plan(constants, Element::ALL[element], plans)?.micros / fastest(plans))
        })
        .collect();
    let mean = geometric_mean(ratios.iter().copied())?;
    Some(Distance { mean, worst: ratios.iter().copied().fold(1.0, f64::max), shapes: ratios.len() })
}

/// Whether a rule with these constants chooses what the policy chose.
fn reproduces(sweep: &Sweep, constants: Constants) -> bool {
    let chosen = |(&(element, ..), plans): (&Key, &Vec<Timed>)| {
        plan(constants, Element::ALL[element], plans).is_some_and(|plan| plan.chosen)
    };
    sweep.iter().all(chosen)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sweep(lines: &[&str]) -> Record {
        let text = format!("# record: {}\n{}\n{}\n", SWEEP, SWEEP_COLUMNS.join(","), lines.join("\n"));
        Record::parse("sweep.csv", &text).unwrap()
    }

    const PLANS: &[&str] = &[
        "bf16,1,512,per_token_warp_e8x2,256,1,1.2",
        "bf16,1,512,per_token_cta_e8x1,64,0,1.0",
        "bf16,1,512,per_token_cta_e8x2,32,0,1.5",
        "bf16,1,4096,per_token_cta_e8x2,256,1,2.0",
        "bf16,1,4096,per_token_cta_e8x1,512,0,3.0",
    ];

    #[test]
    fn distances_are_of_the_chosen_plans() {
        let text = advice(&sweep(PLANS)).unwrap();
        let line = "| bf16 | 512 | per_token_warp_e8x2, 256 | 1.200 | 1.200 (1) | per_token_cta_e8x1, 64 | 1.200 |";
        assert!(text.contains(line), "{text}");
        assert!(text.contains("| bf16 | 4096 | per_token_cta_e8x2, 256 | 1.000 | 1.000 (1) |"), "{text}");
        assert!(text.contains("bf16: 1.0954 in the mean, 1.200 at worst"), "{text}");
    }

    #[test]
    fn the_recorded_rule_is_recognised_and_ranked() {
        let sweep = read(&sweep(PLANS)).unwrap();
        let current = Constants { vector_bytes: 16, warp_vectors: 2, warp_threads: 256, cta_vectors: 2 };
        assert!(reproduces(&sweep, current));
        let no_warps = Constants { warp_vectors: 0, ..current };
        assert!(!reproduces(&sweep, no_warps));
        let (with, without) = (distance(&sweep, current).unwrap(), distance(&sweep, no_warps).unwrap());
        assert!((with.worst - 1.2).abs() < 1e-9 && (without.worst - 1.5).abs() < 1e-9);
        assert_eq!(with.shapes, 2);
    }

    #[test]
    fn a_policy_of_another_form_is_said_to_be_one() {
        let lines = PLANS.join("\n").replace("_e8x2,256,1,1.2", "_e8x2,256,0,1.2").replace("_e8x1,64,0", "_e8x1,64,1");
        let text = advice(&sweep(&[&lines])).unwrap();
        assert!(text.contains("no longer one rule"), "{text}");
    }

    #[test]
    fn a_shape_without_its_choice_is_an_error() {
        let error = advice(&sweep(&PLANS[1..])).unwrap_err();
        assert!(matches!(error, Error::Chosen { hidden: 512, rows: 1, actual: 0, .. }), "{error}");
    }
}
