//! Memory on the host: plain accesses.

use core::{ptr, slice};

/// # Safety
/// `words.len()` words are readable and aligned.
pub(super) unsafe fn load_words(address: *const u32, words: &mut [u32]) {
    // SAFETY: readable by contract.
    words.copy_from_slice(unsafe { slice::from_raw_parts(address, words.len()) });
}

/// # Safety
/// Readable and aligned.
pub(super) unsafe fn load_u16(address: *const u16) -> u16 {
    // SAFETY: by contract.
    unsafe { address.read() }
}

/// # Safety
/// `words.len()` words are writable and aligned.
pub(super) unsafe fn store_words(address: *mut u32, words: &[u32]) {
    // SAFETY: writable by contract, and `words` is the caller's own array.
    unsafe { ptr::copy_nonoverlapping(words.as_ptr(), address, words.len()) }
}

/// # Safety
/// Writable.
pub(super) unsafe fn store_u8(address: *mut u8, code: u8) {
    // SAFETY: by contract.
    unsafe { address.write(code) }
}
