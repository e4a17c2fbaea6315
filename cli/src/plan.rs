//! What the output is, to the byte, but for the results of the computation: shared by `quantize` and `verify`.

use crate::container::{Container, MAX_HEADER_BYTES, encode_header};
use crate::error::Error;
use crate::record::{PREFIX, Recipe};
use crate::select::{element, select};
use per_token_quant_fp8::{Element, Shape};
use safetensors::tensor::{Dtype, TensorInfo};
use std::collections::BTreeMap;

/// Suffix of a scale tensor's name.
const SCALE_SUFFIX: &str = "_scale";

/// Bytes of one scale.
const SCALE_BYTES: usize = size_of::<f32>();

/// The whole output.
#[derive(Debug)]
pub struct Plan<'a> {
    /// Length and JSON, the first bytes of the file.
    pub header: Vec<u8>,
    /// The input's metadata and the record.
    pub metadata: BTreeMap<String, String>,
    /// Type, shape and place of every tensor; the offsets count from the end of the header.
    pub tensors: BTreeMap<String, TensorInfo>,
    /// Where each tensor of the input goes, by its name.
    pub pieces: Vec<Piece<'a>>,
    /// Bytes of the file.
    pub bytes: u64,
}

/// What becomes of one tensor of the input.
#[derive(Debug)]
pub enum Piece<'a> {
    /// It is copied.
    Copied(Copied<'a>),
    /// It is quantized.
    Quantized(Quantized<'a>),
}

/// A tensor that is copied.
#[derive(Debug)]
pub struct Copied<'a> {
    /// Its name, in both files.
    pub name: String,
    /// Its bytes.
    pub data: &'a [u8],
    /// Where they go, counted from the start of the file.
    pub at: u64,
}

/// A tensor that is quantized.
#[derive(Debug)]
pub struct Quantized<'a> {
    /// Its name, in both files.
    pub name: String,
    /// Name of its scales.
    pub scale_name: String,
    /// Its element type.
    pub element: Element,
    /// Its shape, checked.
    pub shape: Shape,
    /// Its elements, at any address.
    pub data: &'a [u8],
    /// Where the codes go, counted from the start of the file.
    pub codes_at: u64,
    /// Where the scales go, counted from the start of the file.
    pub scales_at: u64,
}

impl<'a> Plan<'a> {
    /// Plans the output of `recipe` for `input`.
    ///
    /// # Errors
    /// [`Error::AlreadyQuantized`], [`Error::NothingMatches`], [`Error::NothingEligible`], [`Error::Shape`],
    /// [`Error::ScaleTaken`], [`Error::HeaderTooLarge`].
    pub fn new(input: &Container<'a>, recipe: &Recipe) -> Result<Self, Error> {
        let mut metadata = input.metadata.clone();
        if let Some(key) = metadata.keys().find(|key| key.starts_with(PREFIX)) {
            return Err(Error::AlreadyQuantized { key: key.clone() });
        }
        metadata.extend(recipe.entries());

        let selected = select(input, &recipe.select)?;
        let mut chosen = BTreeMap::new();
        let mut outputs = Vec::new();
        for (name, tensor) in &input.tensors {
            match element(tensor).filter(|_| selected.contains(name.as_str())) {
                Some(element) => {
                    let scale_name = format!("{name}{SCALE_SUFFIX}");
                    if input.tensors.contains_key(&scale_name) {
                        return Err(Error::ScaleTaken { tensor: name.clone(), scale: scale_name });
                    }
                    // `element` is of two dimensions.
                    let (rows, hidden) = (tensor.shape[0], tensor.shape[1]);
                    let shape = Shape::new(rows as u64, hidden as u64)
                        .map_err(|source| Error::Shape { tensor: name.clone(), source })?;
                    // Neither product overflows: `shape` is checked, and a row has at least four elements.
                    outputs.push((name.clone(), Dtype::F8_E4M3, tensor.shape.clone(), rows * hidden));
                    outputs.push((scale_name.clone(), Dtype::F32, vec![rows, 1], rows * SCALE_BYTES));
                    chosen.insert(name.as_str(), (element, shape, scale_name));
                }
                None => outputs.push((name.clone(), tensor.dtype, tensor.shape.clone(), tensor.data.len())),
            }
        }

        let layout = lay_out(outputs);
        let header = encode_header(&metadata, &layout);
        if header.len() as u64 > MAX_HEADER_BYTES {
            return Err(Error::HeaderTooLarge { expected: MAX_HEADER_BYTES, actual: header.len() as u64 });
        }
        let data_bytes = layout.last().map_or(0, |(_, info)| info.data_offsets.1);
        let tensors: BTreeMap<_, _> = layout.into_iter().collect();
        let at = |name: &str| (header.len() + tensors[name].data_offsets.0) as u64;
        let pieces = input.tensors.iter().map(|(name, tensor)| match chosen.remove(name.as_str()) {
            Some((element, shape, scale_name)) => Piece::Quantized(Quantized {
                name: name.clone(),
                element,
                shape,
                data: tensor.data,
                codes_at: at(name),
                scales_at: at(&scale_name),
                scale_name,
            }),
            None => Piece::Copied(Copied { name: name.clone(), data: tensor.data, at: at(name) }),
        });
        let pieces = pieces.collect();
        Ok(Self { bytes: (header.len() + data_bytes) as u64, header, metadata, tensors, pieces })
    }
}

