//! A row count in device memory: a captured graph serves as many tokens as it says when the graph runs.

use crate::bare::Bare;
use crate::child::{self, Body};
use crate::errors::precise;
use crate::graph::Graph;
use crate::{Outcome, Test, enter, open};
use per_token_quant_fp8::cust::stream::{Stream, StreamFlags};
use per_token_quant_fp8::{Element, Kernel};
use std::num::NonZeroU32;

/// What runs in a process of its own: while a stream is captured that waits for the default stream, nobody may use the
/// default stream.
pub const CHILDREN: &[Body] =
    &[Body { name: "counted::graph_serves_fewer_tokens", variable: None, run: graph_serves_fewer_tokens }];

pub fn tests() -> Vec<Test> {
    CHILDREN.iter().map(child::test).collect()
}

fn graph_serves_fewer_tokens() -> Outcome {
    open()?;
    enter()?;
    // Three CTAs to a grid: the count is of the call's rows and not of a grid's.
    let limit = NonZeroU32::new(3).ok_or("three is not zero")?;
    let quantizers = [precise()?, precise()?.with_grid_limit(limit)];
    for quantizer in quantizers {
        quantizer.load(Kernel::PerTokenExtended, Element::F32)?;
        let stream = Stream::new(StreamFlags::NON_BLOCKING, None)?;
        // Rows for warps, for CTAs, for two passes.
        let mut calls =
            [Bare::new(6400, 128)?.counted()?, Bare::new(33, 4096)?.counted()?, Bare::new(5, 32768)?.counted()?];
        let enqueue = || {
            // SAFETY: the stream is one of the quantizer's context.
            calls.iter().try_for_each(|call| unsafe { call.quantize(&quantizer, stream.as_inner()) })
        };
        // SAFETY: the stream lives in this function and is captured here alone.
        let graph = unsafe { Graph::capture(stream.as_inner(), enqueue) }?;
        for (seed, count) in [u32::MAX, 3, 0, 1, 24, 25, 6399, 4, 6400].into_iter().enumerate() {
            for call in &mut calls {
                // SAFETY: the stream lives in this function; the context is the tests', here and below.
                unsafe { call.fill(seed as u32, stream.as_inner()) }?;
                // SAFETY: as above.
                unsafe { call.set_count(count, stream.as_inner()) }?;
            }
            // SAFETY: the buffers of the captured calls are used in this stream alone.
            unsafe { graph.launch(stream.as_inner()) }?;
            for call in &calls {
                // SAFETY: as above.
                let checked = unsafe { call.check(&quantizer, stream.as_inner()) };
                checked.map_err(|error| format!("count {count}: {error}"))?;
            }
        }
    }
    Ok(())
}
