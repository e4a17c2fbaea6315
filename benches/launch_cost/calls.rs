//! Calls in a row, on one thread or several.

use crate::BoxError;
use crate::median::median;
use crate::operands::Operands;
use crate::raw::Raw;
use per_token_quant_fp8::cust::context::{Context, CurrentContext};
use per_token_quant_fp8::{Bf16, Options, Quantizer};
use std::hint::black_box;
use std::sync::Barrier;
use std::thread;
use std::time::Instant;

/// Launches between two drains: fewer than the driver's queue holds, so that none waits for the device.
pub const BATCH: usize = 200;
/// Batches whose median counts.
pub const ROUNDS: usize = 101;

/// What is timed.
#[derive(Clone, Copy)]
pub enum Subject {
    Raw,
    Prepared,
    QuantizeRaw,
    Prepare,
}

impl Subject {
    pub const ALL: [Self; 4] = [Self::Raw, Self::Prepared, Self::QuantizeRaw, Self::Prepare];

    /// Quantity and subject in the record.
    pub fn names(self) -> (&'static str, &'static str) {
        match self {
            Self::Raw => ("launch", "cuLaunchKernel"),
            Self::Prepared => ("launch", "Prepared::launch"),
            Self::QuantizeRaw => ("launch", "Quantizer::quantize_raw"),
            Self::Prepare => ("prepare", "Quantizer::prepare"),
        }
    }

    /// Microseconds per call of one batch; the stream is idle before and after.
    fn time(self, quantizer: &Quantizer, raw: &Raw, operands: &mut Operands<Bf16>) -> Result<f64, BoxError> {
        let args = operands.args();
        let Operands { x, q, s, shape, stream } = operands;
        let options = Options::default();
        let start = match self {
            Self::Raw => {
                let start = Instant::now();
                for _ in 0..BATCH {
                    // SAFETY: the kernel is that of such a call; the operands exist until the stream is drained below, and
                    // only launches in it touch them.
                    unsafe { raw.launch(&args, stream) }?;
                }
                start
            }
            Self::Prepared => {
                let prepared = quantizer.prepare(x, q, s, *shape, options)?;
                let start = Instant::now();
                for _ in 0..BATCH {
                    // SAFETY: as above.
                    unsafe { prepared.launch(stream) }?;
                }
                start
            }
            Self::QuantizeRaw => {
                let start = Instant::now();
                for _ in 0..BATCH {
                    // SAFETY: as above.
                    unsafe { quantizer.quantize_raw(args, stream.as_inner()) }?;
                }
                start
            }
            Self::Prepare => {
                let start = Instant::now();
                for _ in 0..BATCH {
                    let _ = black_box(quantizer.prepare(x, q, s, *shape, options)?);
                }
                start
            }
        };
        let elapsed = start.elapsed();
        stream.synchronize()?;
        Ok(elapsed.as_secs_f64() * 1e6 / BATCH as f64)
    }
}

/// Microseconds per call of each subject, by turns, while as many threads make the same calls on operands and streams of
/// their own; the slowest thread's.
pub fn on_threads(
    threads: usize,
    context: &Context,
    quantizer: &Quantizer,
) -> Result<[f64; Subject::ALL.len()], BoxError> {
    let one = Bf16(half::bf16::ONE);
    let mut operands = (0..threads).map(|_| Operands::new(one)).collect::<Result<Vec<_>, _>>()?;
    let raw = Raw::new(quantizer, &operands[0].args())?;
    let barrier = Barrier::new(threads);
    let medians = thread::scope(|scope| {
        let spawn = |operands| scope.spawn(|| calls(context, quantizer, &raw, operands, &barrier));
        let started: Vec<_> = operands.iter_mut().map(spawn).collect();
        let joined = started.into_iter().map(|thread| thread.join().map_err(|_| "a thread panicked".to_owned())?);
        joined.collect::<Result<Vec<_>, String>>()
    })?;
    operands.iter().try_for_each(|operands| operands.check(quantizer.math()))?;
    let slowest = |subject: usize| medians.iter().map(|medians| medians[subject]).fold(0.0, f64::max);
    Ok(std::array::from_fn(slowest))
}

/// One thread's medians. After an error it still meets the others, which would wait for it.
fn calls(
    context: &Context,
    quantizer: &Quantizer,
    raw: &Raw,
    operands: &mut Operands<Bf16>,
    barrier: &Barrier,
) -> Result<[f64; Subject::ALL.len()], String> {
    let mut failed = CurrentContext::set_current(context).map_err(|e| e.to_string()).err();
    let mut times: [Vec<f64>; Subject::ALL.len()] = Default::default();
    for _ in 0..ROUNDS {
        for (subject, times) in Subject::ALL.into_iter().zip(&mut times) {
            barrier.wait();
            if failed.is_none() {
                match subject.time(quantizer, raw, operands) {
                    Ok(micros) => times.push(micros),
                    Err(error) => failed = Some(error.to_string()),
                }
            }
        }
    }
    failed.map_or_else(|| Ok(times.map(median)), Err)
}
