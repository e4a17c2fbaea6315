//! Well-formed files with arbitrary tensors, metadata and patterns: quantized exactly when the contract allows it, and a
//! damaged output never verifies.

#![no_main]

use arbitrary::{Arbitrary, Result, Unstructured};
use libfuzzer_sys::fuzz_target;
use ptq_fuzz::AnyParams;
use ptq_fuzz::program::{Folder, element, fits_contract};
use quant_fp8::Error;
use quant_fp8::verify::Outcome;
use safetensors::tensor::TensorView;
use safetensors::{Dtype, SafeTensors};
use std::collections::{BTreeMap, HashMap};
use std::fs;

/// Bytes of a tensor, at most.
const MAX_BYTES: usize = 4096;

const DTYPES: [Dtype; 12] = [
    Dtype::F16,
    Dtype::BF16,
    Dtype::F32,
    Dtype::F32,
    Dtype::F64,
    Dtype::I32,
    Dtype::U8,
    Dtype::BOOL,
    Dtype::C64,
    Dtype::F4,
    Dtype::F6_E2M3,
    Dtype::F8_E4M3,
];

#[derive(Debug, Arbitrary)]
struct File {
    params: AnyParams,
    tensors: Vec<(Name, Tensor)>,
    metadata: HashMap<String, String>,
    patterns: Vec<Name>,
    damage: Damage,
}

/// A name or pattern: mostly of few letters, so that patterns match and names end in the suffix of scales.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Name(String);

impl<'a> Arbitrary<'a> for Name {
    fn arbitrary(u: &mut Unstructured<'a>) -> Result<Self> {
        const PARTS: [&str; 8] = ["a", "b", "*", "_scale", ".", "é", "\"", "__metadata__"];
        if u.ratio(1, 8)? {
            return u.arbitrary().map(Self);
        }
        let parts = u.int_in_range(0..=4)?;
        (0..parts).map(|_| u.choose(&PARTS).copied()).collect::<Result<String>>().map(Self)
    }
}

#[derive(Debug)]
struct Tensor {
    dtype: Dtype,
    shape: Vec<usize>,
    data: Vec<u8>,
}

impl<'a> Arbitrary<'a> for Tensor {
    fn arbitrary(u: &mut Unstructured<'a>) -> Result<Self> {
        let dtype = *u.choose(&DTYPES)?;
        let dimensions = if u.ratio(3, 4)? { 2 } else { u.int_in_range(0..=4)? };
        let mut shape = Vec::new();
        let mut bits = dtype.bitsize();
        for _ in 0..dimensions {
            let most = MAX_BYTES * 8 / bits.max(1);
            let size = u.int_in_range(0..=most.min(40))?;
            bits *= size;
            shape.push(size);
        }
        // The format knows whole bytes only.
        if !bits.is_multiple_of(8) {
            (shape, bits) = (vec![0, 4], 0);
        }
        let pattern: Vec<u8> = u.arbitrary()?;
        let data = pattern.into_iter().chain([0]).cycle().take(bits / 8).collect();
        Ok(Self { dtype, shape, data })
    }
}

/// What happens to an output.
#[derive(Debug, Arbitrary)]
enum Damage {
    Flip { at: u16, bits: u8 },
    Cut { bytes: u8 },
    Grow { bytes: u8 },
}

impl Damage {
    /// Whether it changed anything.
    fn apply(&self, bytes: &mut Vec<u8>) -> bool {
        let before = bytes.clone();
        match *self {
            Self::Flip { at, bits } => {
                let at = usize::from(at) % bytes.len();
                bytes[at] ^= bits;
            }
            Self::Cut { bytes: n } => bytes.truncate(bytes.len().saturating_sub(n.into())),
            Self::Grow { bytes: n } => bytes.extend(std::iter::repeat_n(0, n.into())),
        }
        *bytes != before
    }
}

/// Whether `pattern` matches all of `name`, by trying every length for a star.
fn matches(pattern: &str, name: &str) -> bool {
    match pattern.chars().next() {
        None => name.is_empty(),
        Some('*') => (0..=name.len()).any(|n| name.is_char_boundary(n) && matches(&pattern[1..], &name[n..])),
        Some(c) => name.starts_with(c) && matches(&pattern[c.len_utf8()..], &name[c.len_utf8()..]),
    }
}

/// Whether the program must quantize the file.
fn acceptable(tensors: &BTreeMap<Name, Tensor>, metadata: &HashMap<String, String>, patterns: &[String]) -> bool {
    let eligible = |tensor: &Tensor| element(tensor.dtype).is_some() && tensor.shape.len() == 2;
    let selected = |(name, tensor): &(&Name, &Tensor)| {
        eligible(tensor) && patterns.iter().any(|pattern| matches(pattern, &name.0))
    };
    !metadata.keys().any(|key| key.starts_with("ptq."))
        && !tensors.contains_key(&Name("__metadata__".to_owned()))
        && patterns.iter().all(|p| tensors.iter().any(|(name, tensor)| eligible(tensor) && matches(p, &name.0)))
        && tensors.iter().filter(selected).all(|(name, tensor)| {
            fits_contract(&tensor.shape) && !tensors.contains_key(&Name(format!("{}_scale", name.0)))
        })
}

/// The options that an output records.
fn options(output: &[u8]) -> BTreeMap<String, String> {
    let (_, header) = SafeTensors::read_metadata(output).expect("an output that verifies");
    let metadata = header.metadata().clone().unwrap_or_default();
    metadata.into_iter().filter(|(key, _)| key.starts_with("ptq.")).collect()
}

fuzz_target!(|file: File| {
    let File { params: AnyParams(params), tensors, metadata, patterns, damage } = file;
    let tensors: BTreeMap<_, _> = tensors.into_iter().take(8).collect();
    // Short ones: the matcher above takes exponential time.
    let mut patterns: Vec<_> = patterns.into_iter().map(|p| p.0).filter(|p| p.matches('*').count() < 4).collect();
    if patterns.is_empty() {
        patterns.push("*".to_owned());
    }
    let views = tensors.iter().map(|(name, tensor)| {
        let view = TensorView::new(tensor.dtype, tensor.shape.clone(), &tensor.data);
        (name.0.as_str(), view.expect("the data has the size of the shape"))
    });
    let bytes = safetensors::serialize(views, Some(metadata.clone())).expect("a file");

    let folder = Folder::new(&bytes);
    let result = folder.quantize(params, &patterns);
    assert_eq!(result.is_ok(), acceptable(&tensors, &metadata, &patterns), "{result:?}");
    if let Err(error) = result {
        assert!(
            matches!(
                error,
                Error::NotSafetensors { .. }
                    | Error::AlreadyQuantized { .. }
                    | Error::NothingMatches { .. }
                    | Error::NothingEligible { .. }
                    | Error::Shape { .. }
                    | Error::ScaleTaken { .. }
            ),
            "{error:?}"
        );
        return;
    }
    let before = fs::read(&folder.output).expect("the output is there");
    let mut output = before.clone();
    if damage.apply(&mut output) {
        fs::write(&folder.output, &output).expect("the output is replaced");
        // Other options are taken at their word, and may come to the same bytes.
        if matches!(folder.verify(), Ok(Outcome::Same(_))) {
            assert_ne!(options(&before), options(&output), "{damage:?} went unnoticed");
        }
    }
});
