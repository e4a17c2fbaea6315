//! `verify IN OUT`.

use crate::args::VerifyArgs;
use crate::backend::Engine;
use crate::chunks::Chunks;
use crate::console;
use crate::container::{Container, Tensor};
use crate::error::Error;
use crate::input::Input;
use crate::plan::{Piece, Plan};
use crate::record::Recipe;
use safetensors::tensor::TensorInfo;
use std::fmt;
use std::path::PathBuf;

/// What a comparison found.
#[derive(Debug)]
pub enum Outcome {
    /// Every byte is as expected.
    Same(Summary),
    /// Not every byte is.
    Different(Mismatch),
}

/// A comparison without a difference.
#[derive(Debug)]
pub struct Summary {
    path: PathBuf,
    quantized: usize,
    copied: usize,
    bytes: u64,
    recipe: Recipe,
}

/// The first difference of a file. The order is: metadata, names and types of tensors, layout; then tensor by tensor
/// in the order of the names, a tensor's codes before its scales within each block of rows.
#[derive(Debug)]
pub struct Mismatch {
    path: PathBuf,
    difference: Difference,
}

#[derive(Debug, PartialEq, Eq)]
enum Difference {
    /// A key of the metadata; `None` where it is absent.
    Metadata { key: String, expected: Option<String>, actual: Option<String> },
    /// A tensor that should be there, or should not.
    Presence { tensor: String, expected: bool },
    /// Type or shape of a tensor.
    Kind { tensor: String, expected: String, actual: String },
    /// A byte of the header, though it says the same.
    Header { byte: usize, expected: u8, actual: u8 },
    /// An element.
    Element { tensor: String, place: Place, expected: Bits, actual: Bits },
}

/// Where in a tensor.
#[derive(Debug, PartialEq, Eq)]
enum Place {
    /// Coordinates, one for each dimension.
    Element(Vec<usize>),
    /// In a tensor of elements smaller than a byte.
    Byte(usize),
}

/// The bits of an element, little-endian.
#[derive(Debug, PartialEq, Eq)]
struct Bits(Vec<u8>);

/// Compares `args.output` with what it should be.
///
/// # Errors
/// [`Error`] when either file cannot be read, or the output has no record or none that fits the input.
pub fn run(args: &VerifyArgs) -> Result<Outcome, Error> {
    let (input, output) = (Input::open(&args.input)?, Input::open(&args.output)?);
    let (original, actual) = (input.container()?, output.container()?);
    let recipe = Recipe::read(&actual.metadata, output.path())?;
    let plan = Plan::new(&original, &recipe)?;
    let difference = match header_difference(&plan, &actual) {
        Some(difference) => Some(difference),
        None => data_difference(&plan, &actual, &recipe)?,
    };
    let path = args.output.clone();
    Ok(match difference {
        Some(difference) => Outcome::Different(Mismatch { path, difference }),
        None => {
            let quantized = plan.pieces.iter().filter(|piece| matches!(piece, Piece::Quantized(_))).count();
            let copied = plan.pieces.len() - quantized;
            Outcome::Same(Summary { path, quantized, copied, bytes: plan.bytes, recipe })
        }
    })
}

fn header_difference(plan: &Plan<'_>, actual: &Container<'_>) -> Option<Difference> {
    for key in plan.metadata.keys().chain(actual.metadata.keys()) {
        let (expected, actual) = (plan.metadata.get(key), actual.metadata.get(key));
        if expected != actual {
            let (expected, actual) = (expected.cloned(), actual.cloned());
            return Some(Difference::Metadata { key: key.clone(), expected, actual });
        }
    }
    for name in plan.tensors.keys().chain(actual.tensors.keys()) {
        let tensor = name.clone();
        match (plan.tensors.get(name), actual.tensors.get(name)) {
            (Some(expected), Some(actual)) => {
                if (expected.dtype, &expected.shape) != (actual.dtype, &actual.shape) {
                    let expected = format!("{} {:?}", expected.dtype, expected.shape);
                    let actual = format!("{} {:?}", actual.dtype, actual.shape);
                    return Some(Difference::Kind { tensor, expected, actual });
                }
            }
            (expected, _) => return Some(Difference::Presence { tensor, expected: expected.is_some() }),
        }
    }
    // The first eight bytes are the length, so headers of other lengths differ there.
    let byte = plan.header.iter().zip(actual.header).position(|(expected, actual)| expected != actual)?;
    Some(Difference::Header { byte, expected: plan.header[byte], actual: actual.header[byte] })
}

