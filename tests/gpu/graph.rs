//! A CUDA graph: what a stream was given, captured, to be replayed.

use per_token_quant_fp8::cust::sys::{self, CUresult, CUstream};
use std::error::Error;
use std::ptr;

/// A captured graph, instantiated.
pub struct Graph(sys::CUgraphExec);

impl Graph {
    /// Captures what `enqueue` gives to `stream` from this thread, which therefore does not run.
    ///
    /// # Safety
    /// `stream` exists, and is neither the legacy default stream nor one that is being captured.
    pub unsafe fn capture<E: Into<Box<dyn Error>>>(
        stream: CUstream,
        enqueue: impl FnOnce() -> Result<(), E>,
    ) -> Result<Self, Box<dyn Error>> {
        // Not the global mode: other threads may allocate meanwhile.
        let mode = sys::CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
        // SAFETY: as the caller promises.
        check(unsafe { sys::cuStreamBeginCapture_v2(stream, mode) })?;
        let enqueued = enqueue();
        let mut graph = ptr::null_mut();
        // SAFETY: the stream is being captured; one handle is written.
        let ended = check(unsafe { sys::cuStreamEndCapture(stream, &mut graph) });
        enqueued.map_err(Into::into)?;
        ended?;
        let mut executable = ptr::null_mut();
        // SAFETY: `graph` was captured above; one handle is written.
        let instantiated = check(unsafe { sys::cuGraphInstantiateWithFlags(&mut executable, graph, 0) });
        // SAFETY: `graph` was captured above and is destroyed once; the executable does not need it.
        check(unsafe { sys::cuGraphDestroy(graph) })?;
        instantiated?;
        Ok(Self(executable))
    }

    /// Enqueues everything that was captured.
    ///
    /// # Safety
    /// `stream` exists, and what was captured may run in it.
    pub unsafe fn launch(&self, stream: CUstream) -> Result<(), Box<dyn Error>> {
        // SAFETY: the graph is instantiated; the rest is what the caller promises.
        check(unsafe { sys::cuGraphLaunch(self.0, stream) })
    }
}

impl Drop for Graph {
    fn drop(&mut self) {
        // SAFETY: the handle was instantiated by `capture` and is destroyed once; the driver does so when the graph has run.
        let _ = unsafe { sys::cuGraphExecDestroy(self.0) };
    }
}

/// An error for every code but success.
pub fn check(code: CUresult) -> Result<(), Box<dyn Error>> {
    if code == CUresult::CUDA_SUCCESS { Ok(()) } else { Err(format!("{code:?}").into()) }
}
