//! Columns of the record, which `cargo xtask bench-report` reads.

/// What the record calls itself.
pub const LAUNCH: &str = "launch";

/// One line per measurement; `threads` launch at once, and `value` is in `unit`.
pub const LAUNCH_COLUMNS: &[&str] = &["quantity", "subject", "element", "threads", "unit", "value"];
