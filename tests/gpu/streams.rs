//! Streams of every kind, graphs, threads: the order of the stream is all that a call relies on.

use crate::bare::Bare;
use crate::child::Body;
use crate::errors::precise;
use crate::events::{Count, LOADED, RESOLVED};
use crate::graph::Graph;
use crate::loading::copied;
use crate::{Outcome, Test, allocations, child, enter, open};
use per_token_quant_fp8::cust::context::CurrentContext;
use per_token_quant_fp8::cust::stream::{Stream, StreamFlags};
use per_token_quant_fp8::cust::sys::{self, CUresult, CUstream};
use per_token_quant_fp8::{Backend, Element, Kernel, MathMode, Quantizer};
use std::error::Error;
use std::hint::black_box;
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::time::Duration;

/// The driver's handle of the legacy default stream (`CU_STREAM_LEGACY`).
const LEGACY: CUstream = 1 as CUstream;
/// The driver's handle of the calling thread's default stream (`CU_STREAM_PER_THREAD`).
const PER_THREAD: CUstream = 2 as CUstream;

const THREADS: usize = 8;
const STREAMS: usize = 8;

/// What runs in a process of its own.
pub const CHILDREN: &[Body] = &[
    Body { name: "streams::calls_do_not_wait", variable: None, run: calls_do_not_wait },
    // While a stream is captured that waits for the default stream, nobody may use the default stream.
    Body { name: GRAPH_REPLAY, variable: None, run: graph_replay },
];
const GRAPH_REPLAY: &str = "streams::graph_replay";

pub fn tests() -> Vec<Test> {
    let replaced = std::env::var_os("PTQ_ARTIFACTS").is_some_and(|dir| !dir.is_empty());
    let mut tests = vec![
        Test::new("streams::every_kind", every_kind),
        Test::new("streams::threads_and_streams", threads_and_streams),
        Test::new("streams::one_event_for_a_call", one_event_for_a_call),
        Test::new("streams::calls_allocate_nothing", calls_allocate_nothing),
    ];
    tests.extend(CHILDREN.iter().map(|body| {
        let makes_artifacts = body.name == GRAPH_REPLAY;
        child::test(body)
            .skip_if(replaced && makes_artifacts, "PTQ_ARTIFACTS replaces the artifacts that this test makes")
    }));
    tests
}

fn new_stream(flags: StreamFlags) -> Result<Stream, Box<dyn Error>> {
    Ok(Stream::new(flags, None)?)
}

fn every_kind() -> Outcome {
    let quantizer = precise()?;
    let blocking = new_stream(StreamFlags::DEFAULT)?;
    let non_blocking = new_stream(StreamFlags::NON_BLOCKING)?;
    let streams = [
        ("null", ptr::null_mut()),
        ("legacy", LEGACY),
        ("per thread", PER_THREAD),
        ("blocking", blocking.as_inner()),
        ("non-blocking", non_blocking.as_inner()),
    ];
    for (seed, (name, stream)) in streams.into_iter().enumerate() {
        let mut bare = Bare::new(129, 1368)?;
        for round in 0..3 {
            // SAFETY: the stream is a default stream or lives in this function; the context is the tests'.
            let outcome = unsafe { bare.round(&quantizer, seed as u32 * 3 + round, stream) };
            outcome.map_err(|error| format!("{name} stream: {error}"))?;
        }
    }
    Ok(())
}

/// Eight threads with eight streams each, everything in flight at once.
fn threads_and_streams() -> Outcome {
    let quantizer = precise()?;
    let results: Vec<_> = std::thread::scope(|scope| {
        let quantizer = &quantizer;
        let threads: Vec<_> = (0..THREADS)
            .map(|thread| {
                scope.spawn(move || one_thread(quantizer, thread).map_err(|e| format!("thread {thread}: {e}")))
            })
            .collect();
        threads.into_iter().map(|thread| thread.join()).collect()
    });
    for result in results {
        result.map_err(|_| "a thread panicked")??;
    }
    Ok(())
}

fn one_thread(quantizer: &Quantizer, thread: usize) -> Outcome {
    enter()?;
    let flags = |i| if i % 2 == 0 { StreamFlags::NON_BLOCKING } else { StreamFlags::DEFAULT };
    let own = (1..STREAMS).map(|i| new_stream(flags(i))).collect::<Result<Vec<_>, _>>()?;
    let streams = || own.iter().map(Stream::as_inner).chain([PER_THREAD]);
    let shape = |i: usize| (1 + 37 * i + 5 * thread, [64, 512, 1368, 4096][(i + thread) % 4]);
    let calls = (0..STREAMS).map(|i| Bare::new(shape(i).0, shape(i).1));
    let mut calls = calls.collect::<Result<Vec<_>, _>>()?;
    for round in 0..4 {
        for (i, (call, stream)) in calls.iter_mut().zip(streams()).enumerate() {
            let seed = (round * THREADS + thread) * STREAMS + i;
            // SAFETY: the stream is the thread's or lives in this function; the context is the tests', here and below.
            unsafe { call.fill(seed as u32, stream) }?;
            // SAFETY: as above.
            unsafe { call.quantize(quantizer, stream) }?;
        }
        for (i, (call, stream)) in calls.iter().zip(streams()).enumerate() {
            // SAFETY: as above.
            unsafe { call.check(quantizer, stream) }.map_err(|error| format!("stream {i}, round {round}: {error}"))?;
        }
    }
    Ok(())
}

