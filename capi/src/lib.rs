//! The C ABI: `libptq_fp8.so` and `libptq_fp8.a`, declared by `include/ptq_fp8.h`.
//!
//! The header is made from this crate's public items and their documentation; `README.md` beside it shows a program.
//! Every exported function that can fail goes through `call::guarded`: no panic crosses, and what went wrong is kept for
//! [`ptq_last_error_message`]. Handles are looked up and never dereferenced (`registry`).

mod arguments;
mod call;
mod choices;
mod extended;
mod failure;
mod per_token;
mod quantizer;
mod registry;
mod scaled;
mod status;
mod version;

pub use call::ptq_last_error_message;
pub use choices::{PtqBackend, PtqDispatch, PtqDtype, PtqGranularity, PtqMath, PtqZeroRows};
pub use per_token::{PtqPerTokenArgs, ptq_per_token_quant_fp8};
pub use quantizer::{
    PtqConfig, PtqQuantizer, ptq_load, ptq_quantizer_config, ptq_quantizer_create, ptq_quantizer_destroy,
};
pub use scaled::{PtqOutputShape, PtqScaledArgs, ptq_scaled_fp8_output_shape, ptq_scaled_fp8_quant};
pub use status::{PtqStatus, ptq_status_message};
pub use version::{PTQ_VERSION_MAJOR, PTQ_VERSION_MINOR, ptq_version};
