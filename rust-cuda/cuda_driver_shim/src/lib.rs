//! CUDA driver symbols as lazy trampolines into libcuda.so.1.
