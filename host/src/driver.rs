//! The driver's functions that the runtime needs, less the launch.
//!
//! Declared here and not taken from `cust_raw`: that crate knows the error codes of CUDA 11.4 as a Rust enum, and a newer
//! driver returns others, which such an enum cannot hold. Types and attribute numbers are `cust_raw`'s.

use crate::Error;
use cust::sys::{CUcontext, CUdevice, CUdevice_attribute, CUfunction, CUjit_option, CUmodule, CUpointer_attribute};
use cust::sys::{CUmemorytype, CUstream};
use ptq_spec::ComputeCapability;
use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::fmt;
use std::ptr;

/// A `CUresult`: what the driver returns.
pub(crate) type Code = c_uint;

// The symbols are the trampolines of `cuda_driver_shim`.
unsafe extern "C" {
    fn cuInit(flags: c_uint) -> Code;
    fn cuDriverGetVersion(version: *mut c_int) -> Code;
    fn cuGetErrorName(code: Code, text: *mut *const c_char) -> Code;
    fn cuGetErrorString(code: Code, text: *mut *const c_char) -> Code;
    fn cuDeviceGetCount(count: *mut c_int) -> Code;
    fn cuDeviceGet(device: *mut CUdevice, ordinal: c_int) -> Code;
    fn cuDeviceGetName(name: *mut c_char, len: c_int, device: CUdevice) -> Code;
    fn cuDeviceGetAttribute(value: *mut c_int, attribute: c_int, device: CUdevice) -> Code;
    fn cuCtxGetCurrent(context: *mut CUcontext) -> Code;
    fn cuCtxGetDevice(device: *mut CUdevice) -> Code;
    fn cuCtxGetId(context: CUcontext, id: *mut u64) -> Code;
    fn cuPointerGetAttributes(count: c_uint, attributes: *mut c_int, data: *mut *mut c_void, pointer: u64) -> Code;
    fn cuModuleLoadDataEx(
        module: *mut CUmodule,
        image: *const c_void,
        options: c_uint,
        names: *mut CUjit_option,
        values: *mut *mut c_void,
    ) -> Code;
    fn cuModuleGetFunction(function: *mut CUfunction, module: CUmodule, name: *const c_char) -> Code;
    fn cuStreamSynchronize(stream: CUstream) -> Code;
    fn cuMemsetD32Async(address: u64, value: c_uint, words: usize, stream: CUstream) -> Code;
}

const SUCCESS: Code = 0;

/// An error code of the CUDA driver (`CUresult`), with the driver's own words when shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct DriverError(pub u32);

impl DriverError {
    /// `CUDA_ERROR_INVALID_VALUE`.
    pub(crate) const INVALID_VALUE: Self = Self(1);
    /// `CUDA_ERROR_NO_DEVICE`.
    pub(crate) const NO_DEVICE: Self = Self(100);
    /// `CUDA_ERROR_INVALID_IMAGE`: the driver does not understand the module.
    pub(crate) const INVALID_IMAGE: Self = Self(200);
    /// `CUDA_ERROR_NO_BINARY_FOR_GPU`: the module holds no code for the device.
    pub(crate) const NO_BINARY_FOR_GPU: Self = Self(209);
    /// `CUDA_ERROR_UNSUPPORTED_PTX_VERSION`: the PTX is newer than the driver.
    pub(crate) const UNSUPPORTED_PTX_VERSION: Self = Self(222);
    /// `CUDA_ERROR_NOT_FOUND`: a named symbol is missing.
    pub(crate) const NOT_FOUND: Self = Self(500);
}

impl fmt::Display for DriverError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (text(cuGetErrorName, *self), text(cuGetErrorString, *self)) {
            (Some(name), Some(words)) => write!(f, "{name} ({}): {words}", self.0),
            _ => write!(f, "CUDA error {}", self.0),
        }
    }
}

impl std::error::Error for DriverError {}

fn text(
    function: unsafe extern "C" fn(Code, *mut *const c_char) -> Code,
    error: DriverError,
) -> Option<std::borrow::Cow<'static, str>> {
    let mut words = ptr::null();
    // SAFETY: both functions take any code and a pointer to write one pointer through.
    let code = unsafe { function(error.0, &mut words) };
    if code != SUCCESS || words.is_null() {
        return None;
    }
    // SAFETY: on success the driver, and the trampolines without one, return a static string that ends in NUL.
    Some(unsafe { CStr::from_ptr(words) }.to_string_lossy())
}

/// Turns a code into a result that names the call.
pub(crate) fn check(call: &'static str, code: Code) -> Result<(), Error> {
    if code == SUCCESS { Ok(()) } else { Err(Error::Driver { call, code: DriverError(code) }) }
}

