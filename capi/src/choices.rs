//! The enums of the header. Structs hold them as `uint32_t`, so that any value that C writes is a value.

use crate::failure::Failure;
use per_token_quant_fp8::{Backend, Dispatch, Element, Granularity, MathMode, ZeroRows};

/// Element type of `x`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub enum PtqDtype {
    /// IEEE binary16.
    F16 = 1,
    /// bfloat16.
    Bf16 = 2,
    /// IEEE binary32.
    F32 = 3,
}

/// Where kernels come from. The bits are the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub enum PtqBackend {
    /// What the environment variable PTQ_BACKEND says. If it is unset: the device, by machine code or else by PTX; the CPU
    /// where there is no driver, no device, or a device that is too old.
    Auto = 0,
    /// Machine code compiled ahead of time.
    Aot = 1,
    /// PTX that the driver compiles.
    Jit = 2,
    /// The CPU; operands are host memory.
    Cpu = 3,
}

/// How scale, inverse and product are rounded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub enum PtqMath {
    /// As the reference on the device: fast on compute capability 9.0, else precise. Without a device: precise.
    Auto = 0,
    /// Subnormals flushed, approximate reciprocal: compute capability 9.0 and the CPU alone.
    Fast = 1,
    /// Correctly rounded.
    Precise = 2,
}

/// What becomes of a row, or a tensor, whose scale is 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub enum PtqZeroRows {
    /// What the reference makes of it, which depends on its dispatch.
    Legacy = 0,
    /// Zeros.
    Guarded = 1,
}

/// Which of the reference's two per-token kernels a call stands for. Only rows whose scale is 0 depend on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub enum PtqDispatch {
    /// The reference's choice: its warp kernel from 16 rows per multiprocessor up.
    Auto = 0,
    /// Its warp kernel, which makes such rows zeros.
    Warp = 1,
    /// Its CTA kernel, which makes them codes of +-448.
    Cta = 2,
}

/// Whose scale it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub enum PtqGranularity {
    /// One scale per token, computed.
    PerToken = 1,
    /// One scale for the tensor, computed.
    PerTensor = 2,
    /// One scale for the tensor, given.
    Static = 3,
}

/// What each value of an enum means, for an enum of the header and the library's own.
type Table<E, T> = [(E, &'static str, T)];

pub(crate) const DTYPES: &Table<PtqDtype, Element> = &[
    (PtqDtype::F16, "PTQ_DTYPE_F16", Element::F16),
    (PtqDtype::Bf16, "PTQ_DTYPE_BF16", Element::Bf16),
    (PtqDtype::F32, "PTQ_DTYPE_F32", Element::F32),
];

/// `None`: as the environment says.
pub(crate) const BACKENDS: &Table<PtqBackend, Option<Backend>> = &[
    (PtqBackend::Auto, "PTQ_BACKEND_AUTO", None),
    (PtqBackend::Aot, "PTQ_BACKEND_AOT", Some(Backend::Aot)),
    (PtqBackend::Jit, "PTQ_BACKEND_JIT", Some(Backend::Jit)),
    (PtqBackend::Cpu, "PTQ_BACKEND_CPU", Some(Backend::Cpu)),
];

/// `None`: as the reference on the device.
pub(crate) const MATHS: &Table<PtqMath, Option<MathMode>> = &[
    (PtqMath::Auto, "PTQ_MATH_AUTO", None),
    (PtqMath::Fast, "PTQ_MATH_FAST", Some(MathMode::Fast)),
    (PtqMath::Precise, "PTQ_MATH_PRECISE", Some(MathMode::Precise)),
];

pub(crate) const ZERO_ROWS: &Table<PtqZeroRows, ZeroRows> = &[
    (PtqZeroRows::Legacy, "PTQ_ZERO_ROWS_LEGACY", ZeroRows::Legacy),
    (PtqZeroRows::Guarded, "PTQ_ZERO_ROWS_GUARDED", ZeroRows::Guarded),
];

pub(crate) const DISPATCHES: &Table<PtqDispatch, Dispatch> = &[
    (PtqDispatch::Auto, "PTQ_DISPATCH_AUTO", Dispatch::Auto),
    (PtqDispatch::Warp, "PTQ_DISPATCH_WARP", Dispatch::Warp),
    (PtqDispatch::Cta, "PTQ_DISPATCH_CTA", Dispatch::Cta),
];

pub(crate) const GRANULARITIES: &Table<PtqGranularity, Granularity> = &[
    (PtqGranularity::PerToken, "PTQ_GRANULARITY_PER_TOKEN", Granularity::PerToken),
    (PtqGranularity::PerTensor, "PTQ_GRANULARITY_PER_TENSOR", Granularity::PerTensor),
    (PtqGranularity::Static, "PTQ_GRANULARITY_STATIC", Granularity::Static),
];

/// A number of an enum of the header.
pub(crate) trait Number: Copy {
    fn number(self) -> u32;
}

macro_rules! numbers {
    ($($name:ident)*) => {$(
        impl Number for $name {
            fn number(self) -> u32 {
                self as u32
            }
        }
    )*};
}
numbers!(PtqDtype PtqBackend PtqMath PtqZeroRows PtqDispatch PtqGranularity);

/// What the number in `field` means.
pub(crate) fn of_number<E: Number, T: Copy>(
    table: &Table<E, T>,
    field: &'static str,
    actual: u32,
) -> Result<T, Failure> {
    let found = table.iter().find(|(value, ..)| value.number() == actual);
    found.map(|&(_, _, meaning)| meaning).ok_or_else(|| {
        let expected: Vec<_> = table.iter().map(|(value, name, _)| format!("{name} ({})", value.number())).collect();
        Failure::Value { field, expected: expected.join(", "), actual: actual.to_string() }
    })
}

/// The number that means `meaning`; 0, which is automatic, if none does.
pub(crate) fn number_of<E: Number, T: Copy + PartialEq>(table: &Table<E, T>, meaning: T) -> u32 {
    table.iter().find(|(.., known)| *known == meaning).map_or(0, |(value, ..)| value.number())
}