/// Gives every tensor its place: descending type, then name, as the `safetensors` crate orders them, so that each
/// tensor is aligned to its element.
fn lay_out(mut outputs: Vec<(String, Dtype, Vec<usize>, usize)>) -> Vec<(String, TensorInfo)> {
    outputs.sort_by(|(a_name, a, ..), (b_name, b, ..)| b.cmp(a).then_with(|| a_name.cmp(b_name)));
    let mut start = 0;
    let placed = outputs.into_iter().map(|(name, dtype, shape, bytes)| {
        let data_offsets = (start, start + bytes);
        start += bytes;
        (name, TensorInfo { dtype, shape, data_offsets })
    });
    placed.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use per_token_quant_fp8::MathMode;
    use per_token_quant_fp8::cpu::Params;
    use safetensors::tensor::TensorView;

    fn recipe(select: &[&str]) -> Recipe {
        Recipe { params: Params::new(MathMode::Precise), select: select.iter().map(|&s| s.to_owned()).collect() }
    }

    fn file(tensors: &[(&str, Dtype, &[usize])]) -> Vec<u8> {
        let views = tensors.iter().map(|&(name, dtype, shape)| {
            let bytes = shape.iter().product::<usize>() * dtype.bitsize() / 8;
            (name, dtype, shape.to_vec(), vec![0x3C; bytes])
        });
        let views: Vec<_> = views.collect();
        let views = views.iter().map(|(name, dtype, shape, data)| {
            (*name, TensorView::new(*dtype, shape.clone(), data).expect("a valid tensor"))
        });
        safetensors::serialize(views, None).unwrap()
    }

    /// Header, then each tensor where the header says, without a gap or an overlap.
    #[test]
    fn pieces_tile_the_file() {
        let bytes = file(&[
            ("a", Dtype::F32, &[3, 4]),
            ("b", Dtype::I8, &[3]),
            ("c", Dtype::BF16, &[2, 8]),
            ("d", Dtype::I64, &[1]),
            ("e", Dtype::F16, &[0, 4]),
        ]);
        let input = Container::parse(&bytes).unwrap();
        let plan = Plan::new(&input, &recipe(&["*"])).unwrap();
        let mut spans = vec![(0, plan.header.len() as u64)];
        for piece in &plan.pieces {
            match piece {
                Piece::Copied(t) => spans.push((t.at, t.data.len() as u64)),
                Piece::Quantized(t) => {
                    spans.push((t.codes_at, t.shape.rows() * t.shape.hidden()));
                    spans.push((t.scales_at, t.shape.rows() * SCALE_BYTES as u64));
                    assert!(t.scales_at.is_multiple_of(SCALE_BYTES as u64));
                }
            }
        }
        assert_eq!(spans.len(), 1 + 2 + 3 * 2);
        spans.sort();
        let end = spans.iter().fold(0, |end, &(start, bytes)| {
            assert_eq!(start, end);
            start + bytes
        });
        assert_eq!(end, plan.bytes);
    }

    /// Damaged headers are refused or understood; nothing panics, and what is understood fits its bytes.
    #[test]
    fn damaged_files_are_refused_or_understood() {
        let good = file(&[("w", Dtype::F32, &[2, 4]), ("v", Dtype::BF16, &[3, 8]), ("ids", Dtype::I32, &[3])]);
        let header = Container::parse(&good).unwrap().header.len();
        let mut state = 0x9E37_79B9_7F4A_7C15_u64;
        let mut dice = |sides: usize| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state % sides as u64) as usize
        };
        let alphabet = b"0123456789{}[]\",:-\\ .eE\0\xFF";
        let (mut refused, mut understood) = (0, 0);
        for round in 0..20_000 {
            let mut bytes = good.clone();
            for _ in 0..=dice(3) {
                let at = dice(header);
                match dice(5) {
                    0 => bytes[at] = dice(256) as u8,
                    1 => bytes[at] = alphabet[dice(alphabet.len())],
                    2 => drop(bytes.remove(at)),
                    3 => bytes.insert(at, alphabet[dice(alphabet.len())]),
                    _ => bytes.truncate(header + dice(bytes.len().saturating_sub(header) + 1)),
                }
            }
            // Most keep a true length, so that the JSON is reached.
            if round % 4 != 0 && bytes.len() >= 80 {
                let length = (header + bytes.len()).saturating_sub(good.len() + 8);
                bytes[..8].copy_from_slice(&(length as u64).to_le_bytes());
            }
            let planned =
                Container::parse(&bytes).ok().map(|input| Plan::new(&input, &recipe(&["*"])).map(|p| p.bytes));
            match planned {
                Some(Ok(planned)) => {
                    assert!(planned < 4096, "{planned} bytes of output from {} of input", bytes.len());
                    understood += 1;
                }
                _ => refused += 1,
            }
        }
        assert!(refused > 1000 && understood > 100, "{refused} refused, {understood} understood");
    }
}
