//! What can go wrong: one variant per cause.

use crate::device::{DeviceInfo, DriverVersion};
use crate::{Backend, DriverError};
use ptq_spec::{ComputeCapability, MathMode, ShapeError, TARGETS};
use std::path::{Path, PathBuf};

/// Everything that the GPU runtime reports.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The arguments do not meet a precondition of the operation.
    #[error(transparent)]
    Shape(#[from] ShapeError),
    /// The kernel entry that the caller forced does not fit the arguments.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// There is no CUDA driver.
    #[error("no CUDA driver: {reason}; install NVIDIA's driver, or use the CPU implementation")]
    NoDriver {
        /// What the dynamic linker said.
        reason: String,
    },
    /// The driver shows no device to this process.
    #[error(
        "no CUDA device, though there is a driver (CUDA {driver}); check CUDA_VISIBLE_DEVICES and nvidia-smi, or use the \
         CPU implementation"
    )]
    NoDevice {
        /// The driver's version.
        driver: DriverVersion,
    },
    /// The calling thread has no current context.
    #[error(
        "no CUDA context is current on this thread; create one with cust::quick_init(), or make an existing one current \
         with cust::context::CurrentContext::set_current"
    )]
    NoContext,
    /// The calling thread's context is another than the quantizer's.
    #[error(
        "the current CUDA context is not the one that was current at Quantizer::new (device {}); make that one \
         current on this thread, or create a quantizer here", device.ordinal
    )]
    ContextMismatch {
        /// The quantizer's device.
        device: Box<DeviceInfo>,
    },
    /// An operand is not in device memory.
    #[error("`{operand}` at address {address:#x} is not device memory, expected a buffer on the device; copy it there")]
    NotDeviceMemory {
        /// The operand.
        operand: &'static str,
        /// Its address.
        address: u64,
    },
    /// An operand lies on another device than the quantizer's.
    #[error("`{operand}` is on device {actual}, expected device {expected}; copy it there")]
    WrongDevice {
        /// The operand.
        operand: &'static str,
        /// Ordinal of the quantizer's device.
        expected: i32,
        /// Ordinal of the operand's device.
        actual: i32,
    },
    /// An operand was allocated in another context than the quantizer's, of the same device.
    #[error(
        "`{operand}` was allocated in another CUDA context than the quantizer's, expected the context that was \
         current at Quantizer::new; allocate it there, or create a quantizer in its context"
    )]
    WrongContext {
        /// The operand.
        operand: &'static str,
    },
    /// No backend of that name.
    #[error("no backend is called `{name}`; there are {}; PTQ_BACKEND chooses one", backend_names())]
    UnknownBackend {
        /// The name as given.
        name: String,
    },
    /// A quantizer of device buffers was told to take the CPU.
    #[error(
        "backend cpu works on host memory, this call is on the device; choose auto, aot or jit by PTQ_BACKEND or \
         with_backend, or give the CPU implementation host buffers"
    )]
    CpuBackend,
    /// No target of that name.
    #[error("no target is called `{name}`; there are {}", target_names())]
    UnknownTarget {
        /// The name as given.
        name: String,
    },
    /// A forced target cannot run on the device through the chosen backend.
    #[error("target {target} cannot run on compute capability {actual} through backend {backend}; {}", unsupported_advice(*backend))]
    UnsupportedTarget {
        /// The backend.
        backend: Backend,
        /// The target's name.
        target: &'static str,
        /// Lowest compute capability that runs the target.
        expected: ComputeCapability,
        /// The device's.
        actual: ComputeCapability,
    },
    /// No target runs on the device through the chosen backend.
    #[error(
        "no target runs on compute capability {actual} through backend {backend}, expected at least {expected}; {}",
        unsupported_advice(*backend)
    )]
    UnsupportedDevice {
        /// The backend.
        backend: Backend,
        /// Lowest compute capability of any target.
        expected: ComputeCapability,
        /// The device's.
        actual: ComputeCapability,
    },
    /// Fast math was asked of a device for which it is not proved.
    #[error(
        "math mode {math} needs compute capability {expected}, the device has {actual}; use precise math, or the CPU"
    )]
    UnsupportedMath {
        /// The math mode.
        math: MathMode,
        /// The compute capability it is proved for.
        expected: ComputeCapability,
        /// The device's.
        actual: ComputeCapability,
    },
    /// A forced target has no artifacts in the quantizer's math mode.
    #[error(
        "target {target} has artifacts in math mode {} alone, and this quantizer runs in {math}, whose bits differ; where \
         the former's bits are wanted, combine the target with with_math",
        names(expected)
    )]
    TargetMath {
        /// The target's name.
        target: &'static str,
        /// Math modes it has.
        expected: &'static [MathMode],
        /// The math mode asked for.
        math: MathMode,
    },
    /// The table of artifacts, or the folder that stands for it, lacks one.
    #[error("artifact {stem} for backend {backend} is not in {}", missing_from(dir.as_deref()))]
    NoArtifact {
        /// Its name, which is the file name without extension.
        stem: String,
        /// The backend, hence PTX or cubin.
        backend: Backend,
        /// The folder that was read; `None`: the table that the program embeds.
        dir: Option<PathBuf>,
    },
    /// A folder holds no artifacts at all.
    #[error("{}: no artifact files; PTQ_ARTIFACTS names a folder with files such as per_token.bf16.sm_90.fast.ptx", dir.display())]
    NoArtifactFiles {
        /// The folder.
        dir: PathBuf,
    },
    /// An artifact file cannot be read.
    #[error("{}: {reason}; PTQ_ARTIFACTS names the folder", path.display())]
    ReadArtifact {
        /// The file.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// An artifact is not what its name says.
    #[error("artifact {stem} is malformed: {reason}; build it again")]
    MalformedArtifact {
        /// Its name.
        stem: String,
        /// What is wrong.
        reason: &'static str,
    },
    /// The driver does not load an artifact.
    #[error("the driver does not load artifact {stem} through backend {backend}: {code}{}", load_advice(*code, log))]
    Load {
        /// Its name.
        stem: String,
        /// The backend.
        backend: Backend,
        /// The driver's answer.
        code: DriverError,
        /// The words of the driver's compiler, if any.
        log: String,
    },
    /// An artifact lacks a kernel entry.
    #[error("artifact {stem} has no kernel entry `{entry}`: {code}; build it again from this version's sources")]
    NoEntry {
        /// Its name.
        stem: String,
        /// The entry.
        entry: &'static str,
        /// The driver's answer.
        code: DriverError,
    },
    /// Another call to the driver failed.
    #[error("{call} failed: {code}")]
    Driver {
        /// The driver's function.
        call: &'static str,
        /// The driver's answer.
        code: DriverError,
    },
}

