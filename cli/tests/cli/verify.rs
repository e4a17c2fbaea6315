//! `verify`: every byte counts, and the first difference is named.

use crate::support::*;
use safetensors::tensor::{Dtype, TensorView};
use safetensors::{SafeTensors, serialize};
use std::path::{Path, PathBuf};

/// Two quantized tensors and some that are copied, and their file.
struct Pair {
    folder: Folder,
    input: PathBuf,
    good: Vec<u8>,
}

impl Pair {
    fn new() -> Self {
        let data = noise(7, 1024);
        let input = file(
            &[
                ("a.w", Dtype::F32, &[5, 8], &data[..160]),
                ("b.w", Dtype::BF16, &[3, 12], &data[160..232]),
                ("c.ids", Dtype::I64, &[2, 3], &data[300..348]),
                ("d.deep", Dtype::F16, &[2, 3, 4], &data[400..448]),
                ("e.four", Dtype::F4, &[2, 8], &data[500..508]),
                ("f.scalar", Dtype::F64, &[], &data[600..608]),
            ],
            &[("format", "pt")],
        );
        let folder = Folder::new();
        let (input, output) = (folder.write("in", &input), folder.path("out"));
        succeed(&[&"quantize", &input, &output, &"--math", &"precise", &"--backend", &"cpu", &"--sm-count", &"132"]);
        let good = read(&output);
        Self { folder, input, good }
    }

    /// Where the bytes of a tensor start in the file.
    fn start(&self, tensor: &str) -> usize {
        let (header, parsed) = SafeTensors::read_metadata(&self.good).unwrap();
        8 + header + parsed.info(tensor).unwrap().data_offsets.0
    }

    /// Verifies `bytes` and expects one line of difference. Returns it.
    #[track_caller]
    fn differs(&self, bytes: &[u8]) -> String {
        let output = self.folder.write("bad", bytes);
        let result = run(&[&"verify", &self.input, &output]);
        let (out, err) = (text(&result.stdout), text(&result.stderr));
        assert_eq!((result.status.code(), out.as_str()), (Some(1), ""), "{err}");
        assert!(err.starts_with("quant-fp8: ") && err.lines().count() == 1, "{err}");
        assert!(err.contains("bad differs: "), "{err}");
        err
    }

    /// As `differs`, with bit 4 of byte `byte` of `tensor` flipped.
    #[track_caller]
    fn flipped(&self, tensor: &str, byte: usize) -> String {
        let mut bytes = self.good.clone();
        bytes[self.start(tensor) + byte] ^= 0x10;
        self.differs(&bytes)
    }
}

fn hex(bytes: &[u8]) -> String {
    let digits: String = bytes.iter().rev().map(|byte| format!("{byte:02x}")).collect();
    format!("0x{digits}")
}

#[test]
fn one_flipped_bit_is_named() {
    let pair = Pair::new();
    let value = |tensor: &str, at: usize, width: usize| {
        let good = &pair.good[pair.start(tensor) + at / width * width..][..width];
        let mut bad = good.to_vec();
        bad[at % width] ^= 0x10;
        format!("is {}, expected {}", hex(&bad), hex(good))
    };
    for (tensor, byte, width, place) in [
        ("a.w", 0, 1, "row 0, column 0"),
        ("a.w", 39, 1, "row 4, column 7"),
        ("b.w", 13, 1, "row 1, column 1"),
        ("a.w_scale", 0, 4, "row 0, column 0"),
        ("a.w_scale", 19, 4, "row 4, column 0"),
        ("b.w_scale", 6, 4, "row 1, column 0"),
        ("c.ids", 41, 8, "row 1, column 2"),
        ("d.deep", 47, 2, "element [1, 2, 3]"),
        ("e.four", 5, 1, "byte 5"),
        ("f.scalar", 7, 8, "element []"),
    ] {
        let line = pair.flipped(tensor, byte);
        let want = format!("tensor `{tensor}`, {place} {}", value(tensor, byte, width));
        assert!(line.contains(&want), "no `{want}` in {line}");
    }
}

/// No byte of a file is free to change, but for an option on which this file does not depend.
#[test]
fn every_byte_counts() {
    let pair = Pair::new();
    let sm_count = br#""ptq.sm_count":"132""#;
    let at = pair.good.windows(sm_count.len()).position(|bytes| bytes == sm_count).unwrap();
    let digits = at + sm_count.len() - 4..at + sm_count.len() - 1;
    let data = 8 + SafeTensors::read_metadata(&pair.good).unwrap().0;
    let output = pair.folder.path("bad");
    for byte in 0..pair.good.len() {
        let mut bytes = pair.good.clone();
        bytes[byte] ^= 0x04;
        std::fs::write(&output, &bytes).unwrap();
        let result = run(&[&"verify", &pair.input, &output]);
        let err = text(&result.stderr);
        let (codes, lines): (&[i32], usize) = match byte {
            _ if digits.contains(&byte) => (&[0], 0),
            // The header can no longer be read, or says something else.
            _ if byte < data => (&[1, 2], 1),
            _ => (&[1], 1),
        };
        assert!(result.status.code().is_some_and(|code| codes.contains(&code)), "byte {byte}: {err}");
        assert_eq!(err.lines().count(), lines, "byte {byte}: {err}");
    }
}

