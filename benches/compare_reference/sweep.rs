//! Every kernel entry that takes a shape, timed: where the numbers of the policy come from.

use crate::gpu::BoxError;
use crate::gpu::replay::Replay;
use crate::record::Record;
use crate::{Bench, Cell, rounds};
use per_token_quant_fp8::spec::per_token::{Caching, ENTRIES, Entry, LANES_PER_WARP, MAX_CTA_THREADS, Strategy};
use per_token_quant_fp8::{Error, Plan, Quantizer};

/// Replays whose median counts: fewer than for the comparison, as there are many plans.
pub const REPETITIONS: usize = 5;

/// Records the time of every plan that fits, by turns; the policy's is marked.
pub fn measure(bench: &Bench, mut cell: Cell<'_>, record: &mut Record) -> Result<(), BoxError> {
    let first = cell.slots.args(0);
    let chosen = bench.quantizer.choose(&first)?.ok_or("there are rows")?.plan;
    let mut replays = Vec::new();
    let mut plans = Vec::new();
    for plan in plans_for(first.shape.hidden(), chosen) {
        let forced = match bench.quantizer.clone().with_plan(plan) {
            Err(Error::Plan(_)) => continue,
            forced => forced?,
        };
        match forced.choose(&first) {
            Err(Error::Plan(_)) => continue,
            chosen => chosen?,
        };
        let replay = checked(bench, &mut cell, &forced)?;
        replays.push(replay);
        plans.push(plan);
    }
    let input = &cell.input.input;
    for (plan, micros) in plans.iter().zip(rounds::medians(&replays, REPETITIONS)?) {
        record.row(&[
            input.element.to_string(),
            cell.rows.to_string(),
            input.hidden.to_string(),
            plan.entry.name.to_owned(),
            plan.threads.to_string(),
            plan.caching.name().to_owned(),
            u32::from(*plan == chosen).to_string(),
            format!("{micros:.4}"),
        ])?;
    }
    Ok(())
}

fn checked<'b>(bench: &'b Bench, cell: &mut Cell<'_>, forced: &Quantizer) -> Result<Replay<'b>, BoxError> {
    cell.slots.poison()?;
    let slots = &cell.slots;
    let replay = bench.replay(slots, |slot| bench.launch(forced, slots, slot))?;
    cell.slots.check(&cell.input.input.contract)?;
    Ok(replay)
}

/// Plans worth trying, and the policy's; with the policy's caching, and its own with the other too.
fn plans_for(hidden: u64, chosen: Plan) -> Vec<Plan> {
    let plan = |caching| move |(entry, threads)| Plan { caching, ..Plan::new(entry, threads) };
    let all = ENTRIES.iter().flat_map(|entry| threads(entry, hidden).into_iter().map(move |threads| (entry, threads)));
    let mut plans: Vec<_> = all.map(plan(chosen.caching)).collect();
    plans.extend(Caching::ALL.into_iter().filter(|&c| c != chosen.caching).map(|caching| Plan { caching, ..chosen }));
    if !plans.contains(&chosen) {
        plans.push(chosen);
    }
    plans
}

/// Threads per CTA worth trying.
fn threads(entry: &Entry, hidden: u64) -> Vec<u32> {
    match entry.strategy {
        Strategy::Warp => vec![64, 128, 256],
        // Never the fastest where a row can be read once.
        Strategy::CtaTwoPass if ENTRIES.iter().any(|e| e.max_hidden(MAX_CTA_THREADS) >= Some(hidden)) => vec![],
        Strategy::CtaTwoPass => vec![256, 512, 1024],
        // As many as the row has work for, in whole warps.
        Strategy::Cta => {
            let vectors = hidden.div_ceil(u64::from(entry.elements_per_vector) * u64::from(entry.vectors_per_thread));
            let threads = vectors.next_multiple_of(u64::from(LANES_PER_WARP));
            u32::try_from(threads).into_iter().collect()
        }
    }
}
