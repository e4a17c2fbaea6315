//! Row strides, bounds on the scale, and a row count on the device.

use crate::PtqPerTokenArgs;
use crate::failure::Failure;

/// Checks that none of them is asked for.
pub(crate) fn check(args: &PtqPerTokenArgs) -> Result<(), Failure> {
    let unless_default = |default: bool, field, expected, actual: String| {
        if default { Ok(()) } else { Err(Failure::Unsupported { field, expected, actual }) }
    };
    let contiguous = |stride| stride == 0 || stride == args.hidden;
    let rows = args.device_rows.addr();
    unless_default(contiguous(args.x_row_stride), "x_row_stride", "0", args.x_row_stride.to_string())?;
    unless_default(contiguous(args.q_row_stride), "q_row_stride", "0", args.q_row_stride.to_string())?;
    unless_default(args.scale_upper_bound == 0.0, "scale_upper_bound", "0", args.scale_upper_bound.to_string())?;
    unless_default(args.min_scale == 0.0, "min_scale", "0", args.min_scale.to_string())?;
    unless_default(rows == 0, "device_rows", "NULL", format!("{rows:#x}"))
}
