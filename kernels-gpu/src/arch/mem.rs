//! Every access of the kernels to memory.
//!
//! Global accesses are explicit instructions: their width is a promise of the entry, and the input's are, where no grid
//! overlaps another, marked as read-only for the kernel's duration. The host's bodies ask the emulator first.

use ptq_spec::per_token::Caching;

#[cfg(not(target_arch = "nvptx64"))]
#[path = "mem_host.rs"]
mod body;
#[cfg(target_arch = "nvptx64")]
#[path = "mem_nvptx.rs"]
mod body;

/// Most words of one access.
pub const MAX_WORDS: usize = if cfg!(ptq_arch = "sm_100f") { 8 } else { 4 };

/// Loads `WORDS` words (1, 2, 4, 8 or 16) of the input, or the row count, from global memory, [`MAX_WORDS`] at a time.
///
/// # Safety
/// - They are readable, and nothing writes them while the kernel runs.
/// - `address` is aligned to `min(WORDS, MAX_WORDS)` words.
#[inline(always)]
pub unsafe fn load<const WORDS: usize>(address: *const u32) -> [u32; WORDS] {
    // SAFETY: the caller's duties: parts are whole accesses.
    by_access(address, |part, into| unsafe { body::load_words(part, into) })
}

/// The same if `wanted`, else zeros. Predicates and no branch, whichever the caching.
///
/// # Safety
/// As [`load`], if `wanted`.
#[inline(always)]
pub unsafe fn load_if<const WORDS: usize>(wanted: bool, address: *const u32, caching: Caching) -> [u32; WORDS] {
    // SAFETY: as in `load`.
    by_access(address, |part, into| unsafe { body::load_words_if(wanted, caching, part, into) })
}

/// Zeros, which `fill` fills by parts of one access, each with its address.
#[inline(always)]
fn by_access<const WORDS: usize>(address: *const u32, fill: impl Fn(*const u32, &mut [u32])) -> [u32; WORDS] {
    let mut words = [0; WORDS];
    let access = if WORDS < MAX_WORDS { WORDS } else { MAX_WORDS };
    let mut done = 0;
    while done < WORDS {
        fill(address.wrapping_add(done), &mut words[done..done + access]);
        done += access;
    }
    words
}

/// Loads a 16-bit element of the input from global memory.
///
/// # Safety
/// It is readable and aligned, and nothing writes it while the kernel runs.
#[inline(always)]
pub unsafe fn load_u16(address: *const u16) -> u16 {
    // SAFETY: the caller's duties.
    unsafe { body::load_u16(address) }
}

/// Stores `WORDS` words (1, 2 or 4) of codes to global memory with one access.
///
/// # Safety
/// They are writable and no other thread touches them; `address` is aligned to `WORDS` words.
#[inline(always)]
pub unsafe fn store<const WORDS: usize>(address: *mut u32, words: [u32; WORDS]) {
    // SAFETY: the caller's duties.
    unsafe { body::store_words(address, &words) }
}

/// The same if `wanted`. A predicate and no branch: what the words are made of can be computed while the absmax is on its way.
///
/// # Safety
/// As [`store`], if `wanted`.
#[inline(always)]
pub unsafe fn store_if<const WORDS: usize>(wanted: bool, address: *mut u32, words: [u32; WORDS]) {
    // SAFETY: the caller's duties.
    unsafe { body::store_words_if(wanted, address, &words) }
}

/// Stores one code to global memory.
///
/// # Safety
/// It is writable and no other thread touches it.
#[inline(always)]
pub unsafe fn store_u8(address: *mut u8, code: u8) {
    // SAFETY: the caller's duties.
    unsafe { body::store_u8(address, code) }
}

/// Stores a scale to global memory.
///
/// # Safety
/// It is writable and aligned, and no other thread touches it.
#[inline(always)]
pub unsafe fn store_f32(address: *mut f32, value: f32) {
    // SAFETY: the caller's duties.
    unsafe { body::store_words(address.cast(), &[value.to_bits()]) }
}

/// Loads a scale from global memory.
///
/// # Safety
/// It is readable and aligned, and nothing writes it while the kernel runs.
#[inline(always)]
pub unsafe fn load_scale(address: *const f32) -> f32 {
    // SAFETY: the caller's duties.
    let [bits] = unsafe { load(address.cast()) };
    f32::from_bits(bits)
}

/// Raises a number in global memory to `value` where that is larger, at once for all threads of the device.
///
/// # Safety
/// It is writable and aligned, and until the kernel's end is touched by calls of this function alone.
#[inline(always)]
pub unsafe fn raise_u32(address: *mut u32, value: u32) {
    // SAFETY: the caller's duties.
    unsafe { body::raise_u32(address, value) }
}

/// Loads from a shared array.
///
/// # Safety
/// `address` lies in a shared array, was written before the last barrier, and nothing writes it until the next.
#[inline(always)]
pub unsafe fn load_shared(address: *const u32) -> u32 {
    // SAFETY: the caller's duties.
    unsafe { body::load_shared(address) }
}

/// Stores to a shared array.
///
/// # Safety
/// `address` lies in a shared array, and no other thread touches it until the next barrier.
#[inline(always)]
pub unsafe fn store_shared(address: *mut u32, value: u32) {
    // SAFETY: the caller's duties.
    unsafe { body::store_shared(address, value) }
}

/// Raises a number in a shared array to `value` where that is larger, at once for all threads of the CTA.
///
/// ptxas takes the maximum of a warp first and has one lane raise the number, as the address is the same for all of them.
///
/// # Safety
/// `address` lies in a shared array, was written before the last barrier, and until the next is touched by calls of this
/// function alone.
#[inline(always)]
pub unsafe fn raise_shared(address: *mut u32, value: u32) {
    // SAFETY: the caller's duties.
    unsafe { body::raise_shared(address, value) }
}
