//! Calls captured into a CUDA graph, and replays of it.

use crate::Outcome;
use per_token_quant_fp8::cust::stream::Stream;
use per_token_quant_fp8::cust::sys::{self, CUgraph, CUgraphExec, CUresult, CUstreamCaptureMode};
use std::error;
use std::ptr;

/// What a stream was given while it was captured.
#[derive(Debug)]
pub struct Graph {
    graph: CUgraph,
    replay: CUgraphExec,
}

impl Graph {
    /// Captures what `call` enqueues in `stream`.
    ///
    /// # Errors
    /// The driver's, and that of `call`.
    pub fn capture<E: error::Error + 'static>(
        stream: &Stream,
        call: impl FnOnce() -> Result<(), E>,
    ) -> Result<Self, Box<dyn error::Error>> {
        let mut captured = Self { graph: ptr::null_mut(), replay: ptr::null_mut() };
        let mode = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
        // SAFETY: the stream exists while it is borrowed.
        done(unsafe { sys::cuStreamBeginCapture_v2(stream.as_inner(), mode) })?;
        let called = call();
        // SAFETY: the stream is being captured; one handle is written.
        done(unsafe { sys::cuStreamEndCapture(stream.as_inner(), &mut captured.graph) })?;
        called?;
        // SAFETY: the graph was captured above; one handle is written.
        done(unsafe { sys::cuGraphInstantiateWithFlags(&mut captured.replay, captured.graph, 0) })?;
        Ok(captured)
    }

    /// Enqueues all of it.
    ///
    /// # Safety
    /// As the captured calls, until `stream` has passed this one.
    ///
    /// # Errors
    /// The driver's.
    pub unsafe fn replay(&self, stream: &Stream) -> Outcome {
        // SAFETY: the graph was instantiated by `capture`; the rest is what the caller promises.
        done(unsafe { sys::cuGraphLaunch(self.replay, stream.as_inner()) })
    }
}

impl Drop for Graph {
    fn drop(&mut self) {
        if !self.replay.is_null() {
            // SAFETY: instantiated by `capture`, and destroyed once; the driver lets a replay in flight end first.
            let _ = unsafe { sys::cuGraphExecDestroy(self.replay) };
        }
        if !self.graph.is_null() {
            // SAFETY: captured by `capture`, and destroyed once.
            let _ = unsafe { sys::cuGraphDestroy(self.graph) };
        }
    }
}

fn done(code: CUresult) -> Outcome {
    if code == CUresult::CUDA_SUCCESS { Ok(()) } else { Err(format!("{code:?}").into()) }
}
