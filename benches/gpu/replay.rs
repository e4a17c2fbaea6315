//! Time of one launch among many back to back: a replayed CUDA graph leaves the host out of it.

use crate::gpu::BoxError;
use crate::gpu::graph::Graph;
use per_token_quant_fp8::cust::event::{Event, EventFlags};
use per_token_quant_fp8::cust::stream::Stream;
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
            // SAFETY: the stream exists, and what the graph launches outlives this replay, which waits below.
            unsafe { graph.launch(self.stream.as_inner()) }?;
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
    // SAFETY: the stream exists, is none of the default streams, and is captured here alone.
    unsafe { Graph::capture(stream.as_inner(), || slots.iter().try_for_each(|&slot| enqueue(slot))) }
}