/// Why a forced plan does not fit the arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PlanError {
    /// The entry is not one of [`ptq_spec::Kernel::row_entries`].
    #[error("`{entry}` is not an entry of the table of kernel entries; take one from there")]
    UnknownEntry {
        /// Its name.
        entry: &'static str,
    },
    /// The entry is of another operation than the call.
    #[error("`{entry}` is not an entry of {expected}, which this call runs; take one from its table")]
    OtherKernel {
        /// The entry.
        entry: &'static str,
        /// The call's operation.
        expected: &'static str,
    },
    /// The number of threads is not a multiple of a warp, or not within the entry's bound.
    #[error("{entry}: {actual} threads, expected a multiple of {multiple} from {multiple} to {most}")]
    Threads {
        /// The entry.
        entry: &'static str,
        /// Threads of a warp.
        multiple: u32,
        /// Most threads of a CTA.
        most: u32,
        /// Threads as given.
        actual: u32,
    },
    /// A row does not fit into the registers of its threads.
    #[error(
        "{entry}: `hidden` is {actual}, expected at most {expected} elements with {threads} threads; take more threads or another entry"
    )]
    RowTooLong {
        /// The entry.
        entry: &'static str,
        /// Threads per CTA.
        threads: u32,
        /// Longest row, elements.
        expected: u64,
        /// `hidden`, elements.
        actual: u64,
    },
    /// The entry's vectors do not divide a row.
    #[error("{entry}: `hidden` is {actual}, expected a multiple of {expected}; take an entry with narrower vectors")]
    VectorLength {
        /// The entry.
        entry: &'static str,
        /// Elements per vector.
        expected: u64,
        /// `hidden`, elements.
        actual: u64,
    },
    /// An operand is not aligned for the entry's vectors.
    #[error(
        "{entry}: `{operand}` is at address {actual:#x}, expected a multiple of {expected}; take an entry with narrower vectors"
    )]
    VectorAlignment {
        /// The entry.
        entry: &'static str,
        /// The operand.
        operand: &'static str,
        /// Bytes that the address must be a multiple of.
        expected: u64,
        /// The address.
        actual: u64,
    },
    /// An operand's row stride is not a multiple of the entry's vectors.
    #[error(
        "{entry}: rows of `{operand}` are {actual} bytes apart, expected a multiple of {expected}; take an entry with narrower vectors"
    )]
    VectorStride {
        /// The entry.
        entry: &'static str,
        /// The operand.
        operand: &'static str,
        /// Bytes that the stride must be a multiple of.
        expected: u64,
        /// The stride in bytes.
        actual: u64,
    },
}

fn backend_names() -> String {
    Backend::ALL.map(Backend::name).join(", ")
}

fn target_names() -> String {
    TARGETS.iter().map(|t| t.name).collect::<Vec<_>>().join(", ")
}

fn names(modes: &[MathMode]) -> String {
    modes.iter().map(|m| m.name()).collect::<Vec<_>>().join(" or ")
}

fn unsupported_advice(backend: Backend) -> &'static str {
    match backend {
        Backend::Aot => "Jit may still compile its PTX for the device",
        Backend::Auto | Backend::Jit | Backend::Cpu => {
            "choose an older target or a newer device, or use the CPU implementation"
        }
    }
}

fn missing_from(dir: Option<&Path>) -> String {
    match dir {
        None => "this program; build it in, or name a folder that has it in PTQ_ARTIFACTS".to_owned(),
        Some(dir) => format!("{}; put it there, or unset PTQ_ARTIFACTS", dir.display()),
    }
}

fn load_advice(code: DriverError, log: &str) -> String {
    let advice = match code {
        DriverError::UNSUPPORTED_PTX_VERSION => {
            "; the driver is older than the PTX: update it, or force an older target"
        }
        DriverError::INVALID_IMAGE | DriverError::NO_BINARY_FOR_GPU => "; backend Auto or Jit compiles the PTX instead",
        _ => "",
    };
    if log.is_empty() { advice.to_owned() } else { format!("{advice}\n{log}") }
}
