//! A tensor quantized chunk of rows by chunk of rows, so that memory stays bounded.

use crate::backend::{Engine, Ran};
use crate::error::Error;
use crate::plan::Quantized;
use bytemuck::{AnyBitPattern, NoUninit};
use per_token_quant_fp8::cpu::Params;
use per_token_quant_fp8::{Dispatch, Options, Shape, ZeroRows};
use std::borrow::Cow;

/// Bytes of input in a chunk, unless a single row has more.
const CHUNK_BYTES: u64 = 256 << 20;

// Files of this format are little-endian, and elements are used as they are in the file.
const _: () = assert!(cfg!(target_endian = "little"), "elements would have to be swapped");

/// The chunks of one tensor, in order.
#[derive(Debug)]
pub struct Chunks<'t> {
    tensor: &'t Quantized<'t>,
    params: Params,
    rows_per_chunk: u64,
    next_row: u64,
    q: Vec<u8>,
    s: Vec<f32>,
}

/// Consecutive rows of a tensor, quantized.
#[derive(Debug)]
pub struct Chunk<'c> {
    /// Row of the tensor that is the first of the chunk.
    pub first_row: u64,
    /// Input [rows, hidden], at any address.
    pub x: &'c [u8],
    /// Codes [rows, hidden].
    pub q: &'c [u8],
    /// Scales `s[rows]`.
    pub s: &'c [f32],
    /// Who computed it and for how long.
    pub ran: Ran,
}

impl<'t> Chunks<'t> {
    /// Prepares the chunks of `tensor`.
    pub fn new(tensor: &'t Quantized<'t>, params: Params) -> Self {
        Self::of_bytes(tensor, params, CHUNK_BYTES)
    }

    fn of_bytes(tensor: &'t Quantized<'t>, params: Params, bytes: u64) -> Self {
        // The reference's choice depends on the rows of the whole tensor, so it is made here and not per chunk.
        let guard = params.options.guard(tensor.shape.rows(), params.sm_count);
        // Without rows nothing bounds `hidden`.
        let row_bytes = tensor.shape.hidden().saturating_mul(tensor.element.bytes() as u64);
        Self {
            tensor,
            params: Params { options: fixed(guard), ..params },
            rows_per_chunk: (bytes / row_bytes).max(1),
            next_row: 0,
            q: Vec::new(),
            s: Vec::new(),
        }
    }

    /// Quantizes the next chunk; `None` when all rows are done.
    ///
    /// # Errors
    /// [`Error::Compute`].
    pub fn next(&mut self, engine: &Engine) -> Result<Option<Chunk<'_>>, Error> {
        let tensor = self.tensor;
        let first_row = self.next_row;
        let rows = self.rows_per_chunk.min(tensor.shape.rows() - first_row);
        if rows == 0 {
            return Ok(None);
        }
        self.next_row += rows;
        // These fit in usize: they lie within `tensor.data`.
        let (start, n) = (first_row as usize, rows as usize);
        let hidden = tensor.shape.hidden() as usize;
        let row_bytes = hidden * tensor.element.bytes();
        let x = &tensor.data[start * row_bytes..(start + n) * row_bytes];
        self.q.resize(n * hidden, 0);
        self.s.resize(n, 0.0);
        let ran = Shape::new(rows, tensor.shape.hidden())
            .map_err(Into::into)
            .and_then(|shape| engine.quantize(tensor.element, x, &mut self.q, &mut self.s, shape, self.params))
            .map_err(|source| Error::Compute { tensor: tensor.name.clone(), source })?;
        Ok(Some(Chunk { first_row, x, q: &self.q, s: &self.s, ran }))
    }
}

/// Options that guard, or not, whatever the number of rows.
const fn fixed(guard: bool) -> Options {
    if guard {
        Options { zero_rows: ZeroRows::Guarded, dispatch: Dispatch::Warp }
    } else {
        Options { zero_rows: ZeroRows::Legacy, dispatch: Dispatch::Cta }
    }
}

