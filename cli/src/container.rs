//! The safetensors container: a checked view of a file's bytes, and the header of a new one.
//!
//! The `safetensors` crate parses and checks the header's JSON. Two things are done here instead. The total length is
//! compared with checked arithmetic, because the crate's own sum (0.8.0, `SafeTensors::read_metadata`) can wrap for
//! offsets near 2^64. And headers are written in a fixed order, because the crate keeps metadata in a hash map and
//! writes it in another order on every run.

use safetensors::tensor::{Dtype, Metadata, TensorInfo};
use serde::ser::{Serialize, SerializeMap, Serializer};
use std::collections::BTreeMap;

/// Bytes of the header's length, a little-endian u64 at the start of the file.
const LENGTH_BYTES: usize = size_of::<u64>();

/// Longest header that readers accept: `MAX_HEADER_SIZE` of the `safetensors` crate.
pub const MAX_HEADER_BYTES: u64 = 100_000_000;

/// Key of the metadata among the tensors' names.
const METADATA_KEY: &str = "__metadata__";

/// Why bytes are not a safetensors file.
#[derive(Debug, thiserror::Error)]
pub enum Malformed {
    /// Too short for the length of the header.
    #[error("it has {actual} bytes, expected at least {expected}; it is empty or truncated")]
    TooShort {
        /// Bytes of the length.
        expected: usize,
        /// Bytes of the file.
        actual: usize,
    },
    /// The header would end behind the file, or is longer than readers accept.
    #[error("it claims a header of {actual} bytes, expected at most {expected}; it is truncated or of another format")]
    HeaderLength {
        /// Most that the file or the format has room for.
        expected: u64,
        /// What the file claims.
        actual: u64,
    },
    /// The header is not the JSON it must be, or its offsets do not tile the data.
    #[error("its header is wrong: {0}")]
    Header(serde_json::Error),
    /// The data is shorter or longer than the header says.
    #[error("it has {actual} bytes of data, expected {expected} by its header; it is truncated or was changed")]
    DataLength {
        /// Bytes the header describes.
        expected: u64,
        /// Bytes that follow the header.
        actual: u64,
    },
}

/// One tensor of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tensor<'a> {
    /// Element type.
    pub dtype: Dtype,
    /// Size of each dimension, in elements.
    pub shape: Vec<usize>,
    /// Elements in row-major order, little-endian; at any address.
    pub data: &'a [u8],
}

/// A whole file, checked: every tensor's bytes fit its type and shape, and the tensors tile the data.
#[derive(Debug)]
pub struct Container<'a> {
    /// Length and JSON, as they are in the file.
    pub header: &'a [u8],
    /// Free-form strings.
    pub metadata: BTreeMap<String, String>,
    /// Tensors by name.
    pub tensors: BTreeMap<String, Tensor<'a>>,
}

impl<'a> Container<'a> {
    /// Checks `bytes`, a whole file.
    ///
    /// # Errors
    /// [`Malformed`].
    pub fn parse(bytes: &'a [u8]) -> Result<Self, Malformed> {
        let Some((length, rest)) = bytes.split_first_chunk::<LENGTH_BYTES>() else {
            return Err(Malformed::TooShort { expected: LENGTH_BYTES, actual: bytes.len() });
        };
        let room = MAX_HEADER_BYTES.min(rest.len() as u64);
        let length = u64::from_le_bytes(*length);
        if length > room {
            return Err(Malformed::HeaderLength { expected: room, actual: length });
        }
        // At most `rest.len()`, a usize.
        let (json, data) = rest.split_at(length as usize);
        let parsed: Metadata = serde_json::from_slice(json).map_err(Malformed::Header)?;
        if parsed.data_len() != data.len() {
            return Err(Malformed::DataLength { expected: parsed.data_len() as u64, actual: data.len() as u64 });
        }
        let tensors = parsed.tensors().into_iter().map(|(name, info)| {
            let (start, end) = info.data_offsets;
            (name, Tensor { dtype: info.dtype, shape: info.shape.clone(), data: &data[start..end] })
        });
        Ok(Self {
            header: &bytes[..bytes.len() - data.len()],
            metadata: parsed.metadata().clone().unwrap_or_default().into_iter().collect(),
            tensors: tensors.collect(),
        })
    }
}

/// Length and JSON of a file that holds `metadata` and `tensors`, in this order; the same input gives the same bytes.
///
/// The JSON is padded with spaces so that the data starts at a multiple of 8 bytes, as the crate does.
pub fn encode_header(metadata: &BTreeMap<String, String>, tensors: &[(String, TensorInfo)]) -> Vec<u8> {
    let mut bytes = vec![0; LENGTH_BYTES];
    serde_json::to_writer(&mut bytes, &Header { metadata, tensors }).expect("strings and integers go into a Vec");
    bytes.resize(bytes.len().next_multiple_of(LENGTH_BYTES), b' ');
    let length = (bytes.len() - LENGTH_BYTES) as u64;
    bytes[..LENGTH_BYTES].copy_from_slice(&length.to_le_bytes());
    bytes
}

struct Header<'a> {
    metadata: &'a BTreeMap<String, String>,
    tensors: &'a [(String, TensorInfo)],
}

