//! The handle: what a caller may choose once.

use crate::arguments::{self, Struct, check_pointer};
use crate::call::guarded;
use crate::choices::{BACKENDS, DTYPES, MATHS, number_of, of_number};
use crate::failure::Failure;
use crate::{PtqStatus, registry};
use per_token_quant_fp8::{Executor, Kernel};

/// A quantizer. Any thread may use it, several at once too.
///
/// On a device it belongs to the CUDA context that was current when it was created (of the CUDA runtime and PyTorch: the
/// device's primary context), and each call needs that context current on its thread. It holds no device memory.
///
/// The pointer is a number that is looked up and never dereferenced, and no number is given out twice: a call with a
/// handle that was destroyed or never created returns PTQ_STATUS_INVALID_HANDLE, always.
pub struct PtqQuantizer(());

/// What a quantizer is created with. All zero but `struct_size` is the default.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct PtqConfig {
    /// sizeof(ptq_config).
    pub struct_size: usize,
    /// A ptq_backend.
    pub backend: u32,
    /// A ptq_math.
    pub math: u32,
    /// Multiprocessors of the device whose zero rows PTQ_ZERO_ROWS_LEGACY keeps. 0: the device's; without one, 132.
    pub sm_count: u32,
    /// 0.
    pub reserved: u32,
}

// SAFETY: `repr(C)`, `struct_size` comes first, all fields are integers.
unsafe impl Struct for PtqConfig {
    const NAME: &'static str = "ptq_config";
}

/// Creates a quantizer and writes its handle to `*quantizer`, which ptq_quantizer_destroy() takes.
///
/// Unless the backend is the CPU, a CUDA context must be current on the calling thread where there is a device; else
/// PTQ_STATUS_NO_CONTEXT.
///
/// # Safety
/// Both pointers are null, which is an error, or of variables of their type.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ptq_quantizer_create(
    config: *const PtqConfig,
    quantizer: *mut *mut PtqQuantizer,
) -> PtqStatus {
    guarded(|| {
        // SAFETY: as the caller promises.
        let config = unsafe { arguments::read(config) }?;
        check_pointer(quantizer.cast_const(), "quantizer")?;
        let executor = executor(&config)?;
        // SAFETY: not null and aligned as checked above, a variable as the caller promises.
        unsafe { quantizer.write(registry::insert(executor)) };
        Ok(())
    })
}

fn executor(config: &PtqConfig) -> Result<Executor, Failure> {
    let backend = of_number(BACKENDS, "ptq_config.backend", config.backend)?;
    let math = of_number(MATHS, "ptq_config.math", config.math)?;
    check_reserved("ptq_config.reserved", config.reserved)?;
    let mut executor = Executor::new(backend)?;
    if let Some(math) = math {
        executor = executor.with_math(math)?;
    }
    Ok(if config.sm_count == 0 { executor } else { executor.with_sm_count(config.sm_count) })
}

/// A field that may mean something one day.
pub(crate) fn check_reserved(field: &'static str, actual: u32) -> Result<(), Failure> {
    if actual == 0 {
        return Ok(());
    }
    Err(Failure::Value { field, expected: "0".to_owned(), actual: actual.to_string() })
}

/// Destroys a quantizer. Calls that other threads are in the middle of end as if it were not; kernels that are enqueued
/// run. A handle that is null, or destroyed already, is an error.
#[unsafe(no_mangle)]
pub extern "C" fn ptq_quantizer_destroy(quantizer: *mut PtqQuantizer) -> PtqStatus {
    guarded(|| registry::remove(quantizer))
}

/// Writes to `*config`, whose `struct_size` is set, what the quantizer came to: PTQ_BACKEND_CPU if it is the CPU, else the
/// backend that was chosen (PTQ_BACKEND_AUTO: machine code, else PTX), the math mode and the number of multiprocessors.
///
/// # Safety
/// `config` is null, which is an error, or of a variable of its type.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ptq_quantizer_config(quantizer: *const PtqQuantizer, config: *mut PtqConfig) -> PtqStatus {
    guarded(|| {
        let executor = registry::get(quantizer)?;
        let found = PtqConfig {
            struct_size: size_of::<PtqConfig>(),
            backend: number_of(BACKENDS, Some(executor.backend())),
            math: number_of(MATHS, Some(executor.math())),
            sm_count: executor.sm_count(),
            reserved: 0,
        };
        // SAFETY: as the caller promises.
        unsafe { arguments::write(config, found) }
    })
}

/// Loads the kernels of every operation for a ptq_dtype, as the first calls would: before a stream is captured into a
/// graph, which allows no loading, and to have the time that it takes when a program starts.
#[unsafe(no_mangle)]
pub extern "C" fn ptq_load(quantizer: *const PtqQuantizer, dtype: u32) -> PtqStatus {
    guarded(|| {
        let executor = registry::get(quantizer)?;
        let element = of_number(DTYPES, "dtype", dtype)?;
        Ok(Kernel::ALL.into_iter().try_for_each(|kernel| executor.load(kernel, element))?)
    })
}
