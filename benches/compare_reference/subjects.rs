//! Who is timed. A column of the record each; a new one is one more entry in [`Subjects::time`] and in `columns.rs`.

use crate::empty::Empty;
use crate::gpu::arena::Arena;
use crate::gpu::input::Expected;
use crate::gpu::replay::Replay;
use crate::gpu::slots::Slots;
use crate::gpu::{BoxError, COLD_BYTES, graph};
use crate::sglang::{self, Sglang};
use crate::vllm_kernel::Vllm;
use crate::{Bench, Cell, REPETITIONS, rounds};
use per_token_quant_fp8::cust::sys;
use per_token_quant_fp8::{MathMode, Quantizer};

/// Those that are not ours.
pub struct Subjects {
    reference: Option<(Sglang, Vllm)>,
    empty: Empty,
}

/// Microseconds per launch, in the order of the record's columns; `None`: not there, or wrong.
pub struct Times {
    pub micros: Vec<Option<f64>>,
    /// Launches of one replay.
    pub launches: usize,
}

/// Replays of those that run, and which of them each column is.
#[derive(Default)]
struct Lanes<'a> {
    replays: Vec<Replay<'a>>,
    columns: Vec<Option<usize>>,
}

impl<'a> Lanes<'a> {
    /// The next column.
    fn push(&mut self, replay: Option<Replay<'a>>) {
        self.columns.push(replay.is_some().then_some(self.replays.len()));
        self.replays.extend(replay);
    }
}

impl Subjects {
    /// The reference's kernels where they are and the device is theirs; says so otherwise.
    pub fn load(quantizer: &Quantizer) -> Result<Self, BoxError> {
        let reference = match sglang::folder() {
            Some(folder) if quantizer.device().capability == MathMode::FAST_CAPABILITY => {
                Some((Sglang::load(&folder, quantizer.math())?, Vllm::load(&folder)?))
            }
            Some(_) => {
                println!("no reference: its code is for compute capability {}", MathMode::FAST_CAPABILITY);
                None
            }
            None => {
                println!("no reference; run `cargo xtask reference`");
                None
            }
        };
        Ok(Self { reference, empty: Empty::load()? })
    }

    /// What a record calls them.
    pub fn names(&self) -> &'static str {
        if self.reference.is_some() { "SGLang and vLLM" } else { "none" }
    }

    /// Times everybody on one cell, by turns; puts into `wrong` whose bytes are not what they should be.
    pub fn time(&self, bench: &Bench, cell: &mut Cell<'_>, wrong: &mut Vec<String>) -> Result<Times, BoxError> {
        let (input, vllm_gives) = (&cell.input.input, &cell.input.vllm);
        let name = format!("{} {} x {}", input.element, cell.rows, input.hidden);
        let mut checked = |subject: &str, slots: &mut Slots, expected: &Expected, enqueue: Enqueue<'_>| {
            checked(bench, slots, expected, enqueue).map(|result| match result {
                Ok(replay) => Some(replay),
                Err(error) => {
                    wrong.push(format!("{name}: {subject}: {error}"));
                    None
                }
            })
        };
        let (stream, slots) = (&bench.stream, &mut cell.slots);
        let mut lanes = Lanes::default();

        let ours: Enqueue<'_> = &mut |slots, slot| bench.launch(&bench.quantizer, slots, slot);
        lanes.push(checked("ours", slots, &input.contract, ours)?);
        lanes.push(checked("ours again", slots, &input.contract, ours)?);

        match &self.reference {
            None => (0..2).for_each(|_| lanes.push(None)),
            Some((sglang, vllm)) => {
                let kernel = sglang.kernel(&slots.args(0), bench.quantizer.device().sm_count)?;
                // SAFETY: every slot's operands have the shape and the alignment of the first's, for which the kernel was
                // chosen, and outlive the replay; launches follow one another in one stream.
                let launch: Enqueue<'_> = &mut |slots, slot| unsafe { kernel.launch(&slots.args(slot), stream) };
                lanes.push(checked("SGLang", slots, &input.contract, launch)?);
                let kernel = vllm.kernel(input.element)?;
                // SAFETY: the kernel was chosen for the element; there is no bound; the rest is as above.
                let launch: Enqueue<'_> = &mut |slots, slot| unsafe { kernel.launch(&slots.args(slot), 0, stream) };
                lanes.push(checked("vLLM", slots, vllm_gives, launch)?);
            }
        }

        // Half is read, half is written; what is read is the beginning of `x`.
        let half = slots.bytes() / 2;
        let to = Arena::new(half, slots.count, COLD_BYTES / 2)?;
        lanes.push(Some(bench.replay(slots, |slot| {
            // SAFETY: half of a call's bytes are at most those of `x`, and `to` has room for as many per slot; both outlive
            // the replay.
            graph::check(unsafe {
                sys::cuMemcpyDtoDAsync_v2(to.address(slot), slots.args(slot).x, half, stream.as_inner())
            })
        })?));
        let empty = self.empty.kernel()?;
        lanes.push(Some(bench.replay(slots, |_| empty.launch(stream))?));

        let chained = bench.quantizer.clone().with_programmatic_launch(true);
        let chained: Enqueue<'_> = &mut |slots, slot| bench.launch(&chained, slots, slot);
        lanes.push(checked("chained", slots, &input.contract, chained)?);

        let medians = rounds::medians(&lanes.replays, REPETITIONS)?;
        let micros = lanes.columns.iter().map(|lane| lane.map(|lane| medians[lane])).collect();
        Ok(Times { micros, launches: lanes.replays[0].launches() })
    }
}

/// Enqueues the launch of one slot.
type Enqueue<'a> = &'a mut dyn FnMut(&Slots, usize) -> Result<(), BoxError>;

/// A replay whose output is right, or what is wrong with it.
fn checked<'b>(
    bench: &'b Bench,
    slots: &mut Slots,
    expected: &Expected,
    enqueue: Enqueue<'_>,
) -> Result<Result<Replay<'b>, BoxError>, BoxError> {
    slots.poison()?;
    let replay = bench.replay(slots, |slot| enqueue(slots, slot))?;
    Ok(slots.check(expected).map(|()| replay))
}
