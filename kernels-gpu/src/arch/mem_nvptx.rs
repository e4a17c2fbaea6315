//! Memory on a GPU: one instruction per access.

use core::arch::asm;
use ptq_spec::per_token::Caching;

/// `ld.global` of the input.
///
/// `.nc` is for memory that nothing writes while the grid runs. A grid that waits for those before it runs while they write,
/// so that with `griddepcontrol` (the feature `programmatic`) the loads are ordinary ones.
#[cfg(all(feature = "programmatic", any(ptq_arch = "sm_90", ptq_arch = "sm_100f", ptq_arch = "sm_120")))]
macro_rules! ld {
    ($suffix:literal) => {
        concat!("ld.global.", $suffix)
    };
}
#[cfg(not(all(feature = "programmatic", any(ptq_arch = "sm_90", ptq_arch = "sm_100f", ptq_arch = "sm_120"))))]
macro_rules! ld {
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

/// What [`load_words`] does, by the instructions that `$ld!` gives for a type and its registers, which take `$operand`s and the
/// address; `$out`: `out`, or `inout` where they may leave the words as they are.
macro_rules! load_words {
    ($ld:ident, $out:ident, $address:expr, $words:expr, $($operand:ident),*) => {
        match $words {
            // SAFETY: readable and aligned by contract.
            [a] => unsafe {
                asm!(
                    $ld!("b32", "{a}"),
                    $($operand = in(reg32) $operand,)* address = in(reg64) $address,
                    a = $out(reg32) *a,
                    options(pure, readonly, nostack, preserves_flags),
                );
            },
            // SAFETY: readable and aligned by contract.
            [a, b] => unsafe {
                asm!(
                    $ld!("v2.b32", "{{{a}, {b}}}"),
                    $($operand = in(reg32) $operand,)* address = in(reg64) $address,
                    a = $out(reg32) *a, b = $out(reg32) *b,
                    options(pure, readonly, nostack, preserves_flags),
                );
            },
            // SAFETY: readable and aligned by contract.
            [a, b, c, d] => unsafe {
                asm!(
                    $ld!("v4.b32", "{{{a}, {b}, {c}, {d}}}"),
                    $($operand = in(reg32) $operand,)* address = in(reg64) $address,
                    a = $out(reg32) *a, b = $out(reg32) *b, c = $out(reg32) *c, d = $out(reg32) *d,
                    options(pure, readonly, nostack, preserves_flags),
                );
            },
            #[cfg(ptq_arch = "sm_100f")]
            // SAFETY: readable and aligned by contract.
            [a, b, c, d, e, f, g, h] => unsafe {
                asm!(
                    $ld!("v8.b32", "{{{a}, {b}, {c}, {d}, {e}, {f}, {g}, {h}}}"),
                    $($operand = in(reg32) $operand,)* address = in(reg64) $address,
                    a = $out(reg32) *a, b = $out(reg32) *b, c = $out(reg32) *c, d = $out(reg32) *d,
                    e = $out(reg32) *e, f = $out(reg32) *f, g = $out(reg32) *g, h = $out(reg32) *h,
                    options(pure, readonly, nostack, preserves_flags),
                );
            },
            _ => unreachable!("an access has 1, 2, 4 or 8 words"),
        }
    };
}

macro_rules! ld_always {
    ($type:literal, $to:literal) => {
        concat!(ld!($type), " ", $to, ", [{address}];")
    };
}

/// # Safety
/// `words.len()` (1, 2, 4 or, on `sm_100f`, 8) words are readable and aligned to all of them, and stay unwritten.
#[inline(always)]
pub(super) unsafe fn load_words(address: *const u32, words: &mut [u32]) {
    let address = global(address);
    load_words!(ld_always, out, address, words,);
}

/// One of two loads, by predicates. ptxas makes the second wait for the first one's data, though only one of them runs. So the
/// ordinary load comes first: it is for large inputs, where that wait does not show.
#[cfg(ptq_arch = "sm_90")]
macro_rules! ld_by_caching {
    ($type:literal, $to:literal) => {
        concat!(
            "{{ .reg .pred wanted, ordinary, no_allocate; setp.ne.u32 wanted, {wanted}, 0; ",
            "setp.eq.and.u32 ordinary, {no_allocate}, 0, wanted; ",
            "setp.ne.and.u32 no_allocate, {no_allocate}, 0, wanted; ",
            "@ordinary ",
            ld!($type),
            " ",
            $to,
            ", [{address}]; @no_allocate ",
            ld!("L1::no_allocate."),
            $type,
            " ",
            $to,
            ", [{address}]; }}",
        )
    };
}

/// # Safety
/// As [`load_words`], if `wanted`. Else `words` stay as they are.
#[cfg(ptq_arch = "sm_90")]
#[inline(always)]
pub(super) unsafe fn load_words_if(wanted: bool, caching: Caching, address: *const u32, words: &mut [u32]) {
    let (wanted, no_allocate) = (u32::from(wanted), u32::from(caching == Caching::NoAllocate));
    let address = global(address);
    load_words!(ld_by_caching, inout, address, words, wanted, no_allocate);
}

#[cfg(not(ptq_arch = "sm_90"))]
macro_rules! ld_if {
    ($type:literal, $to:literal) => {
        concat!(
            "{{ .reg .pred wanted; setp.ne.u32 wanted, {wanted}, 0; @wanted ",
            ld!($type),
            " ",
            $to,
            ", [{address}]; }}",
        )
    };
}

/// Ordinary, whatever the caching: where nothing was measured, nothing is worth a second load.
///
/// # Safety
/// As [`load_words`], if `wanted`. Else `words` stay as they are.
#[cfg(not(ptq_arch = "sm_90"))]
#[inline(always)]
pub(super) unsafe fn load_words_if(wanted: bool, _: Caching, address: *const u32, words: &mut [u32]) {
    let (wanted, address) = (u32::from(wanted), global(address));
    load_words!(ld_if, inout, address, words, wanted);
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

/// What [`store_words`] does, by the instructions that `$st!` gives for an access, which take `$operand`s, the address and words.
macro_rules! store_words {
    ($st:ident, $address:expr, $words:expr, $($operand:ident),*) => {
        match *$words {
            // SAFETY: writable and aligned by contract.
            [a] => unsafe {
                asm!(
                    $st!("st.global.b32 [{address}], {a};"),
                    $($operand = in(reg32) $operand,)* address = in(reg64) $address, a = in(reg32) a,
                    options(nostack, preserves_flags),
                );
            },
            // SAFETY: writable and aligned by contract.
            [a, b] => unsafe {
                asm!(
                    $st!("st.global.v2.b32 [{address}], {{{a}, {b}}};"),
                    $($operand = in(reg32) $operand,)* address = in(reg64) $address, a = in(reg32) a, b = in(reg32) b,
                    options(nostack, preserves_flags),
                );
            },
            // SAFETY: writable and aligned by contract.
            [a, b, c, d] => unsafe {
                asm!(
                    $st!("st.global.v4.b32 [{address}], {{{a}, {b}, {c}, {d}}};"),
                    $($operand = in(reg32) $operand,)* address = in(reg64) $address,
                    a = in(reg32) a, b = in(reg32) b, c = in(reg32) c, d = in(reg32) d,
                    options(nostack, preserves_flags),
                );
            },
            _ => unreachable!("an access has 1, 2 or 4 words"),
        }
    };
}

macro_rules! st {
    ($store:literal) => {
        $store
    };
}

macro_rules! st_if {
    ($store:literal) => {
        concat!("{{ .reg .pred wanted; setp.ne.u32 wanted, {wanted}, 0; @wanted ", $store, " }}")
    };
}

/// # Safety
/// `words.len()` (1, 2 or 4) words are writable and aligned to all of them.
#[inline(always)]
pub(super) unsafe fn store_words(address: *mut u32, words: &[u32]) {
    let address = global(address);
    store_words!(st, address, words,);
}

/// # Safety
/// As [`store_words`], if `wanted`.
#[inline(always)]
pub(super) unsafe fn store_words_if(wanted: bool, address: *mut u32, words: &[u32]) {
    let (wanted, address) = (u32::from(wanted), global(address));
    store_words!(st_if, address, words, wanted);
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
pub(super) unsafe fn load_shared(address: *const u32) -> u32 {
    // SAFETY: by contract. A plain read, so that the compiler finds the shared address space.
    unsafe { address.read() }
}

/// # Safety
/// In a shared array, and nobody else's until the next barrier.
#[inline(always)]
pub(super) unsafe fn store_shared(address: *mut u32, value: u32) {
    // SAFETY: by contract. A plain write, so that the compiler finds the shared address space.
    unsafe { address.write(value) }
}

/// # Safety
/// In a shared array, written, ordered after the write, and until the next barrier touched by this function alone.
#[inline(always)]
pub(super) unsafe fn raise_shared(address: *mut u32, value: u32) {
    // SAFETY: by contract.
    unsafe {
        asm!(
            "{{ .reg .u64 number; cvta.to.shared.u64 number, {}; red.shared.max.u32 [number], {}; }}",
            in(reg64) address, in(reg32) value,
            options(nostack, preserves_flags),
        );
    }
}
