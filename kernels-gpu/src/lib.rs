//! GPU kernels of per-token and per-tensor FP8 quantization.
//!
//! `entry/` holds the thin kernels, `row.rs` and `tensor.rs` the algorithms, `warp.rs` and `cta.rs` the collectives, `vector.rs`
//! what a thread loads and stores at once, `fp8.rs` and `math.rs` the numerics, `arch/` the only instructions of one target.
//!
//! One source for every target, math mode and element type: the target comes as `cfg(ptq_arch)`, which only `arch/`
//! reads, the math mode from libNVVM's flags, operation and element type as cargo features.
#![no_std]
#![cfg_attr(target_arch = "nvptx64", feature(abi_ptx, asm_experimental_arch))]

pub mod arch;
pub mod cta;
pub mod element;
pub mod entry;
pub mod fp8;
pub mod math;
pub mod row;
pub mod tensor;
pub mod vector;
pub mod warp;
