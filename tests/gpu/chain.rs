//! Thousands of calls between a kernel that writes their input and one that reads what they wrote, as fast as they go, with
//! programmatic dependent launch and without: the order of the stream is that of the results.
//!
//! Every round has other input than the one before, and starts with poisoned outputs. The kernel behind the call compares
//! every word on the device, so that nothing has to wait for the host.

use crate::child::{self, Body};
use crate::form::Form;
use crate::graph::{Graph, check};
use crate::neighbours::{Neighbours, Order, Words};
use crate::variation::{self, Variation};
use crate::{Outcome, Test, enter, open};
use per_token_quant_fp8::cpu::{self, Params};
use per_token_quant_fp8::cust::memory::{CopyDestination, DeviceBuffer};
use per_token_quant_fp8::cust::stream::{Stream, StreamFlags};
use per_token_quant_fp8::cust::sys;
use per_token_quant_fp8::spec::ComputeCapability;
use per_token_quant_fp8::spec::per_token::{Entry, Strategy};
use per_token_quant_fp8::{DeviceInfo, Element, Kernel, Options, Plan, Quantizer, RawArgs, Shape, quantizer};
use ptq_suite::random_rows;
use std::collections::HashSet;
use std::error::Error;
use std::mem::discriminant;
use std::ptr;

/// Rounds with each pair of neighbours, and elements of all their inputs: large calls get fewer rounds.
const ROUNDS: usize = 2000;
const ELEMENTS: u64 = 1 << 29;
/// Rounds of a graph, which is launched as often as it takes.
const GRAPH_ROUNDS: usize = 64;
/// Inputs, which take turns.
const INPUTS: usize = 4;
/// What the kernel before a call waits in every other round, once it has let the call start.
const PAUSE_NS: u32 = 3000;

/// Rows for CTAs, for two passes and, where many are short, for warps.
const SHAPES: [(u64, u64); 9] =
    [(1, 256), (7, 64), (512, 256), (1, 512), (39, 1076), (128, 2048), (512, 4096), (5, 65536), (3200, 256)];

/// Shapes that are quantized by warps too, though there are few rows: short kernels overlap the most.
const BY_WARPS: [(u64, u64); 3] = [(1, 256), (39, 64), (512, 512)];

/// Whether the kernels before, the calls, and the kernels after may start early.
const CHAINS: [(Order, bool, Order); 6] = [
    (Order::Overlapping, true, Order::Overlapping),
    (Order::Plain, true, Order::Overlapping),
    (Order::Overlapping, true, Order::Plain),
    (Order::Plain, true, Order::Plain),
    (Order::Overlapping, false, Order::Overlapping),
    (Order::Plain, false, Order::Plain),
];

/// What runs in a process of its own: a captured stream is not for others to disturb.
pub const CHILDREN: &[Body] = &[Body { name: "chain::graphs", variable: None, run: in_graphs }];

pub fn tests(device: &DeviceInfo, variations: &[Variation]) -> Vec<Test> {
    let older = device.capability < ComputeCapability(9, 0);
    let mut tests = vec![Test::new("chain::differences_are_counted", differences_are_counted)];
    for variation in variations {
        let variation = variation.clone();
        tests.push(Test::new(format!("chain::stream_{}", variation.name()), move || in_a_stream(&variation)));
    }
    tests.extend(CHILDREN.iter().map(child::test));
    tests
        .into_iter()
        .map(|test| test.skip_if(older, "the kernels around the calls need compute capability 9.0"))
        .collect()
}

/// The call's buffers, its inputs, and what they give.
struct Chain {
    quantizer: Quantizer,
    shape: Shape,
    x: DeviceBuffer<f32>,
    q: DeviceBuffer<u8>,
    s: DeviceBuffer<f32>,
    inputs: Vec<[DeviceBuffer<u32>; 3]>,
    differences: DeviceBuffer<u32>,
}

impl Chain {
    fn new(quantizer: Quantizer, (rows, hidden): (u64, u64)) -> Result<Self, Box<dyn Error>> {
        let shape = Shape::new(rows, hidden)?;
        let (rows, hidden) = (rows as usize, hidden as usize);
        let params = Params { math: quantizer.math(), options: Options::default(), sm_count: quantizer.sm_count() };
        let mut inputs = Vec::new();
        for seed in 0..INPUTS {
            let (mut x, mut q, mut s) = (vec![0.0_f32; rows * hidden], vec![0_u8; rows * hidden], vec![0.0_f32; rows]);
            random_rows(&mut x, hidden, seed as u32);
            cpu::quantize(&x, &mut q, &mut s, shape, params)?;
            let q: Vec<u32> =
                q.chunks_exact(4).map(|word| u32::from_ne_bytes([word[0], word[1], word[2], word[3]])).collect();
            let of = |values: &[f32]| DeviceBuffer::from_slice(bytemuck::cast_slice::<f32, u32>(values));
            inputs.push([of(&x)?, DeviceBuffer::from_slice(&q)?, of(&s)?]);
        }
        let chain = Self {
            quantizer,
            shape,
            x: DeviceBuffer::zeroed(rows * hidden)?,
            q: DeviceBuffer::zeroed(rows * hidden)?,
            s: DeviceBuffer::zeroed(rows)?,
            inputs,
            differences: DeviceBuffer::zeroed(1)?,
        };
        // All of it is written in the default stream, for which a non-blocking stream does not wait.
        // SAFETY: the null stream always exists.
        check(unsafe { sys::cuStreamSynchronize(ptr::null_mut()) })?;
        Ok(chain)
    }