/// Initialises the driver; may be called again.
pub(crate) fn init() -> Result<(), Error> {
    // SAFETY: takes a number alone.
    check("cuInit", unsafe { cuInit(0) })
}

/// 1000 times the major plus 10 times the minor CUDA version that the driver supports.
pub(crate) fn version() -> Result<i32, Error> {
    let mut version = 0;
    // SAFETY: writes one int.
    check("cuDriverGetVersion", unsafe { cuDriverGetVersion(&mut version) })?;
    Ok(version)
}

pub(crate) fn device_count() -> Result<i32, Error> {
    let mut count = 0;
    // SAFETY: writes one int.
    check("cuDeviceGetCount", unsafe { cuDeviceGetCount(&mut count) })?;
    Ok(count)
}

pub(crate) fn device(ordinal: i32) -> Result<CUdevice, Error> {
    let mut device = 0;
    // SAFETY: writes one device handle; any ordinal may be asked for.
    check("cuDeviceGet", unsafe { cuDeviceGet(&mut device, ordinal) })?;
    Ok(device)
}

pub(crate) fn device_name(device: CUdevice) -> Result<String, Error> {
    let mut name: [c_char; 256] = [0; 256];
    // One byte less than there is: the last stays NUL whatever the driver writes.
    let len = name.len() as c_int - 1;
    // SAFETY: `name` has room for `len` bytes.
    check("cuDeviceGetName", unsafe { cuDeviceGetName(name.as_mut_ptr(), len, device) })?;
    // SAFETY: the array's last byte is NUL.
    Ok(unsafe { CStr::from_ptr(name.as_ptr()) }.to_string_lossy().into_owned())
}

fn attribute(device: CUdevice, attribute: CUdevice_attribute) -> Result<u32, Error> {
    let mut value = 0;
    // SAFETY: writes one int.
    check("cuDeviceGetAttribute", unsafe { cuDeviceGetAttribute(&mut value, attribute as c_int, device) })?;
    Ok(value.max(0) as u32)
}

pub(crate) fn compute_capability(device: CUdevice) -> Result<ComputeCapability, Error> {
    use CUdevice_attribute::{
        CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR,
    };
    Ok(ComputeCapability(
        attribute(device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?,
        attribute(device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?,
    ))
}

pub(crate) fn sm_count(device: CUdevice) -> Result<u32, Error> {
    attribute(device, CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)
}

/// One context. The handle alone would not do: a new context may get the address of a destroyed one.
///
/// Drivers before CUDA 12.0 have no ids; there the id is 0 and the address has to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Context {
    handle: usize,
    id: u64,
}

impl Context {
    /// Stands for a context where none is needed.
    #[cfg(test)]
    pub const NONE: Self = Self { handle: 0, id: 0 };

    /// The driver's handle, which a later context may get again.
    pub fn handle(self) -> usize {
        self.handle
    }
}

/// The handle of the calling thread's context.
pub(crate) fn current_handle() -> Result<usize, Error> {
    let mut handle = ptr::null_mut();
    // SAFETY: writes one pointer.
    check("cuCtxGetCurrent", unsafe { cuCtxGetCurrent(&mut handle) })?;
    if handle.is_null() { Err(Error::NoContext) } else { Ok(handle as usize) }
}

/// The calling thread's context.
pub(crate) fn current_context() -> Result<Context, Error> {
    let handle = current_handle()?;
    let mut id = 0;
    // SAFETY: writes one u64; `handle` is the context that the driver itself named, and of a destroyed one it says so.
    match DriverError(unsafe { cuCtxGetId(handle as CUcontext, &mut id) }) {
        DriverError(SUCCESS) => {}
        DriverError::NOT_FOUND => id = 0,
        code => return Err(Error::Driver { call: "cuCtxGetId", code }),
    }
    Ok(Context { handle, id })
}

/// The device of the calling thread's context.
pub(crate) fn context_device() -> Result<CUdevice, Error> {
    let mut device = 0;
    // SAFETY: writes one device handle.
    check("cuCtxGetDevice", unsafe { cuCtxGetDevice(&mut device) })?;
    Ok(device)
}

/// Where device memory lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place {
    /// Ordinal of the device.
    pub ordinal: i32,
    /// Handle of the one context that it was allocated in; `None`: it is not bound to one, as memory of pools and managed
    /// memory.
    pub context: Option<usize>,
}

impl Place {
    /// Whether kernels of that context may access the memory, for all that the driver promises: in memory of another
    /// context of the same device only after `cuCtxEnablePeerAccess`, which cannot be asked for.
    pub fn is_accessible_in(self, context: Context) -> bool {
        self.context.is_none_or(|handle| handle == context.handle)
    }
}

