//! Quantize safetensors files.
fn main() {}
