//! Per-token quantization, in bytes read and written per second. One file per implementation.
//!
//! Every benchmark first checks the bits of what it is about to time.

mod cpu;

criterion::criterion_group!(benches, cpu::benches);
criterion::criterion_main!(benches);
