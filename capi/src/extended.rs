//! Row strides and bounds on the scale.

use crate::PtqPerTokenArgs;
use per_token_quant_fp8::Extended;

/// Strides and bounds of a call; 0 is none.
pub(crate) fn of(args: &PtqPerTokenArgs) -> Extended {
    // Not a number is a bound, if a bad one.
    let bound = |value: f32| (value != 0.0).then_some(value);
    Extended {
        x_stride: args.x_row_stride,
        q_stride: args.q_row_stride,
        scale_upper_bound: bound(args.scale_upper_bound),
        min_scale: bound(args.min_scale),
    }
}
