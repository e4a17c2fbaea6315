//! GPU runtime: per-token FP8 quantization of device buffers through the CUDA driver.
//!
//! [`Quantizer::new`] looks at the device of the current context. [`Quantizer::prepare`] checks shape, alignment, overlap
//! and place of three buffers and returns a [`Prepared`] that borrows them; [`Prepared::run`] launches it. An engine that
//! has bare pointers calls [`Quantizer::quantize_raw`].
//!
//! The crate embeds no kernels: whoever links it hands over a table of [`Artifacts`].
//!
//! Environment, read by [`Quantizer::new`]:
//! - `PTQ_TARGET=sm_89` forces a target, as [`Quantizer::with_target`] does;
//! - `PTQ_ARTIFACTS=DIR` takes PTX and cubins from a folder instead of the table, as [`Artifacts::from_dir`] does.
//!
//! | file | holds |
//! |---|---|
//! | `per_token.rs` | the operation: checks, [`Prepared`], the raw entry |
//! | `quantizer.rs` | what a caller may choose, and the context it is bound to |
//! | `policy.rs` | which kernel entry with how many threads: a table, and the checks of a forced choice |
//! | `selection.rs` | which artifact through which backend |
//! | `modules.rs` | loads a module once per context |
//! | `launch.rs` | the only file that launches a kernel |
//! | `device.rs` | what is there: driver and devices |
//! | `driver.rs` | the other calls to the driver |

mod artifacts;
mod cubin;
mod device;
mod driver;
mod element;
mod error;
mod launch;
mod modules;
mod per_token;
mod policy;
mod quantizer;
mod selection;

pub use artifacts::{Artifact, Artifacts};
pub use cust;
pub use device::{DeviceInfo, Driver, DriverVersion, probe};
pub use driver::DriverError;
pub use element::{Bf16, F16, GpuElement};
pub use error::{Error, PlanError};
pub use per_token::{Choice, Prepared, RawArgs};
pub use policy::Plan;
pub use quantizer::Quantizer;
pub use selection::Backend;
