//! What can go wrong, and which status says so.

use crate::PtqStatus;
use per_token_quant_fp8::{Error, ShapeError};

/// Why a call failed. Shown, it is the message that C reads.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    #[error("`{name}` is null, expected {expected}; {advice}")]
    Null { name: &'static str, expected: &'static str, advice: &'static str },
    #[error(
        "`{name}` is at address {actual:#x}, expected a multiple of {expected}; pass a pointer to a variable of its type"
    )]
    MisalignedStruct { name: &'static str, expected: usize, actual: usize },
    #[error("{actual:#x} is no live ptq_quantizer; pass what ptq_quantizer_create gave, before ptq_quantizer_destroy")]
    Handle { actual: usize },
    #[error(
        "{name}.struct_size is {actual}, expected {expected}; set it to sizeof({name}), and compile with the header of this \
         library (ptq_version())"
    )]
    StructSize { name: &'static str, expected: usize, actual: usize },
    #[error("`{field}` is {actual}, expected {expected}")]
    Value { field: &'static str, expected: String, actual: String },
    #[error(
        "no CUDA context is current on this thread; make one current with cuCtxSetCurrent, or the device's primary context by \
         a call of the CUDA runtime such as cudaFree(NULL)"
    )]
    NoContext,
    #[error(
        "the current CUDA context is not the one that was current at ptq_quantizer_create (device {ordinal}); make that one \
         current on this thread, or create a quantizer here"
    )]
    ContextMismatch { ordinal: i32 },
    #[error(transparent)]
    Library(Error),
    #[error("a defect of the library: {0}; please report it")]
    Panic(String),
}

impl From<Error> for Failure {
    /// Advice on contexts is in C's words.
    fn from(error: Error) -> Self {
        match error {
            Error::NoContext => Self::NoContext,
            Error::ContextMismatch { device } => Self::ContextMismatch { ordinal: device.ordinal },
            error => Self::Library(error),
        }
    }
}

impl From<ShapeError> for Failure {
    fn from(error: ShapeError) -> Self {
        Self::Library(error.into())
    }
}

impl Failure {
    pub fn status(&self) -> PtqStatus {
        match self {
            Self::Null { .. } => PtqStatus::NullPointer,
            Self::MisalignedStruct { .. } => PtqStatus::Misaligned,
            Self::Handle { .. } => PtqStatus::InvalidHandle,
            Self::StructSize { .. } => PtqStatus::StructSize,
            Self::Value { .. } => PtqStatus::InvalidValue,
            Self::NoContext => PtqStatus::NoContext,
            Self::ContextMismatch { .. } => PtqStatus::ContextMismatch,
            Self::Library(error) => of_library(error),
            Self::Panic(_) => PtqStatus::Internal,
        }
    }
}

fn of_library(error: &Error) -> PtqStatus {
    match error {
        Error::Shape(ShapeError::Misaligned { .. }) => PtqStatus::Misaligned,
        Error::Shape(ShapeError::Overlap { .. }) => PtqStatus::Overlap,
        Error::Shape(ShapeError::Bound { .. }) => PtqStatus::InvalidValue,
        Error::Shape(_) => PtqStatus::Shape,
        Error::NoDriver { .. } => PtqStatus::NoDriver,
        Error::NoDevice { .. } => PtqStatus::NoDevice,
        Error::NotDeviceMemory { .. } | Error::WrongDevice { .. } | Error::WrongContext { .. } => {
            PtqStatus::WrongMemory
        }
        Error::UnknownBackend { .. }
        | Error::UnknownTarget { .. }
        | Error::UnsupportedTarget { .. }
        | Error::TargetMath { .. }
        | Error::NoArtifactFiles { .. }
        | Error::ReadArtifact { .. } => PtqStatus::Environment,
        Error::UnsupportedMath { .. } | Error::CpuBackend => PtqStatus::Unsupported,
        Error::UnsupportedDevice { .. }
        | Error::NoArtifact { .. }
        | Error::MalformedArtifact { .. }
        | Error::Load { .. }
        | Error::NoEntry { .. } => PtqStatus::Load,
        Error::Driver { .. } => PtqStatus::Driver,
        // What C cannot ask for.
        _ => PtqStatus::Internal,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use per_token_quant_fp8::{Backend, ComputeCapability, DeviceInfo, DriverError, DriverVersion, MathMode};

    /// What takes a device to come about, or artifacts that are not there: statuses that no program on the CPU sees.
    #[test]
    fn errors_of_devices_and_artifacts_have_their_status() {
        let capability = ComputeCapability(9, 0);
        let device = Box::new(DeviceInfo { ordinal: 0, name: "none".to_owned(), capability, sm_count: 132 });
        let stem = || "per_token.bf16.sm_90.fast".to_owned();
        let (backend, code, operand) = (Backend::Aot, DriverError(700), "x");
        for (error, status) in [
            (Error::NoDriver { reason: String::new() }, PtqStatus::NoDriver),
            (Error::NoDevice { driver: DriverVersion { major: 13, minor: 0 } }, PtqStatus::NoDevice),
            (Error::NoContext, PtqStatus::NoContext),
            (Error::ContextMismatch { device }, PtqStatus::ContextMismatch),
            (Error::NotDeviceMemory { operand, address: 4 }, PtqStatus::WrongMemory),
            (Error::WrongDevice { operand, expected: 0, actual: 1 }, PtqStatus::WrongMemory),
            (Error::WrongContext { operand }, PtqStatus::WrongMemory),
            (Error::UnknownTarget { name: "sm_1".to_owned() }, PtqStatus::Environment),
            (
                Error::UnsupportedMath { math: MathMode::Fast, expected: capability, actual: capability },
                PtqStatus::Unsupported,
            ),
            (Error::MalformedArtifact { stem: stem(), reason: "cut" }, PtqStatus::Load),
            (Error::Load { stem: stem(), backend, code, log: String::new() }, PtqStatus::Load),
            (Error::Driver { call: "cuLaunchKernel", code }, PtqStatus::Driver),
        ] {
            let failure = Failure::from(error);
            assert_eq!(failure.status(), status, "{failure}");
        }
    }
}
