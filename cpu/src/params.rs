//! What a call chooses besides its shape.

use ptq_spec::per_token::DEFAULT_SM_COUNT;
use ptq_spec::{MathMode, Options};

/// Everything that the bits depend on besides `x` and its shape.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Params {
    /// How scale, inverse and product are rounded.
    pub math: MathMode,
    /// What becomes of rows whose scale is 0.
    pub options: Options,
    /// Multiprocessors of the chip whose threshold [`ptq_spec::Dispatch::Auto`] follows.
    pub sm_count: u32,
}

impl Params {
    /// The default options, as on a chip of [`DEFAULT_SM_COUNT`] multiprocessors.
    pub const fn new(math: MathMode) -> Self {
        let options = Options { zero_rows: ptq_spec::ZeroRows::Legacy, dispatch: ptq_spec::Dispatch::Auto };
        Self { math, options, sm_count: DEFAULT_SM_COUNT }
    }
}
