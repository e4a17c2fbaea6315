//! GPU runtime: per-token and per-tensor FP8 quantization of device buffers through the CUDA driver.
//!
//! [`Quantizer::new`] looks at the device of the current context. [`Quantizer::prepare`] checks shape, alignment, overlap
//! and place of three buffers and returns a [`Prepared`] that borrows them; [`Prepared::run`] launches it. An engine that
//! has bare pointers calls [`Quantizer::quantize_raw`].
//!
//! Row strides, bounds on the scales and a row count in device memory ([`ptq_spec::per_token_extended`]) are
//! [`RawArgs::extended`] and [`RawArgs::device_rows`], or [`Quantizer::prepare_extended`]. They have kernels of their
//! own: [`ptq_spec::Kernel::PerTokenExtended`] is what to [load](Quantizer::load) for them. What the bounds share with
//! vLLM's, and what not, is said there.
//!
//! One scale for a whole tensor, given or the tensor's: [`Quantizer::prepare_per_tensor`] and
//! [`Quantizer::quantize_per_tensor_raw`], of which everything below holds too.
//!
//! The crate embeds no kernels: whoever links it hands over a table of [`Artifacts`].
//!
//! # Streams, capture and threads
//!
//! - [`Quantizer::quantize_raw`] and [`Prepared::launch`] enqueue kernels in the stream they are given and return: they
//!   wait for nothing, allocate nothing and leave nothing in another stream. [`Prepared::run`] waits for the default
//!   stream, then for its own. The stream may be the legacy default stream (null or `CU_STREAM_LEGACY`, 0x1), the calling
//!   thread's (`CU_STREAM_PER_THREAD`, 0x2), or a blocking or non-blocking one of the quantizer's context.
//! - A stream may be captured into a CUDA graph: a call becomes one kernel node for each grid, after a memset node where
//!   it takes a tensor's absmax, with the addresses and the shape of that call. A replay reads what is at the addresses by
//!   then, the count at [`RawArgs::device_rows`] included. Loading is not allowed during a capture, so call
//!   [`Quantizer::load`] before, for each operation and element type.
//! - A [`Quantizer`] is shared by threads, by reference or as clones. The context has to be current on each of them.
//! - Each context has quantizers of its own. Memory belongs to the context it was allocated in: [`Quantizer::prepare`]
//!   refuses that of another device ([`Error::WrongDevice`]) and of another context of the same device
//!   ([`Error::WrongContext`]), which the driver makes accessible only after `cuCtxEnablePeerAccess`; an engine that did
//!   this calls [`Quantizer::quantize_raw`], which does not look. Memory that belongs to no context, managed or of a pool
//!   (`cuMemAllocAsync`), is taken.
//! - An error that another kernel left in the context, an illegal access above all, comes back from the next calls as
//!   [`Error::Driver`] or [`Error::Load`] with the driver's code; nothing works in that context any more. Modules are
//!   cached by the driver's id of a context: one that is created later, even at the same address, loads its own. Drivers
//!   before CUDA 12.0 have no such ids.
//!
//! # Programmatic dependent launch
//!
//! From `sm_90` on there are kernels that first let the next kernel of the stream start and then wait for the kernels before
//! (`griddepcontrol`), before they touch memory and before any thread ends.
//!
//! - [`Quantizer::with_programmatic_launch`] takes those ([`ptq_spec::Kernel::PerTokenProgrammatic`], which its
//!   [`Quantizer::load`] loads for the plain operation): a call may start while the kernel before still runs, if that one lets
//!   it, and waits for its end, so that the call is right after any kernel. The plain kernels of calls that were not asked
//!   to are without the two, which cost time where CTAs are many and short; extended ones always have them.
//! - A kernel after ours that is launched in the ordinary way starts when ours is complete. One that is launched with
//!   `CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION` may start before ours is complete, and has to
//!   wait (`griddepcontrol.wait`, `cudaGridDependencySynchronize`) before it reads `q` and `s` or writes any buffer of the
//!   call. When it has waited, everything before ours in the stream is complete too.
//! - A capture keeps it as a programmatic edge of the graph, which takes a driver of CUDA 12.3.
//!
//! # What ran
//!
//! Each resolved call is one `tracing` event at debug level: artifact, backend, math mode, kernel, geometry and what the
//! caller forced. A launch of a [`Prepared`] is none. Where nobody listens, an event costs a load and a branch.
//!
//! # Environment
//!
//! Read by [`Quantizer::new`]:
//! - `PTQ_BACKEND=jit` chooses the [`Backend`]: `auto`, `aot` or `jit`; [`Quantizer::with_backend`] overrides it. With
//!   `cpu`, calls on device buffers are [`Error::CpuBackend`];
//! - `PTQ_TARGET=sm_89` forces a target, as [`Quantizer::with_target`] does;
//! - `PTQ_ARTIFACTS=DIR` takes PTX and cubins from a folder instead of the table, as [`Artifacts::from_dir`] does.
//!
//! # Files
//!
//! | file | holds |
//! |---|---|
//! | `per_token.rs` | the operation, plain and extended: checks, [`Prepared`], the raw entry |
//! | `per_tensor.rs` | the same of per-tensor quantization |
//! | `quantizer.rs` | what a caller may choose, and the context it is bound to |
//! | `policy.rs` | which kernel entry, how many threads, what caches do: a table, and the checks of a forced choice |
//! | `tensor_policy.rs` | which entries of per-tensor quantization in which grids |
//! | `selection.rs` | which artifact through which backend |
//! | `artifacts.rs` | the table of compiled kernels |
//! | `image.rs` | what an artifact holds for the driver, as it is or compressed |
//! | `cubin.rs` | whether a cubin is whole |
//! | `modules.rs` | loads a module once per context |
//! | `ptx.rs` | one entry of PTX |
//! | `launch.rs` | the only file that launches a kernel |
//! | `environment.rs` | the environment variables |
//! | `device.rs` | what is there: driver and devices |
//! | `driver.rs` | the other calls to the driver |

mod artifacts;
#[cfg(test)]
mod bad_input;
mod cubin;
mod device;
mod driver;
mod element;
mod environment;
mod error;
mod image;
mod launch;
mod modules;
mod per_tensor;
mod per_token;
mod policy;
mod ptx;
mod quantizer;
mod selection;
mod tensor_policy;

pub use artifacts::{Artifact, Artifacts};
pub use cust;
pub use device::{DeviceInfo, Driver, DriverVersion, probe};
pub use driver::DriverError;
pub use element::{Bf16, F16, GpuElement};
pub use error::{Error, PlanError};
pub use image::Image;
pub use per_tensor::{PerTensorArgs, PreparedTensor, TensorChoice};
pub use per_token::{Choice, Prepared, RawArgs};
pub use policy::Plan;
pub use quantizer::Quantizer;
pub use selection::Backend;
pub use tensor_policy::TensorPass;