/// Where `address` lies; `None`: not in device memory.
///
/// One call for all attributes. Unlike `cuPointerGetAttribute` it knows no invalid address: of one that is nothing to the
/// driver, all attributes are zero.
pub(crate) fn memory_place(address: u64) -> Result<Option<Place>, Error> {
    use CUpointer_attribute::{
        CU_POINTER_ATTRIBUTE_CONTEXT, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, CU_POINTER_ATTRIBUTE_IS_MANAGED,
        CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
    };
    let (mut kind, mut ordinal, mut managed): (c_uint, c_int, c_uint) = (0, 0, 0);
    // Null for memory that belongs to no context, as that of pools.
    let mut context: CUcontext = ptr::null_mut();
    let mut attributes = [
        CU_POINTER_ATTRIBUTE_MEMORY_TYPE as c_int,
        CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL as c_int,
        // A boolean: one byte or, in older drivers, one unsigned int.
        CU_POINTER_ATTRIBUTE_IS_MANAGED as c_int,
        CU_POINTER_ATTRIBUTE_CONTEXT as c_int,
    ];
    let mut data: [*mut c_void; 4] =
        [(&raw mut kind).cast(), (&raw mut ordinal).cast(), (&raw mut managed).cast(), (&raw mut context).cast()];
    let count = attributes.len() as c_uint;
    // SAFETY: both arrays have `count` elements, and each attribute fits what its pointer points to; any address may be
    // asked about.
    let code = unsafe { cuPointerGetAttributes(count, attributes.as_mut_ptr(), data.as_mut_ptr(), address) };
    if DriverError(code) == DriverError::INVALID_VALUE {
        return Ok(None);
    }
    check("cuPointerGetAttributes", code)?;
    let device_memory = [CUmemorytype::CU_MEMORYTYPE_DEVICE as c_uint, CUmemorytype::CU_MEMORYTYPE_UNIFIED as c_uint];
    if !device_memory.contains(&kind) {
        return Ok(None);
    }
    // Managed memory names a context and is bound to none.
    let context = if managed != 0 { 0 } else { context as usize };
    Ok(Some(Place { ordinal, context: (context != 0).then_some(context) }))
}

/// Loads a module into the current context; on failure gives the compiler's words too, which may be none.
///
/// # Safety
/// `image` is PTX that ends in NUL, or a whole cubin.
pub(crate) unsafe fn load_module(image: &[u8]) -> Result<CUmodule, (DriverError, String)> {
    let mut log = vec![0_u8; 16 * 1024];
    let mut names = [CUjit_option::CU_JIT_ERROR_LOG_BUFFER, CUjit_option::CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES];
    // This function takes values in the pointers themselves, not behind them.
    let mut values: [*mut c_void; 2] = [log.as_mut_ptr().cast(), log.len() as *mut c_void];
    let mut module = ptr::null_mut();
    // SAFETY: `image` is as this function's caller promises; the two options are a buffer and its size, and outlive the
    // call, as does `module`, to which one pointer is written.
    let code =
        unsafe { cuModuleLoadDataEx(&mut module, image.as_ptr().cast(), 2, names.as_mut_ptr(), values.as_mut_ptr()) };
    if code == SUCCESS {
        return Ok(module);
    }
    let end = log.iter().position(|&b| b == 0).unwrap_or(log.len());
    Err((DriverError(code), String::from_utf8_lossy(&log[..end]).trim().to_owned()))
}

/// The function of that name.
///
/// # Safety
/// `module` is loaded, and its context exists.
pub(crate) unsafe fn module_function(module: CUmodule, name: &CStr) -> Result<CUfunction, DriverError> {
    let mut function = ptr::null_mut();
    // SAFETY: `module` is as the caller promises, `name` ends in NUL, one pointer is written.
    match unsafe { cuModuleGetFunction(&mut function, module, name.as_ptr()) } {
        SUCCESS => Ok(function),
        code => Err(DriverError(code)),
    }
}

/// Waits until everything in `stream` is done.
///
/// # Safety
/// `stream` exists, or is null.
pub(crate) unsafe fn synchronize(stream: CUstream) -> Result<(), Error> {
    // SAFETY: as the caller promises.
    check("cuStreamSynchronize", unsafe { cuStreamSynchronize(stream) })
}

/// Enqueues that the 32-bit word at `address` becomes zero.
///
/// # Safety
/// `address` is a multiple of 4 and of memory that the current context's device writes; nothing else touches the word until
/// that is done. `stream` is null or a stream of that context.
pub(crate) unsafe fn set_zero(address: u64, stream: CUstream) -> Result<(), Error> {
    // SAFETY: as the caller promises.
    check("cuMemsetD32Async", unsafe { cuMemsetD32Async(address, 0, 1, stream) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_can_be_shown() {
        for code in [1, 100, 222, 500, 4242] {
            let shown = DriverError(code).to_string();
            assert!(shown.contains(&code.to_string()), "{shown}");
        }
    }
}
