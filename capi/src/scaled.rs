//! The serving entry: a scale per token or per tensor, computed or given.

use crate::arguments::{self, Struct};
use crate::call::guarded;
use crate::choices::{DISPATCHES, DTYPES, GRANULARITIES, ZERO_ROWS, of_number};
use crate::failure::Failure;
use crate::per_token::check_operands;
use crate::quantizer::PtqQuantizer;
use crate::{PtqStatus, registry};
use per_token_quant_fp8::{Executor, Options, OutputShape, ScaledFp8Quant, ScaledFp8QuantArgs};
use std::ffi::c_void;

/// One call of ptq_scaled_fp8_quant(). On a device, operands are device memory; on the CPU, host memory.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct PtqScaledArgs {
    /// sizeof(ptq_scaled_args).
    pub struct_size: usize,
    /// A ptq_dtype: the elements of `x`.
    pub dtype: u32,
    /// A ptq_granularity.
    pub granularity: u32,
    /// A ptq_zero_rows.
    pub zero_rows: u32,
    /// A ptq_dispatch. Means nothing unless scales are per token.
    pub dispatch: u32,
    /// `x[rows, hidden]`, aligned to its element.
    pub x: *const c_void,
    /// `q[rows_out, hidden]`: E4M3 codes, one byte each; ptq_scaled_fp8_output_shape() tells `rows_out`.
    pub q: *mut c_void,
    /// Scales, aligned to 4 bytes: `s[rows_out]` with PTQ_GRANULARITY_PER_TOKEN, else `s[1]`. Read with
    /// PTQ_GRANULARITY_STATIC, else written.
    pub s: *mut f32,
    /// Rows of `x`. With 0, the call does nothing and the operands may be null.
    pub rows: u64,
    /// Elements per row, not 0; a multiple of 4 with PTQ_GRANULARITY_PER_TOKEN.
    pub hidden: u64,
    /// Least number of rows of the outputs; those from `rows` on are not touched. 0: none.
    pub num_token_padding: u64,
    /// A CUstream or cudaStream_t; NULL: the default stream. Means nothing on the CPU.
    pub stream: *mut c_void,
}

/// What ptq_scaled_fp8_quant() writes: `q[rows_out, hidden]` and `scales` scales.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct PtqOutputShape {
    /// sizeof(ptq_output_shape).
    pub struct_size: usize,
    /// Rows of `q`.
    pub rows_out: u64,
    /// Elements per row of `q`.
    pub hidden: u64,
    /// Elements of `s`.
    pub scales: u64,
}

// SAFETY: `repr(C)`, `struct_size` comes first, all fields are integers and raw pointers.
unsafe impl Struct for PtqScaledArgs {
    const NAME: &'static str = "ptq_scaled_args";
}

// SAFETY: `repr(C)`, `struct_size` comes first, all fields are integers.
unsafe impl Struct for PtqOutputShape {
    const NAME: &'static str = "ptq_output_shape";
}

/// Writes to `*shape`, whose `struct_size` is set, the shape of the outputs of ptq_scaled_fp8_quant() for a
/// ptq_granularity and an input of that shape. `num_token_padding` 0: none.
///
/// # Safety
/// `shape` is null, which is an error, or of a variable of its type.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ptq_scaled_fp8_output_shape(
    granularity: u32,
    rows: u64,
    hidden: u64,
    num_token_padding: u64,
    shape: *mut PtqOutputShape,
) -> PtqStatus {
    guarded(|| {
        let granularity = of_number(GRANULARITIES, "granularity", granularity)?;
        let call = ScaledFp8Quant { num_token_padding: Some(num_token_padding), ..ScaledFp8Quant::new(granularity) };
        let OutputShape { rows_out, hidden, scales } = call.output_shape(rows, hidden)?;
        let found = PtqOutputShape { struct_size: size_of::<PtqOutputShape>(), rows_out, hidden, scales };
        // SAFETY: as the caller promises.
        unsafe { arguments::write(shape, found) }
    })
}

/// Quantizes `x[rows, hidden]` to E4M3 codes with a scale per token or per tensor, computed or given. As
/// ptq_per_token_quant_fp8() in all that its arguments do not tell.
///
/// # Safety
/// As ptq_per_token_quant_fp8().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ptq_scaled_fp8_quant(quantizer: *const PtqQuantizer, args: *const PtqScaledArgs) -> PtqStatus {
    guarded(|| {
        let executor = registry::get(quantizer)?;
        // SAFETY: as the caller promises.
        let args = unsafe { arguments::read(args) }?;
        // SAFETY: as the caller promises.
        unsafe { quantize(&executor, &args) }
    })
}

/// # Safety
/// As [`ptq_scaled_fp8_quant`] on the operands and the stream.
unsafe fn quantize(executor: &Executor, args: &PtqScaledArgs) -> Result<(), Failure> {
    let element = of_number(DTYPES, "dtype", args.dtype)?;
    let granularity = of_number(GRANULARITIES, "granularity", args.granularity)?;
    let zero_rows = of_number(ZERO_ROWS, "zero_rows", args.zero_rows)?;
    let dispatch = of_number(DISPATCHES, "dispatch", args.dispatch)?;
    let call = ScaledFp8Quant {
        granularity,
        num_token_padding: Some(args.num_token_padding),
        options: Options { zero_rows, dispatch },
    };
    call.output_shape(args.rows, args.hidden)?;
    if args.rows == 0 {
        return Ok(());
    }
    check_operands(&[("x", args.x.addr()), ("q", args.q.addr()), ("s", args.s.addr())])?;
    let raw = ScaledFp8QuantArgs {
        element,
        x: args.x.expose_provenance() as u64,
        q: args.q.expose_provenance() as u64,
        s: args.s.expose_provenance() as u64,
        rows: args.rows,
        hidden: args.hidden,
    };
    // SAFETY: as the caller promises.
    unsafe { executor.scaled_fp8_quant_raw(call, raw, args.stream.cast()) }?;
    Ok(())
}