/// Compares the data of two files whose headers are equal.
fn data_difference(plan: &Plan<'_>, actual: &Container<'_>, recipe: &Recipe) -> Result<Option<Difference>, Error> {
    let progress = console::progress(plan.bytes - plan.header.len() as u64);
    let compare = |name: &str, start: usize, expected: &[u8]| {
        progress.inc(expected.len() as u64);
        element_difference(name, &plan.tensors[name], &actual.tensors[name], start, expected)
    };
    for piece in &plan.pieces {
        let found = match piece {
            Piece::Copied(tensor) => compare(&tensor.name, 0, tensor.data),
            Piece::Quantized(tensor) => {
                let mut chunks = Chunks::new(tensor, recipe.params);
                let mut found = None;
                while let Some(chunk) = chunks.next(&Engine::Cpu)? {
                    // Within the tensor's data, so a usize.
                    let first_row = chunk.first_row as usize;
                    let first_code = first_row * tensor.shape.hidden() as usize;
                    let scales: &[u8] = bytemuck::cast_slice(chunk.s);
                    found = compare(&tensor.name, first_code, chunk.q)
                        .or_else(|| compare(&tensor.scale_name, first_row * size_of::<f32>(), scales));
                    if found.is_some() {
                        break;
                    }
                }
                found
            }
        };
        if found.is_some() {
            return Ok(found);
        }
    }
    Ok(None)
}

/// Compares `expected` with the bytes of `actual` from byte `start` on.
fn element_difference(
    name: &str,
    info: &TensorInfo,
    actual: &Tensor<'_>,
    start: usize,
    expected: &[u8],
) -> Option<Difference> {
    let actual = &actual.data[start..start + expected.len()];
    if expected == actual {
        return None;
    }
    let byte = expected.iter().zip(actual).position(|(expected, actual)| expected != actual)?;
    // Elements smaller than a byte are shown by the byte.
    let width = (info.dtype.bitsize() / 8).max(1);
    let element = byte / width;
    let bits = |bytes: &[u8]| Bits(bytes[element * width..(element + 1) * width].to_vec());
    let place = if info.dtype.bitsize().is_multiple_of(8) {
        Place::Element(coordinates(start / width + element, &info.shape))
    } else {
        Place::Byte(start + byte)
    };
    Some(Difference::Element { tensor: name.to_owned(), place, expected: bits(expected), actual: bits(actual) })
}

/// Coordinates of an element in row-major order.
fn coordinates(mut index: usize, shape: &[usize]) -> Vec<usize> {
    let mut coordinates = vec![0; shape.len()];
    for (coordinate, &size) in coordinates.iter_mut().zip(shape).rev() {
        *coordinate = index % size;
        index /= size;
    }
    coordinates
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = console::printable(&self.path.display().to_string());
        let Self { quantized, copied, bytes, recipe, .. } = self;
        writeln!(f, "{path}: all {bytes} bytes as expected ({quantized} tensors quantized, {copied} copied; {recipe})")
    }
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} differs: {}", self.path.display(), self.difference)
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Metadata { key, expected, actual } => {
                let shown = |value: &Option<String>| value.as_ref().map_or("absent".to_owned(), |v| format!("`{v}`"));
                write!(f, "metadata `{key}` is {}, expected {}", shown(actual), shown(expected))
            }
            Self::Presence { tensor, expected: true } => write!(f, "tensor `{tensor}` is missing"),
            Self::Presence { tensor, expected: false } => write!(f, "tensor `{tensor}` should not be there"),
            Self::Kind { tensor, expected, actual } => write!(f, "tensor `{tensor}` is {actual}, expected {expected}"),
            Self::Header { byte, expected, actual } => write!(
                f,
                "byte {byte} of the header is {actual:#04x}, expected {expected:#04x}; \
                 another program may have rewritten the file"
            ),
            Self::Element { tensor, place, expected, actual } => {
                write!(f, "tensor `{tensor}`, {place} is {actual}, expected {expected}")
            }
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Element(at) => match at[..] {
                [row, column] => write!(f, "row {row}, column {column}"),
                _ => write!(f, "element {at:?}"),
            },
            Self::Byte(byte) => write!(f, "byte {byte}"),
        }
    }
}

impl fmt::Display for Bits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("0x")?;
        self.0.iter().rev().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}