impl Serialize for Header<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(1 + self.tensors.len()))?;
        map.serialize_entry(METADATA_KEY, self.metadata)?;
        for (name, info) in self.tensors {
            map.serialize_entry(name, info)?;
        }
        map.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use safetensors::SafeTensors;

    fn file(json: &str, data: &[u8]) -> Vec<u8> {
        [&(json.len() as u64).to_le_bytes(), json.as_bytes(), data].concat()
    }

    #[test]
    fn too_short() {
        for length in 0..LENGTH_BYTES {
            let bytes = vec![0; length];
            assert!(matches!(Container::parse(&bytes), Err(Malformed::TooShort { actual, .. }) if actual == length));
        }
    }

    #[test]
    fn header_longer_than_the_file_or_the_format() {
        for length in [3, 1 << 20, 1 << 40, u64::MAX] {
            let bytes = [&length.to_le_bytes()[..], b"{}"].concat();
            assert!(matches!(
                Container::parse(&bytes),
                Err(Malformed::HeaderLength { expected: 2, actual }) if actual == length
            ));
        }
        let mut long = vec![b' '; MAX_HEADER_BYTES as usize + 16];
        long[..8].copy_from_slice(&(MAX_HEADER_BYTES + 1).to_le_bytes());
        assert!(matches!(Container::parse(&long), Err(Malformed::HeaderLength { expected: MAX_HEADER_BYTES, .. })));
    }

    #[test]
    fn wrong_headers() {
        for json in [
            "",
            "[]",
            "{",
            "{} {}",
            "{\"a\":{}}",
            "{\"a\":{\"dtype\":\"F99\",\"shape\":[1],\"data_offsets\":[0,4]}}",
            "{\"a\":{\"dtype\":\"F32\",\"shape\":[-1],\"data_offsets\":[0,4]}}",
            // Reversed, overlapping, with a hole, of another size than shape and type.
            "{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4,0]}}",
            "{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]},\"b\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[2,6]}}",
            "{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4,8]}}",
            "{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,4]}}",
            "{\"a\":{\"dtype\":\"F32\",\"shape\":[4294967296,4294967296,16],\"data_offsets\":[0,4]}}",
            "{\"__metadata__\":{\"a\":1}}",
            "{\"__metadata__\":{},\"__metadata__\":{}}",
        ] {
            assert!(matches!(Container::parse(&file(json, &[0; 8])), Err(Malformed::Header(_))), "{json}");
        }
    }

    #[test]
    fn invalid_utf8_is_a_wrong_header() {
        let mut bytes = file("{\"a\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0]}}", &[]);
        bytes[10] = 0xFF;
        assert!(matches!(Container::parse(&bytes), Err(Malformed::Header(_))));
    }

    #[test]
    fn data_of_another_length() {
        let json = "{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}";
        for (data, wrong) in [(3, true), (4, false), (5, true)] {
            let bytes = file(json, &vec![0; data]);
            let parsed = Container::parse(&bytes);
            assert_eq!(matches!(parsed, Err(Malformed::DataLength { expected: 4, .. })), wrong);
            assert_eq!(parsed.is_ok(), !wrong);
        }
    }

    /// Offsets that the crate's own sum takes for the file's length once it wraps around.
    #[test]
    fn offsets_that_wrap_to_the_length_of_the_file() {
        const EIGHTH: u64 = u64::MAX / 8;
        let mut json = String::from("{");
        let mut start = 0u64;
        // Eight tensors of the largest allowed size, and one that ends where the sum wraps to the right value.
        for i in 0..8 {
            json += &format!(
                "\"t{i}\":{{\"dtype\":\"U8\",\"shape\":[{EIGHTH}],\"data_offsets\":[{start},{}]}},",
                start + EIGHTH
            );
            start += EIGHTH;
        }
        for padding in 0..64 {
            // The length of the file, 8 + header, less the header and its length, modulo 2^64: 0.
            let rest = u64::MAX - start;
            let closed = format!(
                "{json}\"z\":{{\"dtype\":\"U8\",\"shape\":[{rest}],\"data_offsets\":[{start},{}]}}{}}}",
                u64::MAX,
                " ".repeat(padding)
            );
            assert!(matches!(
                Container::parse(&file(&closed, &vec![0; padding])),
                Err(Malformed::DataLength { expected: u64::MAX, .. })
            ));
        }
    }

    #[test]
    fn headers_are_read_back_by_the_crate() {
        let metadata: BTreeMap<_, _> =
            ["z", "a", "\"quoted\"", "é\n"].iter().map(|&key| (key.to_owned(), format!("{key} value"))).collect();
        let info = |dtype, shape: &[usize], data_offsets| TensorInfo { dtype, shape: shape.to_vec(), data_offsets };
        let tensors = [
            ("scale".to_owned(), info(Dtype::F32, &[2, 1], (0, 8))),
            ("codes \\ \"".to_owned(), info(Dtype::F8_E4M3, &[2, 4], (8, 16))),
            ("empty".to_owned(), info(Dtype::BOOL, &[0, 3], (16, 16))),
        ];
        let data: Vec<u8> = (0..16).collect();
        let header = encode_header(&metadata, &tensors);
        assert_eq!(header.len() % 8, 0);
        let bytes = [&header[..], &data].concat();

        let (_, parsed) = SafeTensors::read_metadata(&bytes).unwrap();
        assert_eq!(parsed.metadata().as_ref().unwrap().iter().collect::<BTreeMap<_, _>>(), metadata.iter().collect());
        let crate_view = SafeTensors::deserialize(&bytes).unwrap();
        let ours = Container::parse(&bytes).unwrap();
        assert_eq!((ours.metadata, ours.header), (metadata, &header[..]));
        assert_eq!(ours.tensors.len(), crate_view.len());
        for (name, tensor) in &ours.tensors {
            let view = crate_view.tensor(name).unwrap();
            assert_eq!((view.dtype(), view.shape(), view.data()), (tensor.dtype, &tensor.shape[..], tensor.data));
        }
    }
}
