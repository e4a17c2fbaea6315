//! Time of one launch among many back to back: a replayed CUDA graph leaves the host out of it.

use crate::gpu::graph::{self, Graph};
use crate::gpu::slots::MAX_SLOTS;
use crate::gpu::{BoxError, COLD_BYTES};
use per_token_quant_fp8::cust::event::{Event, EventFlags};
use per_token_quant_fp8::cust::memory::DeviceBuffer;
use per_token_quant_fp8::cust::stream::Stream;
use per_token_quant_fp8::cust::sys;
use std::time::Duration;

/// A replay takes about this long, so that the clock's resolution and what begins and ends it do not show.
const SECONDS: f64 = 2e-3;
/// What a launch takes at least, and how fast memory is: an estimate alone, to choose the number of launches.
const LAUNCH_SECONDS: f64 = 1.2e-6;
const BYTES_PER_SECOND: f64 = 4e12;
/// Launches of one replay at least.
const MIN_LAUNCHES: usize = 4;
/// Launches of one graph at most: the device waits until a graph is enqueued whole, which takes the longer the larger it is.
const LAUNCHES_PER_GRAPH: usize = 512;
/// Copies before a replay. While they run, for some 0.2 ms on an H200, the host enqueues the first graph, and while that
/// runs the others, so that no launch waits for the host.
const COPIES: usize = 3;

/// Makes the L2 cache cold: a copy through more memory than it holds.
pub struct Flush(DeviceBuffer<u8>);

impl Flush {
    pub fn new() -> Result<Self, BoxError> {
        Ok(Self(DeviceBuffer::zeroed(COLD_BYTES)?))
    }

    fn enqueue(&self, stream: &Stream) -> Result<(), BoxError> {
        let (from, half) = (self.0.as_device_ptr().as_raw(), self.0.len() / 2);
        for _ in 0..COPIES {
            // SAFETY: the buffer has two halves, which nothing else uses, and outlives every replay, which waits for its
            // stream.
            graph::check(unsafe { sys::cuMemcpyDtoDAsync_v2(from + half as u64, from, half, stream.as_inner()) })?;
        }
        Ok(())
    }
}

/// Captured launches, ready to be replayed.
pub struct Replay<'a> {
    stream: &'a Stream,
    flush: &'a Flush,
    graphs: Vec<Graph>,
    launches: usize,
    start: Event,
    stop: Event,
}

impl<'a> Replay<'a> {
    /// Captures what `enqueue` does to the stream for slots 0 to `slots` - 1, around and around, and replays it once.
    /// `bytes`: what a launch reads and writes.
    pub fn new(
        stream: &'a Stream,
        flush: &'a Flush,
        (slots, bytes): (usize, usize),
        mut enqueue: impl FnMut(usize) -> Result<(), BoxError>,
    ) -> Result<Self, BoxError> {
        // Outside the capture, where a module may be loaded.
        enqueue(0)?;
        stream.synchronize()?;
        let launches = (SECONDS / (LAUNCH_SECONDS + bytes as f64 / BYTES_PER_SECOND)) as usize;
        let launches = launches.clamp(MIN_LAUNCHES, MAX_SLOTS).max(slots);
        let order: Vec<usize> = (0..slots).cycle().take(launches).collect();
        let graphs = order.chunks(LAUNCHES_PER_GRAPH).map(|slots| capture(stream, slots, &mut enqueue));
        let graphs = graphs.collect::<Result<_, _>>()?;
        let (start, stop) = (Event::new(EventFlags::DEFAULT)?, Event::new(EventFlags::DEFAULT)?);
        let replay = Self { stream, flush, graphs, launches, start, stop };
        replay.time()?;
        Ok(replay)
    }

    /// Launches of one replay.
    pub fn launches(&self) -> usize {
        self.launches
    }

    /// Time of one replay, which starts with a cold L2 cache.
    pub fn time(&self) -> Result<Duration, BoxError> {
        self.flush.enqueue(self.stream)?;
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