    fn args(&self) -> RawArgs {
        RawArgs::new(
            Element::F32,
            self.x.as_device_ptr().as_raw(),
            self.q.as_device_ptr().as_raw(),
            self.s.as_device_ptr().as_raw(),
            self.shape,
        )
    }

    fn rounds(&self) -> usize {
        ROUNDS.min((ELEMENTS / (self.shape.rows() * self.shape.hidden())) as usize)
    }

    /// `x`, `q` and `s`.
    fn words(&self) -> [Words; 3] {
        let args = self.args();
        [
            (args.x, self.x.len() as u64),
            (args.q, self.q.len() as u64 / size_of::<u32>() as u64),
            (args.s, self.s.len() as u64),
        ]
    }

    /// Addresses of an input and of what it gives.
    fn expected(&self, input: usize) -> [u64; 3] {
        self.inputs[input].each_ref().map(|buffer| buffer.as_device_ptr().as_raw())
    }

    /// Enqueues one round, of which the last kernel expects what input `expected` gives.
    fn round(
        &self,
        number: usize,
        expected: usize,
        [before, after]: [&Neighbours; 2],
        call: impl FnOnce() -> Result<(), per_token_quant_fp8::Error>,
        stream: &Stream,
    ) -> Outcome {
        let [x, q, s] = self.words();
        let [from, ..] = self.expected(number % INPUTS);
        let pause = if number.is_multiple_of(2) { PAUSE_NS } else { 0 };
        let stream = stream.as_inner();
        // SAFETY: the buffers have those sizes, and are used in this stream alone until `finish`; the input has x's size.
        unsafe { before.produce(x, from, q, s, pause, stream) }?;
        call()?;
        let differences = self.differences.as_device_ptr().as_raw();
        // SAFETY: as above.
        unsafe { after.consume([x, q, s], self.expected(expected), differences, stream) }
    }

    /// Waits for the stream, and says how many words differed.
    fn finish(&self, stream: &Stream) -> Result<u32, Box<dyn Error>> {
        stream.synchronize()?;
        let mut count = [0];
        self.differences.copy_to(&mut count)?;
        Ok(count[0])
    }

    /// Fails if words differed, in any round or at the end on the host: the last round's outputs are still there.
    fn verify(&self, last: usize, stream: &Stream) -> Outcome {
        let differences = self.finish(stream)?;
        let [_, want_q, want_s] = &self.inputs[last % INPUTS];
        let differ = |found: &[u32], want: &DeviceBuffer<u32>| -> Result<bool, Box<dyn Error>> {
            let mut expected = vec![0_u32; want.len()];
            want.copy_to(&mut expected)?;
            Ok(found != expected)
        };
        let (mut q, mut s) = (vec![0_u32; want_q.len()], vec![0.0_f32; self.s.len()]);
        self.q.copy_to(bytemuck::cast_slice_mut(&mut q))?;
        self.s.copy_to(&mut s)?;
        if differences != 0 || differ(&q, want_q)? || differ(bytemuck::cast_slice(&s), want_s)? {
            return Err(format!(
                "{:?}: {differences} words differ, the last round's input being {}",
                self.shape,
                last % INPUTS
            )
            .into());
        }
        Ok(())
    }
}

/// A quantizer of the variation, as a chain has it.
fn of(variation: &Variation, programmatic: bool) -> Result<Quantizer, Box<dyn Error>> {
    let math = *variation.math.first().ok_or("a variation has a math mode")?;
    let quantizer = quantizer()?.with_backend(variation.backend).with_target(variation.target.name)?.with_math(math)?;
    Ok(quantizer.with_programmatic_launch(programmatic))
}

