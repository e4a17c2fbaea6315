//! Per-token quantization, in bytes read and written per second. One file per implementation.
//!
//! Every benchmark first checks the bits of what it is about to time.

mod cpu;
#[path = "gpu.rs"]
mod on_gpu;

#[path = "../gpu/mod.rs"]
mod gpu;

criterion::criterion_group!(benches, cpu::benches, on_gpu::benches);
criterion::criterion_main!(benches);