#[test]
fn the_first_difference_is_named() {
    let pair = Pair::new();
    let mut bytes = pair.good.clone();
    for (tensor, byte) in [("c.ids", 0), ("b.w", 9), ("b.w", 7), ("d.deep", 1)] {
        bytes[pair.start(tensor) + byte] ^= 1;
    }
    assert!(pair.differs(&bytes).contains("tensor `b.w`, row 0, column 7 is"));
}

#[test]
fn a_rewritten_header_is_a_difference() {
    let pair = Pair::new();
    let (header, _) = SafeTensors::read_metadata(&pair.good).unwrap();
    // Eight more spaces say the same.
    let longer =
        [&(header as u64 + 8).to_le_bytes()[..], &pair.good[8..8 + header], b"        ", &pair.good[8 + header..]]
            .concat();
    assert!(pair.differs(&longer).contains("byte 0 of the header is"));
}

#[test]
fn missing_extra_and_changed_tensors() {
    let pair = Pair::new();
    let (_, header) = SafeTensors::read_metadata(&pair.good).unwrap();
    let metadata = header.metadata().clone();
    let parsed = SafeTensors::deserialize(&pair.good).unwrap();
    let without = |name: &str| {
        let views = parsed.tensors().into_iter().filter(|(n, _)| n != name).collect::<Vec<_>>();
        assert_eq!(views.len() + 1, parsed.len());
        views
    };
    for name in ["a.w", "a.w_scale", "f.scalar"] {
        let bytes = serialize(without(name), metadata.clone()).unwrap();
        assert!(pair.differs(&bytes).contains(&format!("tensor `{name}` is missing")));
    }

    let mut more = parsed.tensors();
    more.push(("z".to_owned(), TensorView::new(Dtype::U8, vec![1], &[0]).unwrap()));
    assert!(pair.differs(&serialize(more, metadata.clone()).unwrap()).contains("tensor `z` should not be there"));

    let ids = parsed.tensor("c.ids").unwrap();
    for (dtype, shape) in [(Dtype::U64, vec![2, 3]), (Dtype::I64, vec![3, 2])] {
        let mut changed = without("c.ids");
        changed.push(("c.ids".to_owned(), TensorView::new(dtype, shape.clone(), ids.data()).unwrap()));
        let line = pair.differs(&serialize(changed, metadata.clone()).unwrap());
        assert!(line.contains(&format!("tensor `c.ids` is {dtype} {shape:?}, expected I64 [2, 3]")), "{line}");
    }
}

#[test]
fn changed_metadata() {
    let pair = Pair::new();
    let (_, header) = SafeTensors::read_metadata(&pair.good).unwrap();
    let parsed = SafeTensors::deserialize(&pair.good).unwrap();
    let good = header.metadata().clone().unwrap();
    let differs = |metadata| pair.differs(&serialize(parsed.tensors(), Some(metadata)).unwrap());

    let mut metadata = good.clone();
    metadata.insert("format".to_owned(), "np".to_owned());
    assert!(differs(metadata).contains("metadata `format` is `np`, expected `pt`"));
    let mut metadata = good.clone();
    metadata.remove("format");
    assert!(differs(metadata).contains("metadata `format` is absent, expected `pt`"));
    let mut metadata = good.clone();
    metadata.insert("new".to_owned(), "x".to_owned());
    assert!(differs(metadata).contains("metadata `new` is `x`, expected absent"));
    // The record is taken at its word: with another mode other bytes are expected.
    let mut metadata = good.clone();
    metadata.insert("ptq.math".to_owned(), "fast".to_owned());
    let bytes = serialize(parsed.tensors(), Some(metadata)).unwrap();
    let output = pair.folder.write("bad", &bytes);
    assert_eq!(run(&[&"verify", &pair.input, &output]).status.code(), Some(1));
}

#[test]
fn an_input_that_changed_is_a_difference() {
    let pair = Pair::new();
    let mut input = read(&pair.input);
    let last = input.len() - 1;
    input[last] ^= 1;
    std::fs::write(&pair.input, input).unwrap();
    pair.differs(&pair.good);
}

/// Verifying changes nothing.
#[test]
fn both_files_stay_as_they_are() {
    let pair = Pair::new();
    let original = read(&pair.input);
    let output = pair.folder.write("bad", &pair.good);
    succeed(&[&"verify", &pair.input, &output]);
    let files = |path: &Path| std::fs::read_dir(path).unwrap().count();
    assert_eq!((read(&pair.input), read(&output), files(&pair.folder.path(""))), (original, pair.good.clone(), 3));
}
