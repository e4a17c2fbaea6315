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
use ptq_spec::per_token::{Caching, ENTRIES, Entry, MAX_CTA_THREADS, Strategy};
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
    caching: Caching,
    chosen: bool,
    micros: f64,
}

/// Element type (by its place in [`Element::ALL`]), elements per row, rows.
type Key = (usize, u64, u64);

/// Every plan of every shape.
type Sweep = BTreeMap<Key, Vec<Timed>>;

/// The constants of the lines of 9.0 in `RULES` in host/src/policy.rs, less what they say of caching.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Constants {
    /// Most bytes of the input of few rows.
    few_mib: u64,
    /// Most threads with 16 bytes each, where rows are few.
    few_threads: u32,
    /// Most threads with 32 bytes each, where rows are many.
    many_threads: u32,
    /// The longest row that a warp takes, where rows are many.
    warp_hidden: u64,
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
    text += "| element | hidden | policy's plan for the fewest rows | policy over the fastest, mean | worst (rows) | fastest of one plan for all rows | policy over it |\n";
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
    text += "\nThe policy's plan with either caching, by bytes of the input (above 1 no_allocate is faster):\n";
    for line in caching(&sweep) {
        text += &line;
    }
    text += "\nConstants of few and many rows, best first, with the caching as recorded (few_mib: `input_bytes` of the rule of \
             few; few_threads, many_threads: of its first share and that of the other):\n";
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
        text += "  None of those tried gives the recorded choices: the policy is no longer two rules of this form, see `plan` \
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
        let caching = row.text("caching")?;
        let caching =
            Caching::ALL.into_iter().find(|c| c.name() == caching).ok_or_else(|| row.unexpected("caching"))?;
        let timed = Timed { entry, threads, caching, chosen: row.count("chosen")? == 1, micros: row.number("us")? };
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
    // Of the plans that every shape has: what one plan for a row length, whatever the rows, would come to.
    let mut times: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    for (_, plans) in shapes {
        let caching = plans.iter().find(|plan| plan.chosen).map(|plan| plan.caching);
        for plan in plans.iter().filter(|plan| Some(plan.caching) == caching) {
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

/// One line for each power of two of the input's bytes: how the policy's plan does with the caching that it does not choose.
fn caching(sweep: &Sweep) -> Vec<String> {
    let mut by_size: BTreeMap<u32, Vec<f64>> = BTreeMap::new();
    for (&(element, hidden, rows), plans) in sweep {
        let Some(chosen) = plans.iter().find(|plan| plan.chosen) else { continue };
        let same = |plan: &&Timed| plan.entry == chosen.entry && plan.threads == chosen.threads;
        let other = plans.iter().filter(same).find(|plan| plan.caching != chosen.caching);
        let ordinary_over_other = |other: &Timed| match chosen.caching {
            Caching::Ordinary => chosen.micros / other.micros,
            Caching::NoAllocate => other.micros / chosen.micros,
        };
        let bytes = rows * hidden * Element::ALL[element].bytes() as u64;
        by_size.entry(bytes.max(1).ilog2()).or_default().extend(other.map(ordinary_over_other));
    }
    let line = |(log2, ratios): (u32, Vec<f64>)| {
        let mean = geometric_mean(ratios.iter().copied())?;
        Some(format!("  from 2^{log2}: ordinary over no_allocate {mean:.3}, {} shapes\n", ratios.len()))
    };
    by_size.into_iter().filter_map(line).collect()
}

fn candidates() -> impl Iterator<Item = Constants> {
    [1, 2, 3, 4, 6, 8].into_iter().flat_map(|few_mib| {
        [128, 256, 384, 512].into_iter().flat_map(move |few_threads| {
            [256, 512, MAX_CTA_THREADS].into_iter().flat_map(move |many_threads| {
                let constants = move |warp_hidden| Constants { few_mib, few_threads, many_threads, warp_hidden };
                [0, 512, 1024, 2048].into_iter().map(constants)
            })
        })
    })
}

/// The timed plan that rules with these constants take: what `plan` in host/src/policy.rs does, on aligned operands.
fn plan(constants: Constants, key: Key, plans: &[Timed]) -> Option<&Timed> {
    let (element, hidden, rows) = key;
    let element_bytes = Element::ALL[element].bytes() as u64;
    let bytes = |plan: &Timed| u64::from(plan.entry.elements_per_vector) * element_bytes;
    // The policy's plan with the other caching is no other plan.
    let caching = plans.iter().find(|plan| plan.chosen)?.caching;
    let of = |strategy: Strategy, most: u64| {
        plans.iter().filter(move |p| p.caching == caching && p.entry.strategy == strategy && bytes(p) <= most)
    };
    let key = |plan: &&Timed| (Reverse(plan.entry.elements_per_vector), plan.entry.vectors_per_thread);
    let few = rows * hidden * element_bytes <= constants.few_mib << 20;
    let Constants { few_threads, many_threads, warp_hidden, .. } = constants;
    if !few && hidden <= warp_hidden {
        return of(Strategy::Warp, 16).filter(|plan| plan.threads == 256).min_by_key(key);
    }
    let shares = if few {
        [(16, 16, few_threads), (16, 32, MAX_CTA_THREADS)]
    } else {
        [(16, 32, many_threads), (32, 64, MAX_CTA_THREADS)]
    };
    let share = shares.into_iter().find_map(|(most, share, threads)| {
        let width = of(Strategy::Cta, most).map(bytes).max()?;
        let exact = |plan: &&Timed| {
            let held = bytes(plan) * u64::from(plan.entry.vectors_per_thread);
            bytes(plan) == width && held == share && plan.threads <= threads
        };
        of(Strategy::Cta, most).find(exact)
    });
    // Two-pass entries are timed with several numbers of threads; the policy takes the most.
    let two_pass = || of(Strategy::CtaTwoPass, 16).min_by_key(|plan| (key(plan), Reverse(plan.threads)));
    share.or_else(|| of(Strategy::Cta, 16).min_by_key(key)).or_else(two_pass)
}

fn distance(sweep: &Sweep, constants: Constants) -> Option<Distance> {
    let ratios: Vec<_> =
        sweep.iter().filter_map(|(&key, plans)| Some(plan(constants, key, plans)?.micros / fastest(plans))).collect();
    let mean = geometric_mean(ratios.iter().copied())?;
    Some(Distance { mean, worst: ratios.iter().copied().fold(1.0, f64::max), shapes: ratios.len() })
}

/// Whether a rule with these constants chooses what the policy chose.
fn reproduces(sweep: &Sweep, constants: Constants) -> bool {
    let chosen = |(&key, plans): (&Key, &Vec<Timed>)| plan(constants, key, plans).is_some_and(|plan| plan.chosen);
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
        "bf16,1,512,per_token_warp_e8x2,256,no_allocate,0,1.2",
        "bf16,1,512,per_token_cta_e8x1,64,no_allocate,1,1.2",
        "bf16,1,512,per_token_cta_e8x1,64,ordinary,0,1.5",
        "bf16,1,512,per_token_cta_e8x2,32,no_allocate,0,1.0",
        "bf16,1,4096,per_token_cta_e8x2,256,no_allocate,1,2.0",
        "bf16,1,4096,per_token_cta_e8x1,512,no_allocate,0,3.0",
        "bf16,65536,512,per_token_warp_e8x2,256,ordinary,1,30.0",
        "bf16,65536,512,per_token_cta_e8x2,32,ordinary,0,40.0",
    ];

    #[test]
    fn distances_are_of_the_chosen_plans() {
        let text = advice(&sweep(PLANS)).unwrap();
        let line = "| bf16 | 512 | per_token_cta_e8x1, 64 | 1.095 | 1.200 (1) | per_token_warp_e8x2, 256 | 1.000 |";
        assert!(text.contains(line), "{text}");
        let line = "| bf16 | 4096 | per_token_cta_e8x2, 256 | 1.000 | 1.000 (1) | per_token_cta_e8x2, 256 | 1.000 |";
        assert!(text.contains(line), "{text}");
        assert!(text.contains("bf16: 1.0627 in the mean, 1.200 at worst"), "{text}");
        assert!(text.contains("from 2^10: ordinary over no_allocate 1.250, 1 shapes"), "{text}");
    }

    #[test]
    fn the_recorded_rules_are_recognised_and_ranked() {
        let sweep = read(&sweep(PLANS)).unwrap();
        let current = Constants { few_mib: 3, few_threads: 384, many_threads: 512, warp_hidden: 512 };
        assert!(candidates().any(|candidate| candidate == current) && reproduces(&sweep, current));
        let no_warps = Constants { warp_hidden: 0, ..current };
        assert!(!reproduces(&sweep, no_warps));
        let (with, without) = (distance(&sweep, current).unwrap(), distance(&sweep, no_warps).unwrap());
        assert!((with.worst - 1.2).abs() < 1e-9 && (without.worst - 4.0 / 3.0).abs() < 1e-9);
        assert_eq!(with.shapes, 3);
    }

    #[test]
    fn a_policy_of_another_form_is_said_to_be_one() {
        let lines = PLANS.join("\n").replace("_e8x1,64,no_allocate,1", "_e8x1,64,no_allocate,0");
        let lines = lines.replace("_e8x2,32,no_allocate,0", "_e8x2,32,no_allocate,1");
        let text = advice(&sweep(&[&lines])).unwrap();
        assert!(text.contains("no longer two rules"), "{text}");
    }

    #[test]
    fn a_shape_without_its_choice_is_an_error() {
        let error = advice(&sweep(&[&PLANS[..1], &PLANS[2..]].concat())).unwrap_err();
        assert!(matches!(error, Error::Chosen { hidden: 512, rows: 1, actual: 0, .. }), "{error}");
    }
}
