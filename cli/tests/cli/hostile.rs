//! Damaged and hostile files: never a panic, never a signal, at most one line.

use crate::support::*;
use safetensors::Dtype;
use std::path::Path;
use std::process::Output;

/// Options with which no run looks for a device: it would cost more than all the rest.
const CPU: [&str; 3] = ["--backend=cpu", "--math=precise", "--sm-count=132"];

/// A small file with a bit of everything.
fn seed_file() -> Vec<u8> {
    let data = noise(11, 256);
    file(
        &[
            ("w", Dtype::F32, &[2, 4], &data[..32]),
            ("v", Dtype::BF16, &[3, 8], &data[32..80]),
            ("ids", Dtype::I32, &[3], &data[80..92]),
            ("n", Dtype::F16, &[0, 4], &[]),
        ],
        &[("k", "v")],
    )
}

#[track_caller]
fn survives(result: &Output, codes: &[i32], what: &str) {
    let err = text(&result.stderr);
    assert!(result.status.code().is_some_and(|code| codes.contains(&code)), "{what}: {:?} {err}", result.status);
    assert!(err.lines().count() <= 1 && !err.contains("panicked"), "{what}: {err}");
}

/// Quantizes `input`; what was accepted must also verify.
fn quantize(folder: &Folder, input: &[u8], what: &str) {
    let (path, output) = (folder.write("in", input), folder.path("out"));
    let result = run(&[&"quantize", &path, &output, &CPU[0], &CPU[1], &CPU[2]]);
    survives(&result, &[0, 2], what);
    assert_eq!(output.exists(), result.status.success(), "{what}");
    if output.exists() {
        survives(&run(&[&"verify", &path, &output]), &[0], what);
        std::fs::remove_file(&output).unwrap();
    }
    assert!(left_over(&folder.path("")), "{what}");
}

fn left_over(folder: &Path) -> bool {
    std::fs::read_dir(folder).unwrap().all(|entry| entry.unwrap().file_name() == "in")
}

#[test]
fn every_truncation() {
    let (folder, bytes) = (Folder::new(), seed_file());
    for length in 0..bytes.len() {
        quantize(&folder, &bytes[..length], &format!("cut to {length}"));
    }
}

#[test]
fn damaged_headers() {
    let (folder, good) = (Folder::new(), seed_file());
    let header = 8 + u64::from_le_bytes(good[..8].try_into().unwrap()) as usize;
    let dice = noise(12, 1 << 16);
    let mut dice = dice.chunks_exact(2).map(|pair| usize::from(u16::from_le_bytes([pair[0], pair[1]])));
    let mut next = || dice.next().expect("enough dice");
    let digits = b"0123456789{}[]\",:-\\ .eE\0\xff";
    for round in 0..400 {
        let mut bytes = good.clone();
        for _ in 0..1 + next() % 3 {
            let at = next() % header;
            match next() % 4 {
                0 => bytes[at] = next() as u8,
                1 => bytes[at] = digits[next() % digits.len()],
                2 => {
                    bytes.remove(at);
                }
                _ => bytes.insert(at, digits[next() % digits.len()]),
            }
            // Half of them keep a true length, so that the JSON is reached.
            if round % 2 == 0 {
                let length = header + bytes.len() - good.len() - 8;
                bytes[..8].copy_from_slice(&(length as u64).to_le_bytes());
            }
        }
        quantize(&folder, &bytes, &format!("round {round}"));
    }
}

#[test]
fn damaged_outputs() {
    let folder = Folder::new();
    let (input, output) = (folder.write("in", &seed_file()), folder.path("out"));
    succeed(&[&"quantize", &input, &output]);
    let good = read(&output);
    for length in (0..good.len()).step_by(3) {
        let bad = folder.write("bad", &good[..length]);
        survives(&run(&[&"verify", &input, &bad]), &[2], &format!("cut to {length}"));
    }
}

/// Tensors whose sizes add up to more than 2^64 bytes, and whose sum is the right one modulo 2^64.
#[test]
fn sizes_that_wrap() {
    const EIGHTH: u64 = u64::MAX / 8;
    let mut json = String::from("{");
    for i in 0..8 {
        let (start, end) = (i * EIGHTH, (i + 1) * EIGHTH);
        json += &format!("\"t{i}\":{{\"dtype\":\"U8\",\"shape\":[{EIGHTH}],\"data_offsets\":[{start},{end}]}},");
    }
    let (start, end) = (8 * EIGHTH, u64::MAX);
    json += &format!("\"z\":{{\"dtype\":\"U8\",\"shape\":[{}],\"data_offsets\":[{start},{end}]}}}}", end - start);
    let folder = Folder::new();
    for data in 0..16 {
        let bytes = [&(json.len() as u64).to_le_bytes()[..], json.as_bytes(), &noise(1, data)].concat();
        let (path, output) = (folder.write("in", &bytes), folder.path("out"));
        survives(&run(&[&"quantize", &path, &output]), &[2], "wrapping sizes");
    }
}

/// Without rows a tensor has no bytes, whatever the length of its rows.
#[test]
fn no_rows_of_any_length() {
    let folder = Folder::new();
    for hidden in [4, 1 << 40, 1 << 61, 1 << 62, (1 << 62) + 4, u64::MAX - 3] {
        for element in ["F16", "BF16", "F32"] {
            let json = format!("{{\"x\":{{\"dtype\":\"{element}\",\"shape\":[0,{hidden}],\"data_offsets\":[0,0]}}}}");
            let bytes = [&(json.len() as u64).to_le_bytes()[..], json.as_bytes()].concat();
            quantize(&folder, &bytes, &json);
        }
    }
}

/// Nesting that would overflow the stack of a parser without a limit.
#[test]
fn deep_nesting() {
    let folder = Folder::new();
    for open in ["[", "{\"a\":"] {
        let json = open.repeat(100_000);
        let bytes = [&(json.len() as u64).to_le_bytes()[..], json.as_bytes()].concat();
        quantize(&folder, &bytes, "deep nesting");
    }
}
