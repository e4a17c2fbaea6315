//! Every kernel entry that takes a shape, timed: where the numbers of the policy come from.

use crate::gpu::BoxError;
use crate::gpu::slots::Slots;
use crate::ours;
use per_token_quant_fp8::cust::stream::Stream;
use per_token_quant_fp8::spec::per_token::{ENTRIES, Entry, LANES_PER_WARP, Strategy};
use per_token_quant_fp8::{Error, Plan, Quantizer};
use ptq_suite::Case;

/// Replays whose median counts: fewer than for the table, as there are many plans.
const REPETITIONS: usize = 5;

/// Prints the time of every plan that fits, best first.
pub fn print(case: &Case, quantizer: &Quantizer, slots: &Slots, stream: &Stream) -> Result<(), BoxError> {
    let mut timed = Vec::new();
    for entry in ENTRIES {
        for threads in threads(entry, case.shape.hidden()) {
            let forced = match quantizer.clone().with_plan(Plan { entry, threads }) {
                Err(Error::Plan(_)) => continue,
                forced => forced?,
            };
            match forced.choose(&slots.args(0)) {
                Err(Error::Plan(_)) => continue,
                chosen => chosen?,
            };
            timed.push((ours(&forced, slots, stream, REPETITIONS)?, entry.name, threads));
        }
    }
    timed.sort_by(|a, b| a.0.total_cmp(&b.0));
    println!("{}:", case.name);
    for (micros, entry, threads) in timed {
        println!("  {micros:8.2} us  {entry}, {threads} threads");
    }
    Ok(())
}

/// Threads per CTA worth trying.
fn threads(entry: &Entry, hidden: u64) -> Vec<u32> {
    match entry.strategy {
        Strategy::Warp => vec![32, 64, 128, 256],
        Strategy::CtaTwoPass => vec![128, 256, 512, 1024],
        // As many as the row has work for, in whole warps.
        Strategy::Cta => {
            let vectors = hidden.div_ceil(u64::from(entry.elements_per_vector) * u64::from(entry.vectors_per_thread));
            let threads = vectors.next_multiple_of(u64::from(LANES_PER_WARP));
            u32::try_from(threads).into_iter().collect()
        }
    }
}
