//! Opens the driver once and looks up one symbol at a time.

use crate::symbols::{COUNT, NAMES};
use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};
use std::error::Error;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicPtr, Ordering};

/// `CUDA_ERROR_NO_DEVICE`: what every function returns where there is no driver.
const NO_DEVICE: c_int = 100;

/// `CUDA_ERROR_NOT_FOUND`: what a function returns that the driver of this machine does not have.
const NOT_FOUND: c_int = 500;

/// Addresses of the driver's functions, in the order of [`NAMES`]; null until first called.
pub(crate) static TABLE: [AtomicPtr<c_void>; COUNT] = [const { AtomicPtr::new(std::ptr::null_mut()) }; COUNT];

/// The driver's library, or what the dynamic linker said.
pub(crate) fn driver() -> &'static Result<Library, String> {
    static DRIVER: OnceLock<Result<Library, String>> = OnceLock::new();
    DRIVER.get_or_init(|| {
        // SAFETY: libcuda.so.1 is NVIDIA's driver, whose initialisers are meant to run at load time in any process and
        // on any thread; the library is never closed, being held by a static.
        let opened = unsafe { Library::open(Some("libcuda.so.1"), RTLD_NOW | RTLD_LOCAL) };
        // The linker's own words are the source of libloading's error.
        opened.map_err(|e| e.source().map_or_else(|| e.to_string(), ToString::to_string))
    })
}

/// Address of the function number `index`, which it also stores in [`TABLE`]. Called by a trampoline's first call.
///
/// Never null: a function that cannot be found is one that returns an error.
pub(crate) extern "C" fn resolve(index: usize) -> *mut c_void {
    let name = NAMES[index];
    let address = match driver() {
        Ok(driver) => {
            lookup(driver, name).unwrap_or_else(|| fallback(name, missing_function as *const () as *mut c_void))
        }
        Err(_) => fallback(name, missing_driver as *const () as *mut c_void),
    };
    // Release, and the trampolines load with acquire: a thread that jumps to the address sees the opened library's
    // memory. Threads that race here store the same address.
    TABLE[index].store(address, Ordering::Release);
    address
}

fn lookup(driver: &Library, name: &CStr) -> Option<*mut c_void> {
    // SAFETY: the symbol is only kept as an address; the caller of the trampoline gives it its type.
    let symbol = unsafe { driver.get::<*mut c_void>(name.to_bytes_with_nul()) };
    symbol.ok().map(|s| s.into_raw()).filter(|address| !address.is_null())
}

/// Error texts must succeed: `cust` turns a failure of theirs into a panic of `Display`.
fn fallback(name: &CStr, otherwise: *mut c_void) -> *mut c_void {
    match name.to_bytes() {
        b"cuGetErrorName" | b"cuGetErrorString" => error_text as *const () as *mut c_void,
        _ => otherwise,
    }
}

/// Stands for every function where there is no driver. Arguments are the caller's to clean up in the C ABI, so that one
/// function without parameters serves all signatures.
extern "C" fn missing_driver() -> c_int {
    NO_DEVICE
}

/// Stands for a function that this machine's driver is too old to have.
extern "C" fn missing_function() -> c_int {
    NOT_FOUND
}

/// `cuGetErrorString` and `cuGetErrorName` without a driver.
extern "C" fn error_text(code: c_int, text: *mut *const c_char) -> c_int {
    let message = match code {
        NO_DEVICE => c"no CUDA device: the driver library libcuda.so.1 could not be opened",
        _ => c"CUDA error; the driver library libcuda.so.1, which has the texts, could not be opened",
    };
    if !text.is_null() {
        // SAFETY: the driver's contract for `text` is a pointer to write one pointer through, or null, tested above.
        unsafe { *text = message.as_ptr() };
    }
    0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn error_text_answers_every_code() {
        for code in [0, NO_DEVICE, NOT_FOUND, -1] {
            let mut text = std::ptr::null();
            assert_eq!(error_text(code, &mut text), 0);
            assert!(!text.is_null());
        }
        assert_eq!(error_text(NO_DEVICE, std::ptr::null_mut()), 0);
    }

    #[test]
    fn resolved_addresses_are_stored_and_never_null() {
        for (index, slot) in TABLE.iter().enumerate() {
            let address = resolve(index);
            assert!(!address.is_null(), "{:?}", NAMES[index]);
            assert_eq!(slot.load(Ordering::Acquire), address, "{:?}", NAMES[index]);
        }
    }
}
