//! Columns of the records, which `cargo xtask bench-report` and `cargo xtask tune` read. Times in microseconds per launch;
//! an empty field was not measured.

/// What a record of the comparison calls itself.
pub const MATRIX: &str = "matrix";

/// One line per element type and shape.
pub const MATRIX_COLUMNS: &[&str] = &[
    "element",
    "rows",
    "hidden",
    // The policy's plan.
    "entry",
    "threads",
    // Read and written at least.
    "bytes",
    // Of one replay.
    "launches",
    "ours_us",
    // The same once more, in the same rounds: their difference is the noise.
    "ours_again_us",
    "sglang_us",
    "vllm_us",
    // A device-to-device copy that moves as many bytes.
    "copy_us",
    // A kernel that does nothing.
    "empty_us",
    // Ours once more, each launched to start before the one before it is complete.
    "chained_us",
];

/// What a record of a sweep calls itself.
pub const SWEEP: &str = "sweep";

/// One line per element type, shape and plan.
pub const SWEEP_COLUMNS: &[&str] = &["element", "rows", "hidden", "entry", "threads", "caching", "chosen", "us"];
