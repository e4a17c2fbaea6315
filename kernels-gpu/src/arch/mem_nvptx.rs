//! Memory on a GPU: one instruction per access.

use core::arch::asm;

/// `ld.global` with the hints of the input.
///
/// `.nc` is for memory that nothing writes while the grid runs. A grid that waits for those before it runs while they write,
/// so that with `griddepcontrol` (the feature `programmatic`) the loads are ordinary ones. The L1 hint needs PTX 7.4, more
/// than `sm_80` does.
#[cfg(all(feature = "programmatic", any(ptq_arch = "sm_90", ptq_arch = "sm_100f", ptq_arch = "sm_120")))]
macro_rules! ld {
    ($suffix:literal) => {
        concat!("ld.global.L1::no_allocate.", $suffix)
    };
}
#[cfg(any(
    ptq_arch = "sm_89",
    all(not(feature = "programmatic"), any(ptq_arch = "sm_90", ptq_arch = "sm_100f", ptq_arch = "sm_120"))
))]
macro_rules! ld {
    ($suffix:literal) => {
        concat!("ld.global.nc.L1::no_allocate.", $suffix)
    };
}
#[cfg(ptq_arch = "sm_80")]
macro_rules! ld {
    ($suffix:literal) => {
        concat!("ld.global.nc.", $suffix)
    };
}

/// `ld.global` that L1 may keep, otherwise as above.
#[cfg(all(feature = "programmatic", any(ptq_arch = "sm_90", ptq_arch = "sm_100f", ptq_arch = "sm_120")))]
macro_rules! ld_cached {
    ($suffix:literal) => {
        concat!("ld.global.", $suffix)
    };
}
#[cfg(not(all(feature = "programmatic", any(ptq_arch = "sm_90", ptq_arch = "sm_100f", ptq_arch = "sm_120"))))]
macro_rules! ld_cached {
    ($suffix:literal) => {
        concat!("ld.global.nc.", $suffix)
    };
}

/// Address in the global window of a generic pointer to global memory.
#[inline(always)]
fn global<T>(address: *const T) -> u64 {
    let global: u64;
    // SAFETY: one register-to-register instruction.
    unsafe {
        asm!(
            "cvta.to.global.u64 {global}, {address};",
            global = out(reg64) global,
            address = in(reg64) address,
            options(pure, nomem, nostack, preserves_flags),
        );
    }
    global
}

/// # Safety
/// `words.len()` (1, 2, 4 or, on `sm_100f`, 8) words are readable and aligned to all of them, and stay unwritten.
#[inline(always)]
pub(super) unsafe fn load_words(address: *const u32, words: &mut [u32]) {
    let address = global(address);
    match words {
        // SAFETY: readable and aligned by contract.
        [a] => unsafe {
            asm!(concat!(ld!("b32"), " {}, [{}];"), out(reg32) *a, in(reg64) address, options(pure, readonly, nostack, preserves_flags));
        },
        // SAFETY: readable and aligned by contract.
        [a, b] => unsafe {
            asm!(
                concat!(ld!("v2.b32"), " {{{}, {}}}, [{}];"),
                out(reg32) *a, out(reg32) *b, in(reg64) address,
                options(pure, readonly, nostack, preserves_flags),
            );
        },
        // SAFETY: readable and aligned by contract.
        [a, b, c, d] => unsafe {
            asm!(
                concat!(ld!("v4.b32"), " {{{}, {}, {}, {}}}, [{}];"),
                out(reg32) *a, out(reg32) *b, out(reg32) *c, out(reg32) *d, in(reg64) address,
                options(pure, readonly, nostack, preserves_flags),
            );
        },
        #[cfg(ptq_arch = "sm_100f")]
        // SAFETY: readable and aligned by contract.
        [a, b, c, d, e, f, g, h] => unsafe {
            asm!(
                concat!(ld!("v8.b32"), " {{{}, {}, {}, {}, {}, {}, {}, {}}}, [{}];"),
                out(reg32) *a, out(reg32) *b, out(reg32) *c, out(reg32) *d,
                out(reg32) *e, out(reg32) *f, out(reg32) *g, out(reg32) *h, in(reg64) address,
                options(pure, readonly, nostack, preserves_flags),
            );
        },
        _ => unreachable!("an access has 1, 2, 4 or 8 words"),
    }
}

