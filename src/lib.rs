//! Dynamic per-token FP8 E4M3 quantization.
