//! Builds a kernel crate to PTX and cubin with stock rustc, libNVVM and ptxas.
