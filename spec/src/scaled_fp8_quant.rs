//! `scaled_fp8_quant`, the serving entry of the reference: which quantization a call is, and the shapes of its outputs.

use crate::{Options, Shape, ShapeError};

/// Name of the operation, in errors.
pub const KERNEL: &str = "scaled_fp8_quant";

/// How many scales there are, and where they come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Granularity {
    /// Dynamic, one scale a row: [`crate::per_token`].
    PerToken,
    /// Dynamic, one scale for the tensor: [`crate::per_tensor`].
    PerTensor,
    /// One scale for the tensor, the caller's.
    Static,
}

/// One call of the serving entry, without its operands: `x[rows, hidden]`, contiguous.
///
/// In the reference's terms: a scale is given ([`Granularity::Static`]), or `use_per_token_if_dynamic` is true
/// ([`Granularity::PerToken`]) or false ([`Granularity::PerTensor`]).
///
/// ```
/// use ptq_spec::scaled_fp8_quant::{Granularity, OutputShape, ScaledFp8Quant};
///
/// let call = ScaledFp8Quant { num_token_padding: Some(17), ..ScaledFp8Quant::new(Granularity::PerToken) };
/// assert_eq!(call.output_shape(3, 4096)?, OutputShape { rows_out: 17, hidden: 4096, scales: 17 });
/// # Ok::<(), ptq_spec::ShapeError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ScaledFp8Quant {
    /// How many scales.
    pub granularity: Granularity,
    /// Least rows of the outputs; rows beyond the input's keep their bytes. `None` and 0: as many as the input's.
    pub num_token_padding: Option<u64>,
    /// What becomes of zero scales. With one scale for the tensor the reference has one kernel, which never guards: the
    /// dispatch plays no part then.
    pub options: Options,
}

/// Shapes of a call's outputs: `q[rows_out, hidden]` in E4M3, `s[scales, 1]` or, with one scale for the tensor, `s[1]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct OutputShape {
    /// Rows of `q`.
    pub rows_out: u64,
    /// Elements per row.
    pub hidden: u64,
    /// Elements of `s`.
    pub scales: u64,
}

impl ScaledFp8Quant {
    /// Without padding, with the default options.
    pub const fn new(granularity: Granularity) -> Self {
        let options = Options { zero_rows: crate::ZeroRows::Legacy, dispatch: crate::Dispatch::Auto };
        Self { granularity, num_token_padding: None, options }
    }

    /// Shapes of the outputs for an input `x[rows, hidden]`. Touches no memory.
    ///
    /// # Errors
    /// [`ShapeError::HiddenZero`], [`ShapeError::Overflow`]; with [`Granularity::PerToken`] also
    /// [`ShapeError::HiddenMultiple`]. With one scale for the tensor `hidden` is any number but 0.
    pub const fn output_shape(self, rows: u64, hidden: u64) -> Result<OutputShape, ShapeError> {
        let rows_out = match self.num_token_padding {
            Some(padding) if padding > rows => padding,
            _ => rows,
        };
        match self.granularity {
            Granularity::PerToken => match Shape::padded(rows, rows_out, hidden) {
                Ok(_) => Ok(OutputShape { rows_out, hidden, scales: rows_out }),
                Err(error) => Err(error),
            },
            Granularity::PerTensor | Granularity::Static => {
                if hidden == 0 {
                    return Err(ShapeError::HiddenZero { kernel: KERNEL });
                }
                // Of f32, the widest element.
                match rows_out.checked_mul(hidden) {
                    Some(elements) if elements <= isize::MAX as u64 / 4 => {
                        Ok(OutputShape { rows_out, hidden, scales: 1 })
                    }
                    _ => Err(ShapeError::Overflow { kernel: KERNEL, operand: "x", rows: rows_out, hidden }),
                }
            }
        }
    }
}

impl Granularity {
    /// Every one.
    pub const ALL: [Self; 3] = [Self::PerToken, Self::PerTensor, Self::Static];
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::per_token;

    fn shape(granularity: Granularity, padding: Option<u64>, rows: u64, hidden: u64) -> Result<[u64; 3], ShapeError> {
        let call = ScaledFp8Quant { num_token_padding: padding, ..ScaledFp8Quant::new(granularity) };
        call.output_shape(rows, hidden).map(|shape| [shape.rows_out, shape.hidden, shape.scales])
    }

    #[test]
    fn padding_is_a_lower_bound_of_the_rows() {
        for (padding, rows_out) in [(None, 3), (Some(0), 3), (Some(2), 3), (Some(3), 3), (Some(17), 17)] {
            assert_eq!(shape(Granularity::PerToken, padding, 3, 8), Ok([rows_out, 8, rows_out]));
            for one in [Granularity::PerTensor, Granularity::Static] {
                assert_eq!(shape(one, padding, 3, 8), Ok([rows_out, 8, 1]));
            }
        }
        assert_eq!(shape(Granularity::PerToken, Some(5), 0, 8), Ok([5, 8, 5]), "no rows");
    }

    #[test]
    fn rows_are_multiples_of_four_where_they_have_scales_of_their_own() {
        let error = ShapeError::HiddenMultiple { kernel: per_token::KERNEL, expected: 4, actual: 6 };
        assert_eq!(shape(Granularity::PerToken, None, 3, 6), Err(error));
        assert_eq!(shape(Granularity::PerTensor, None, 3, 6), Ok([3, 6, 1]));
        assert_eq!(shape(Granularity::Static, None, 3, 0), Err(ShapeError::HiddenZero { kernel: KERNEL }));
    }

    #[test]
    fn outputs_fit_the_address_space() {
        let most = isize::MAX as u64 / 4;
        assert_eq!(shape(Granularity::PerTensor, None, most, 1), Ok([most, 1, 1]));
        for (padding, rows, hidden) in [(None, most + 1, 1), (Some(most + 1), 1, 1), (None, u64::MAX, u64::MAX)] {
            let rows_out = padding.unwrap_or(rows);
            let error = ShapeError::Overflow { kernel: KERNEL, operand: "x", rows: rows_out, hidden };
            assert_eq!(shape(Granularity::PerTensor, padding, rows, hidden), Err(error));
        }
    }
}
