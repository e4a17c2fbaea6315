//! Time of one launch among many back to back: a replayed CUDA graph leaves the host out of it.

use crate::gpu::BoxError;
use per_token_quant_fp8::cust::event::{Event, EventFlags};
use per_token_quant_fp8::cust::stream::Stream;
use per_token_quant_fp8::cust::sys::{self, CUresult};
use std::ptr;
use std::time::Duration;

/// Launches of one graph at most: larger ones take long to build.
const LAUNCHES_PER_GRAPH: usize = 1000;
/// Launches that are timed together at least, so that the clock's resolution does not show.
const MIN_LAUNCHES: usize = 200;

/// Captured launches, ready to be replayed.
pub struct Replay<'s> {
    stream: &'s Stream,
    graphs: Vec<Graph>,
    launches: usize,
    start: Event,
    stop: Event,
}

struct Graph(sys::CUgraphExec);

impl Drop for Graph {
    fn drop(&mut self) {
        // SAFETY: the handle was instantiated by `capture` and is destroyed once. `Replay::time` has waited for it.
        let _ = unsafe { sys::cuGraphExecDestroy(self.0) };
    }
}

impl<'s> Replay<'s> {
    /// Captures what `enqueue` does to the stream for slots 0 to `slots` - 1, around and around.
    pub fn new(
        stream: &'s Stream,
        slots: usize,
        mut enqueue: impl FnMut(usize) -> Result<(), BoxError>,
    ) -> Result<Self, BoxError> {
        // Outside the capture, where a module may be loaded.
        enqueue(0)?;
        stream.synchronize()?;
        let launches = slots.max(MIN_LAUNCHES);
        let order: Vec<usize> = (0..slots).cycle().take(launches).collect();
        let graphs = order.chunks(LAUNCHES_PER_GRAPH).map(|chunk| capture(stream, chunk, &mut enqueue));
        let graphs = graphs.collect::<Result<_, _>>()?;
        let (start, stop) = (Event::new(EventFlags::DEFAULT)?, Event::new(EventFlags::DEFAULT)?);
        let replay = Self { stream, graphs, launches, start, stop };
        replay.time()?;
        Ok(replay)
    }

    /// Launches of one replay.
    pub fn launches(&self) -> usize {
        self.launches
    }

    /// Time of one replay.
    pub fn time(&self) -> Result<Duration, BoxError> {
        self.start.record(self.stream)?;
        for graph in &self.graphs {
            // SAFETY: the graph is instantiated, and what it launches outlives this replay, which waits below.
            check(unsafe { sys::cuGraphLaunch(graph.0, self.stream.as_inner()) })?;
        }
        self.stop.record(self.stream)?;
        self.stop.synchronize()?;
        Ok(Duration::from_secs_f64(f64::from(self.stop.elapsed_time_f32(&self.start)?) / 1e3))
    }
}

fn capture(
    stream: &Stream,
    slots: &[usize],
    enqueue: &mut impl FnMut(usize) -> Result<(), BoxError>,
) -> Result<Graph, BoxError> {
    let mode = sys::CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
    // SAFETY: the stream exists and is not the legacy default stream.
    check(unsafe { sys::cuStreamBeginCapture_v2(stream.as_inner(), mode) })?;
    let enqueued = slots.iter().try_for_each(|&slot| enqueue(slot));
    let mut graph = ptr::null_mut();
    // SAFETY: the stream is being captured; one handle is written.
    let ended = check(unsafe { sys::cuStreamEndCapture(stream.as_inner(), &mut graph) });
    enqueued?;
    ended?;
    let mut executable = ptr::null_mut();
    // SAFETY: `graph` was captured above; one handle is written.
    let instantiated = check(unsafe { sys::cuGraphInstantiateWithFlags(&mut executable, graph, 0) });
    // SAFETY: `graph` was captured above and is destroyed once; the executable does not need it.
    check(unsafe { sys::cuGraphDestroy(graph) })?;
    instantiated?;
    Ok(Graph(executable))
}

/// An error for every code but success.
pub fn check(code: CUresult) -> Result<(), BoxError> {
    if code == CUresult::CUDA_SUCCESS { Ok(()) } else { Err(format!("{code:?}").into()) }
}
