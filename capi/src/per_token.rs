//! Per-token quantization.

use crate::arguments::{self, Struct};
use crate::call::guarded;
use crate::choices::{DISPATCHES, DTYPES, ZERO_ROWS, of_number};
use crate::extended;
use crate::failure::Failure;
use crate::quantizer::{PtqQuantizer, check_reserved};
use crate::{PtqStatus, registry};
use per_token_quant_fp8::{Executor, Options, RawArgs, Shape};
use std::ffi::c_void;

/// One call of ptq_per_token_quant_fp8(). On a device, operands are device memory; on the CPU, host memory.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct PtqPerTokenArgs {
    /// sizeof(ptq_per_token_args).
    pub struct_size: usize,
    /// A ptq_dtype: the elements of `x`.
    pub dtype: u32,
    /// A ptq_zero_rows.
    pub zero_rows: u32,
    /// A ptq_dispatch.
    pub dispatch: u32,
    /// 0.
    pub reserved: u32,
    /// `x[rows, hidden]`, aligned to its element.
    pub x: *const c_void,
    /// `q[rows_out, hidden]`: E4M3 codes, one byte each.
    pub q: *mut c_void,
    /// `s[rows_out]`: scales, aligned to 4 bytes.
    pub s: *mut f32,
    /// Rows of `x`. With 0, the call does nothing and the operands may be null.
    pub rows: u64,
    /// Elements per row: a multiple of 4, not 0.
    pub hidden: u64,
    /// Rows of `q` and `s`, at least `rows`; those from `rows` on are not touched.
    pub rows_out: u64,
    /// Elements between the starts of two rows of `x`. 0: `hidden`.
    pub x_row_stride: u64,
    /// Elements between the starts of two rows of `q`. 0: `hidden`.
    pub q_row_stride: u64,
    /// What a row's largest magnitude counts as at most. 0: no bound.
    pub scale_upper_bound: f32,
    /// Least scale. 0: none.
    pub min_scale: f32,
    /// Address, as of the operands, of the number of rows to quantize, at most `rows`; those after it are not touched. NULL: `rows`.
    pub device_rows: *const u32,
    /// A CUstream or cudaStream_t; NULL: the default stream. Means nothing on the CPU.
    pub stream: *mut c_void,
}

// SAFETY: `repr(C)`, `struct_size` comes first, all fields are numbers and raw pointers.
unsafe impl Struct for PtqPerTokenArgs {
    const NAME: &'static str = "ptq_per_token_args";
}

/// Quantizes `x[rows, hidden]` to E4M3 codes `q[rows_out, hidden]` and scales `s[rows_out]`; q * s dequantizes.
///
/// On a device the call enqueues kernels in the stream and returns: it waits for nothing and allocates nothing, and may be
/// captured into a graph after ptq_load(). On the CPU it is done when it returns.
///
/// Checked: handle, fields, shape, alignment, that no two operands overlap, that the context is the handle's. Not checked:
/// that the addresses are of memory of that size which the handle's device can use.
///
/// # Safety
/// `args` is null, which is an error, or of a variable of its type. Its operands are memory of the size that it says, in
/// use by nobody else until the stream has passed the call; its stream exists.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ptq_per_token_quant_fp8(
    quantizer: *const PtqQuantizer,
    args: *const PtqPerTokenArgs,
) -> PtqStatus {
    guarded(|| {
        let executor = registry::get(quantizer)?;
        // SAFETY: as the caller promises.
        let args = unsafe { arguments::read(args) }?;
        // SAFETY: as the caller promises.
        unsafe { quantize(&executor, &args) }
    })
}

/// # Safety
/// As [`ptq_per_token_quant_fp8`] on the operands and the stream.
unsafe fn quantize(executor: &Executor, args: &PtqPerTokenArgs) -> Result<(), Failure> {
    let element = of_number(DTYPES, "dtype", args.dtype)?;
    let zero_rows = of_number(ZERO_ROWS, "zero_rows", args.zero_rows)?;
    let dispatch = of_number(DISPATCHES, "dispatch", args.dispatch)?;
    check_reserved("reserved", args.reserved)?;
    let shape = Shape::padded(args.rows, args.rows_out, args.hidden)?;
    let extended = extended::of(args);
    extended.layout(shape)?;
    if args.rows == 0 {
        return Ok(());
    }
    check_operands(&[("x", args.x.addr()), ("q", args.q.addr()), ("s", args.s.addr())])?;
    let raw = RawArgs {
        element,
        x: args.x.expose_provenance() as u64,
        q: args.q.expose_provenance() as u64,
        s: args.s.expose_provenance() as u64,
        shape,
        options: Options { zero_rows, dispatch },
        extended,
        device_rows: args.device_rows.expose_provenance() as u64,
    };
    // SAFETY: as the caller promises.
    unsafe { executor.quantize_raw(raw, args.stream.cast()) }?;
    Ok(())
}

/// Checks that no operand is null.
pub(crate) fn check_operands(operands: &[(&'static str, usize)]) -> Result<(), Failure> {
    match operands.iter().find(|(_, address)| *address == 0) {
        None => Ok(()),
        Some(&(name, _)) => Err(Failure::Null {
            name,
            expected: "the address of an operand",
            advice: "only a call of 0 rows needs none",
        }),
    }
}
