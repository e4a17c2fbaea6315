//! AAPCS64: arguments in x0 to x7, v0 to v7 and on the stack, x8 the address of a large result; x16 and x17 are free for
//! use between caller and callee. The load is an acquire, which x86_64's plain loads are anyway. Assembled, not run.

use crate::loader::{TABLE, resolve};
use crate::symbols::for_each_symbol;

macro_rules! trampolines {
    ($($index:literal $name:ident,)*) => {
        core::arch::global_asm!(
            ".text",
            ".hidden cuda_driver_shim_anchor",
            ".globl cuda_driver_shim_anchor",
            ".type cuda_driver_shim_anchor,@function",
            "cuda_driver_shim_anchor:",
            "ret",
            ".size cuda_driver_shim_anchor, . - cuda_driver_shim_anchor",
            $(
                concat!(".hidden ", stringify!($name)),
                concat!(".globl ", stringify!($name)),
                concat!(".type ", stringify!($name), ",@function"),
                ".p2align 4",
                concat!(stringify!($name), ":"),
                concat!("adrp x16, {table} + 8*", $index),
                concat!("add x16, x16, :lo12:{table} + 8*", $index),
                "ldar x16, [x16]",
                "cbz x16, 2f",
                "br x16",
                concat!("2: mov w17, #", $index),
                "b .Lcuda_driver_shim_slow",
                concat!(".size ", stringify!($name), ", . - ", stringify!($name)),
            )*
            ".p2align 4",
            ".type .Lcuda_driver_shim_slow,@function",
            ".Lcuda_driver_shim_slow:",
            ".cfi_startproc",
            "stp x29, x30, [sp, #-224]!",
            ".cfi_def_cfa_offset 224",
            ".cfi_offset x29, -224",
            ".cfi_offset x30, -216",
            "mov x29, sp",
            "stp x0, x1, [sp, #16]",
            "stp x2, x3, [sp, #32]",
            "stp x4, x5, [sp, #48]",
            "stp x6, x7, [sp, #64]",
            "str x8, [sp, #80]",
            "stp q0, q1, [sp, #96]",
            "stp q2, q3, [sp, #128]",
            "stp q4, q5, [sp, #160]",
            "stp q6, q7, [sp, #192]",
            "mov w0, w17",
            "bl {resolve}",
            "mov x16, x0",
            "ldp x0, x1, [sp, #16]",
            "ldp x2, x3, [sp, #32]",
            "ldp x4, x5, [sp, #48]",
            "ldp x6, x7, [sp, #64]",
            "ldr x8, [sp, #80]",
            "ldp q0, q1, [sp, #96]",
            "ldp q2, q3, [sp, #128]",
            "ldp q4, q5, [sp, #160]",
            "ldp q6, q7, [sp, #192]",
            "ldp x29, x30, [sp], #224",
            ".cfi_def_cfa_offset 0",
            ".cfi_restore x29",
            ".cfi_restore x30",
            "br x16",
            ".cfi_endproc",
            ".size .Lcuda_driver_shim_slow, . - .Lcuda_driver_shim_slow",
            table = sym TABLE,
            resolve = sym resolve,
        );
    };
}
for_each_symbol!(trampolines);