/// `bytes` as elements, copied only where the address is not aligned for them.
pub fn elements<T: AnyBitPattern + NoUninit>(bytes: &[u8]) -> Cow<'_, [T]> {
    match bytemuck::try_cast_slice(bytes) {
        Ok(elements) => Cow::Borrowed(elements),
        Err(_) => Cow::Owned(bytemuck::pod_collect_to_vec(bytes)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use per_token_quant_fp8::{Element, MathMode};

    #[test]
    fn fixed_options_depend_on_nothing() {
        for (rows, sm_count) in [(0, 1), (1, 1), (15, 1), (16, 1), (u64::MAX, 1), (0, u32::MAX)] {
            assert!(fixed(true).guard(rows, sm_count));
            assert!(!fixed(false).guard(rows, sm_count));
        }
    }

    #[test]
    fn misaligned_bytes_are_the_same_elements() {
        let bytes: Vec<u8> = (0..64).collect();
        for start in 0..8 {
            let got = elements::<f32>(&bytes[start..start + 16]);
            let want: Vec<_> =
                bytes[start..start + 16].chunks(4).map(|c| f32::from_le_bytes(c.try_into().unwrap())).collect();
            assert_eq!(*got, *want);
        }
    }

    fn collect(tensor: &Quantized<'_>, params: Params, bytes: u64) -> (Vec<u8>, Vec<u32>, usize) {
        let (mut q, mut s, mut count) = (Vec::new(), Vec::new(), 0);
        let mut chunks = Chunks::of_bytes(tensor, params, bytes);
        while let Some(chunk) = chunks.next(&Engine::Cpu).unwrap() {
            assert_eq!(chunk.first_row as usize, s.len());
            q.extend_from_slice(chunk.q);
            s.extend(chunk.s.iter().map(|s| s.to_bits()));
            count += 1;
        }
        (q, s, count)
    }

    /// Above the threshold as a whole, below it in every chunk; one row of zeros shows which was looked at.
    #[test]
    fn chunks_give_the_bytes_of_the_whole() {
        let (rows, hidden) = (40u64, 8);
        let mut x: Vec<f32> = (0..rows * hidden).map(|i| (i as f32).cos()).collect();
        x[24..32].fill(f32::NAN);
        let data: &[u8] = bytemuck::cast_slice(&x);
        let tensor = Quantized {
            name: "x".to_owned(),
            scale_name: "x_scale".to_owned(),
            element: Element::F32,
            shape: Shape::new(rows, hidden).unwrap(),
            data,
            codes_at: 0,
            scales_at: 0,
        };
        for sm_count in [2, 3] {
            for math in MathMode::ALL {
                let params = Params { math, options: Options::default(), sm_count };
                let (mut q, mut s) = (vec![0xAA; x.len()], vec![f32::NAN; rows as usize]);
                per_token_quant_fp8::cpu::scalar::quantize(&x, &mut q, &mut s, tensor.shape, params).unwrap();
                let s: Vec<_> = s.iter().map(|s| s.to_bits()).collect();
                for (bytes, count) in [(1, 40), (32, 40), (7 * 32, 6), (u64::MAX, 1)] {
                    assert_eq!(collect(&tensor, params, bytes), (q.clone(), s.clone(), count));
                }
            }
        }
    }

    #[test]
    fn no_rows_no_chunks() {
        for hidden in [4, 1 << 62, u64::MAX - 3] {
            let tensor = Quantized {
                name: String::new(),
                scale_name: String::new(),
                element: Element::F32,
                shape: Shape::new(0, hidden).unwrap(),
                data: &[],
                codes_at: 0,
                scales_at: 0,
            };
            let params = Params { math: MathMode::Fast, options: Options::default(), sm_count: 1 };
            assert_eq!(collect(&tensor, params, 1), (vec![], vec![], 0));
        }
    }
}
