//! What the fuzz targets share: arbitrary options of the contract, and one round through the program.

pub mod program;

use arbitrary::{Arbitrary, Result, Unstructured};
use per_token_quant_fp8::cpu::Params;
use per_token_quant_fp8::{Dispatch, MathMode, Options, ZeroRows};

/// Arbitrary parameters of a call.
#[derive(Debug, Clone, Copy)]
pub struct AnyParams(pub Params);

impl<'a> Arbitrary<'a> for AnyParams {
    fn arbitrary(u: &mut Unstructured<'a>) -> Result<Self> {
        let math = *u.choose(&MathMode::ALL)?;
        let options = Options { zero_rows: *u.choose(&ZeroRows::ALL)?, dispatch: *u.choose(&Dispatch::ALL)? };
        // Small counts, so that small inputs reach the threshold of automatic dispatch.
        let sm_count = if u.arbitrary()? { 1 } else { u.int_in_range(1..=u32::MAX)? };
        Ok(Self(Params { math, options, sm_count }))
    }
}