/// # Safety
/// Readable and aligned, and stays unwritten.
#[inline(always)]
pub(super) unsafe fn load_u16(address: *const u16) -> u16 {
    let value: u16;
    // SAFETY: readable and aligned by contract.
    unsafe {
        asm!(
            concat!(ld!("b16"), " {}, [{}];"),
            out(reg16) value, in(reg64) global(address),
            options(pure, readonly, nostack, preserves_flags),
        );
    }
    value
}

/// # Safety
/// `words.len()` (1, 2 or 4) words are writable and aligned to all of them.
#[inline(always)]
pub(super) unsafe fn store_words(address: *mut u32, words: &[u32]) {
    let address = global(address);
    match *words {
        // SAFETY: writable and aligned by contract.
        [a] => unsafe {
            asm!("st.global.b32 [{}], {};", in(reg64) address, in(reg32) a, options(nostack, preserves_flags));
        },
        // SAFETY: writable and aligned by contract.
        [a, b] => unsafe {
            asm!(
                "st.global.v2.b32 [{}], {{{}, {}}};",
                in(reg64) address, in(reg32) a, in(reg32) b,
                options(nostack, preserves_flags),
            );
        },
        // SAFETY: writable and aligned by contract.
        [a, b, c, d] => unsafe {
            asm!(
                "st.global.v4.b32 [{}], {{{}, {}, {}, {}}};",
                in(reg64) address, in(reg32) a, in(reg32) b, in(reg32) c, in(reg32) d,
                options(nostack, preserves_flags),
            );
        },
        _ => unreachable!("an access has 1, 2 or 4 words"),
    }
}

/// # Safety
/// Writable.
#[inline(always)]
pub(super) unsafe fn store_u8(address: *mut u8, code: u8) {
    // SAFETY: writable by contract.
    unsafe {
        asm!(
            "st.global.b8 [{}], {};",
            in(reg64) global(address), in(reg16) u16::from(code),
            options(nostack, preserves_flags),
        );
    }
}

/// # Safety
/// Readable and aligned, and stays unwritten.
#[inline(always)]
pub(super) unsafe fn load_cached_u32(address: *const u32) -> u32 {
    let value: u32;
    // SAFETY: readable and aligned by contract.
    unsafe {
        asm!(
            concat!(ld_cached!("b32"), " {}, [{}];"),
            out(reg32) value, in(reg64) global(address),
            options(pure, readonly, nostack, preserves_flags),
        );
    }
    value
}

/// # Safety
/// Writable, aligned, and touched by no other kind of access.
#[inline(always)]
pub(super) unsafe fn raise_u32(address: *mut u32, value: u32) {
    // SAFETY: writable and aligned by contract.
    unsafe {
        asm!(
            "red.global.max.u32 [{}], {};",
            in(reg64) global(address), in(reg32) value,
            options(nostack, preserves_flags),
        );
    }
}

/// # Safety
/// In a shared array, written, and ordered after the write.
#[inline(always)]
pub(super) unsafe fn load_shared(address: *const f32) -> f32 {
    // SAFETY: by contract. A plain read, so that the compiler finds the shared address space.
    unsafe { address.read() }
}

/// # Safety
/// In a shared array, and nobody else's until the next barrier.
#[inline(always)]
pub(super) unsafe fn store_shared(address: *mut f32, value: f32) {
    // SAFETY: by contract. A plain write, so that the compiler finds the shared address space.
    unsafe { address.write(value) }
}
