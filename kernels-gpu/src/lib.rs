//! GPU kernels of per_token_quant_fp8.