/// Runs every chain of every shape.
fn every_chain(variation: &Variation, run: impl Fn(&mut Chain, [&Neighbours; 2], &Stream) -> Outcome) -> Outcome {
    let stream = Stream::new(StreamFlags::NON_BLOCKING, None)?;
    let neighbours = [Neighbours::load(Order::Overlapping)?, Neighbours::load(Order::Plain)?];
    let find = |order| &neighbours[usize::from(order == Order::Plain)];
    let mut strategies = HashSet::new();
    let warp = Entry::find(Strategy::Warp, 4, 4).map(|entry| Plan::new(entry, 128));
    let shapes = SHAPES.map(|shape| (shape, None)).into_iter().chain(BY_WARPS.map(|shape| (shape, warp)));
    for (shape, plan) in shapes {
        let mut quantizer = of(variation, false)?;
        if let Some(plan) = plan {
            quantizer = quantizer.with_plan(plan)?;
        }
        let mut chain = Chain::new(quantizer, shape)?;
        for (before, programmatic, after) in CHAINS {
            chain.quantizer = chain.quantizer.with_programmatic_launch(programmatic);
            let choice = chain.quantizer.choose(&chain.args())?.ok_or("there are rows")?;
            // What is forced proves nothing of the policy's choices.
            if plan.is_none() {
                strategies.insert(discriminant(&choice.plan.entry.strategy));
            }
            let expected = programmatic && variation.target.capability >= ComputeCapability(9, 0);
            if choice.programmatic != expected {
                return Err(format!("programmatic launch is {}, expected {expected}", choice.programmatic).into());
            }
            run(&mut chain, [find(before), find(after)], &stream).map_err(|error| {
                format!("{before:?}, programmatic {programmatic}, {after:?}, {}: {error}", choice.plan.entry.name)
            })?;
        }
    }
    let all = [Strategy::Warp, Strategy::Cta, Strategy::CtaTwoPass].map(|strategy| discriminant(&strategy));
    match all.iter().all(|strategy| strategies.contains(strategy)) {
        true => Ok(()),
        false => Err("the shapes do not meet every kind of kernel".into()),
    }
}

/// Through [`per_token_quant_fp8::Prepared`].
fn in_a_stream(variation: &Variation) -> Outcome {
    every_chain(variation, |chain, neighbours, stream| {
        let shape = chain.shape;
        // SAFETY: the buffers live as long as the chain, and are used in one stream alone until `verify`.
        let prepared =
            unsafe { chain.quantizer.prepare_slices(*chain.x, *chain.q, *chain.s, shape, Options::default()) }?;
        for round in 0..chain.rounds() {
            // SAFETY: as above; the context is the tests', which stays.
            let call = || unsafe { prepared.launch(stream) };
            chain.round(round, round % INPUTS, neighbours, call, stream)?;
        }
        chain.verify(chain.rounds() - 1, stream)
    })
}

/// Every variation, in graphs.
fn in_graphs() -> Outcome {
    let device = open()?;
    enter()?;
    variation::all(&device, Form::of_environment()).iter().try_for_each(in_a_graph)
}

/// Through addresses, captured.
fn in_a_graph(variation: &Variation) -> Outcome {
    every_chain(variation, |chain, neighbours, stream| {
        chain.quantizer.load(Kernel::PerToken, Element::F32)?;
        let rounds = || -> Outcome {
            for round in 0..GRAPH_ROUNDS {
                // SAFETY: the buffers live as long as the chain, and are used in one stream alone until `verify`.
                let call = || unsafe { chain.quantizer.quantize_raw(chain.args(), stream.as_inner()) };
                chain.round(round, round % INPUTS, neighbours, call, stream)?;
            }
            Ok(())
        };
        // SAFETY: the stream lives in the caller and is captured here alone.
        let graph = unsafe { Graph::capture(stream.as_inner(), rounds) }?;
        for _ in 0..chain.rounds().div_ceil(GRAPH_ROUNDS) {
            // SAFETY: as above.
            unsafe { graph.launch(stream.as_inner()) }?;
        }
        chain.verify(GRAPH_ROUNDS - 1, stream)
    })
}

/// What the other tests rely on: the last kernel counts, whatever its order.
fn differences_are_counted() -> Outcome {
    let stream = Stream::new(StreamFlags::NON_BLOCKING, None)?;
    for order in [Order::Overlapping, Order::Plain] {
        let neighbours = Neighbours::load(order)?;
        let chain = Chain::new(quantizer()?, (7, 64))?;
        // SAFETY: the buffers live in this function, and are used in one stream alone until `finish`, here and below.
        let call = || unsafe { chain.quantizer.quantize_raw(chain.args(), stream.as_inner()) };
        chain.round(0, 1, [&neighbours; 2], call, &stream)?;
        let other_input = chain.finish(&stream)?;
        // No call at all: the poison stays.
        chain.round(0, 0, [&neighbours; 2], || Ok(()), &stream)?;
        let poison = chain.finish(&stream)? - other_input;
        let outputs: u64 = chain.words().iter().skip(1).map(|(_, words)| words).sum();
        if other_input == 0 || u64::from(poison) != outputs {
            return Err(format!(
                "{other_input} words of another input differ, and {poison} of {outputs} that are poison"
            )
            .into());
        }
    }
    Ok(())
}
