//! The shapes that SGLang's own benchmark runs, the seed matrix: every number of tokens with every hidden size. `cargo xtask
//! bench-report` takes its means over them.

/// Rows.
pub const TOKENS: [u64; 6] = [1, 39, 128, 512, 1392, 7807];

/// Elements per row.
pub const HIDDEN: [u64; 6] = [512, 1076, 1368, 1536, 2048, 4096];
