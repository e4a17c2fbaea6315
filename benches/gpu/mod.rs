//! What the benchmarks on a GPU share. `empty.rs`, `median.rs` and `record.rs` are for those that include them.

pub mod arena;
#[path = "../../tests/gpu/graph.rs"]
pub mod graph;
pub mod input;
pub mod replay;
pub mod slots;

use per_token_quant_fp8::cust::{self, context::Context};
use per_token_quant_fp8::{Error, Quantizer, probe, quantizer};

/// Whatever goes wrong ends a benchmark.
pub type BoxError = Box<dyn std::error::Error>;

/// Bytes over which buffers are spread, and through which a copy goes before a replay: several times the L2 cache of any
/// device.
pub const COLD_BYTES: usize = 300 << 20;

/// A quantizer on the first device, and its context, which has to be kept; `Err` with the reason where there is no device
/// and `PTQ_REQUIRE_GPU=1` does not ask for one.
pub fn open() -> Result<Result<(Context, Quantizer), Error>, BoxError> {
    let required = std::env::var("PTQ_REQUIRE_GPU").is_ok_and(|v| !["", "0"].contains(&v.as_str()));
    match probe() {
        Err(reason @ (Error::NoDriver { .. } | Error::NoDevice { .. })) if !required => Ok(Err(reason)),
        Err(error) => Err(error.into()),
        Ok(_) => {
            let context = cust::quick_init()?;
            Ok(Ok((context, quantizer()?)))
        }
    }
}
