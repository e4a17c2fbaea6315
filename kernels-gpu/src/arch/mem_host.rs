//! Memory on the host: every access is the emulator's to check, with the bytes of the GPU's instruction.

use core::sync::atomic::{AtomicU32, Ordering};
use core::{ptr, slice};
use cuda_std::emulator::{Space, Use, access};
use ptq_spec::per_token::Caching;

/// # Safety
/// None beyond the emulator's check, which ends the thread on a bad access.
pub(super) unsafe fn load_words(address: *const u32, words: &mut [u32]) {
    access(Space::Global, Use::Read, address.cast(), size_of_val(words));
    // SAFETY: `access` let it through: a buffer of the launch, aligned.
    words.copy_from_slice(unsafe { slice::from_raw_parts(address, words.len()) });
}

/// # Safety
/// As [`load_words`].
pub(super) unsafe fn load_words_if(wanted: bool, _: Caching, address: *const u32, words: &mut [u32]) {
    if wanted {
        // SAFETY: the caller's duties.
        unsafe { load_words(address, words) }
    }
}

/// # Safety
/// As [`load_words`].
pub(super) unsafe fn load_u16(address: *const u16) -> u16 {
    access(Space::Global, Use::Read, address.cast(), size_of::<u16>());
    // SAFETY: `access` let it through: a buffer of the launch, aligned.
    unsafe { address.read() }
}

/// # Safety
/// As [`load_words`].
pub(super) unsafe fn store_words(address: *mut u32, words: &[u32]) {
    access(Space::Global, Use::Write, address.cast(), size_of_val(words));
    // SAFETY: `access` let it through: a writable buffer of the launch, aligned; `words` is the caller's own array.
    unsafe { ptr::copy_nonoverlapping(words.as_ptr(), address, words.len()) }
}

/// # Safety
/// As [`load_words`].
pub(super) unsafe fn store_words_if(wanted: bool, address: *mut u32, words: &[u32]) {
    if wanted {
        // SAFETY: the caller's duties.
        unsafe { store_words(address, words) }
    }
}

/// # Safety
/// As [`load_words`].
pub(super) unsafe fn store_u8(address: *mut u8, code: u8) {
    access(Space::Global, Use::Write, address, size_of::<u8>());
    // SAFETY: `access` let it through: a writable buffer of the launch.
    unsafe { address.write(code) }
}

/// # Safety
/// As [`load_words`]; only this function touches the number, as CTAs run at the same time.
pub(super) unsafe fn raise_u32(address: *mut u32, value: u32) {
    access(Space::Global, Use::Atomic, address.cast(), size_of::<u32>());
    // SAFETY: `access` let it through: a writable buffer of the launch, aligned, which other threads touch by this alone.
    unsafe { AtomicU32::from_ptr(address) }.fetch_max(value, Ordering::Relaxed);
}

/// # Safety
/// As [`load_words`].
pub(super) unsafe fn load_shared(address: *const u32) -> u32 {
    access(Space::Shared, Use::Read, address.cast(), size_of::<u32>());
    // SAFETY: `access` let it through: an array of the CTA, aligned.
    unsafe { address.read() }
}

/// # Safety
/// As [`load_words`].
pub(super) unsafe fn store_shared(address: *mut u32, value: u32) {
    access(Space::Shared, Use::Write, address.cast(), size_of::<u32>());
    // SAFETY: `access` let it through: an array of the CTA, aligned.
    unsafe { address.write(value) }
}

/// # Safety
/// As [`load_words`].
pub(super) unsafe fn raise_shared(address: *mut u32, value: u32) {
    access(Space::Shared, Use::Atomic, address.cast(), size_of::<u32>());
    // SAFETY: `access` let it through: an array of the CTA, aligned, whose threads take turns on one thread of the host.
    let number = unsafe { &mut *address };
    *number = value.max(*number);
}