/// After `load`, a capture loads nothing, and every replay reads the input of its time.
fn graph_replay() -> Outcome {
    open()?;
    enter()?;
    for backend in [Backend::Auto, Backend::Jit] {
        let quantizer = Quantizer::new(copied())?.with_math(MathMode::Precise)?.with_backend(backend);
        let loads = Count::of(LOADED);
        loads.during(|| quantizer.load(Kernel::PerToken, Element::F32))?;
        // PTX is compiled entry by entry; the device may have nothing else.
        let (loaded, entries) = (loads.get(), Kernel::PerToken.entries().len());
        if loaded != 1 && loaded != entries {
            return Err(format!("{backend}: `load` loaded {loaded} modules, expected 1 or {entries}").into());
        }
        for flags in [StreamFlags::NON_BLOCKING, StreamFlags::DEFAULT] {
            let stream = new_stream(flags)?;
            // Rows for warps, for CTAs, for two passes.
            let mut calls = [Bare::new(1600, 512)?, Bare::new(33, 4096)?, Bare::new(5, 65536)?];
            let enqueue = || {
                // SAFETY: the stream is one of the quantizer's context.
                let mut each = calls.iter().map(|call| unsafe { call.quantize(&quantizer, stream.as_inner()) });
                loads.during(|| each.try_for_each(|enqueued| enqueued))
            };
            // SAFETY: the stream lives in this function and is captured here alone.
            let graph = unsafe { Graph::capture(stream.as_inner(), enqueue) }?;
            if loads.get() != loaded {
                return Err(format!("{backend}: the capture loaded a module").into());
            }
            for seed in 0..4 {
                for call in &mut calls {
                    // SAFETY: the stream lives in this function; the context is the tests', here and below.
                    unsafe { call.fill(seed, stream.as_inner()) }?;
                }
                // SAFETY: the buffers of the captured calls are used in this stream alone.
                unsafe { graph.launch(stream.as_inner()) }?;
                for call in &calls {
                    // SAFETY: as above.
                    unsafe { call.check(&quantizer, stream.as_inner()) }?;
                }
            }
        }
    }
    Ok(())
}

fn one_event_for_a_call() -> Outcome {
    let quantizer = precise()?;
    let bare = Bare::new(3, 64)?;
    let stream = new_stream(StreamFlags::NON_BLOCKING)?;
    let resolved = Count::of(RESOLVED);
    // SAFETY: the stream lives in this function; the context is the tests'.
    resolved.during(|| unsafe { bare.quantize(&quantizer, stream.as_inner()) })?;
    stream.synchronize()?;
    match resolved.get() {
        1 => Ok(()),
        n => Err(format!("{n} events for a call, expected 1").into()),
    }
}

fn calls_allocate_nothing() -> Outcome {
    if allocations::during(|| black_box(Box::new(1))).0 != 1 {
        return Err("the counter does not count".into());
    }
    let quantizer = precise()?;
    let stream = new_stream(StreamFlags::NON_BLOCKING)?;
    let mut bare = Bare::new(3, 64)?;
    // What is loaded or registered at the first call is no part of the others.
    // SAFETY: the stream lives in this function; the context is the tests', here and below.
    unsafe { bare.round(&quantizer, 0, stream.as_inner()) }?;
    // SAFETY: as above.
    unsafe { bare.fill(1, stream.as_inner()) }?;
    // SAFETY: as above.
    let (count, enqueued) = allocations::during(|| unsafe { bare.quantize(&quantizer, stream.as_inner()) });
    enqueued?;
    // SAFETY: as above.
    unsafe { bare.check(&quantizer, stream.as_inner()) }?;
    if count == 0 { Ok(()) } else { Err(format!("a call allocated {count} times").into()) }
}

/// A call returns while what is before it in the stream still runs. In a process of its own: other threads may hold the
/// driver's locks while they wait for the device.
fn calls_do_not_wait() -> Outcome {
    open()?;
    enter()?;
    let quantizer = precise()?;
    let stream = new_stream(StreamFlags::NON_BLOCKING)?;
    let mut bare = Bare::new(129, 4096)?;
    // SAFETY: the stream lives in this function; the context is the tests', here and below.
    unsafe { bare.round(&quantizer, 0, stream.as_inner()) }?;
    // SAFETY: as above.
    unsafe { bare.fill(1, stream.as_inner()) }?;
    CurrentContext::synchronize()?;

    let (release, released) = mpsc::channel::<()>();
    let gave_up = Arc::new(AtomicBool::new(false));
    let flag = gave_up.clone();
    stream.add_callback(Box::new(move || {
        // A call that waits for the stream would wait for this.
        flag.store(released.recv_timeout(Duration::from_secs(20)).is_err(), Ordering::Relaxed);
    }))?;
    // SAFETY: as above.
    let enqueued = unsafe { bare.quantize(&quantizer, stream.as_inner()) };
    // SAFETY: the stream lives in this function.
    let state = unsafe { sys::cuStreamQuery(stream.as_inner()) };
    let _ = release.send(());
    enqueued?;
    // SAFETY: as above.
    unsafe { bare.check(&quantizer, stream.as_inner()) }?;
    if gave_up.load(Ordering::Relaxed) || state != CUresult::CUDA_ERROR_NOT_READY {
        return Err(format!("the call waited for the stream, which was {state:?} afterwards").into());
    }
    Ok(())
}
