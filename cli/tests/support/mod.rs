//! What every test of the program needs: the program, a folder, input files.

use safetensors::tensor::{Dtype, TensorView, serialize};
use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Activations of a small language model, 9 bf16 tensors.
pub const MINILM: &[u8] = include_bytes!("../../../examples/data/minilm_activations.safetensors");

/// The program under test: `PTQ_BIN`, else the one cargo built. Tests choose target and backend themselves.
pub fn program() -> Command {
    let mut program =
        Command::new(std::env::var_os("PTQ_BIN").unwrap_or_else(|| env!("CARGO_BIN_EXE_quant-fp8").into()));
    program.env_remove("PTQ_TARGET").env_remove("PTQ_BACKEND");
    program
}

/// Runs the program.
pub fn run(args: &[&dyn AsRef<OsStr>]) -> Output {
    program().args(args).output().expect("the program starts")
}

/// Runs the program and expects success without a word on stderr. Returns stdout.
#[track_caller]
pub fn succeed(args: &[&dyn AsRef<OsStr>]) -> String {
    let output = run(args);
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    assert_eq!((output.status.code(), err.as_str()), (Some(0), ""), "{out}");
    out
}

/// Text of an output.
pub fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("the program writes UTF-8")
}

/// A folder of one test's files, removed with it.
pub struct Folder(tempfile::TempDir);

impl Folder {
    /// A new, empty folder.
    pub fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    /// The path of a file in it.
    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Writes a file.
    pub fn write(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.path(name);
        fs::write(&path, bytes).unwrap();
        path
    }
}

/// A safetensors file as the `safetensors` crate writes it. Tensors: name, type, shape, bytes.
pub fn file(tensors: &[(&str, Dtype, &[usize], &[u8])], metadata: &[(&str, &str)]) -> Vec<u8> {
    let views = tensors.iter().map(|&(name, dtype, shape, data)| {
        (name, TensorView::new(dtype, shape.to_vec(), data).expect("a valid tensor"))
    });
    let metadata: HashMap<_, _> = metadata.iter().map(|&(k, v)| (k.to_owned(), v.to_owned())).collect();
    serialize(views, (!metadata.is_empty()).then_some(metadata)).unwrap()
}

/// Bytes that look random and are the same on every run (xorshift64*).
pub fn noise(seed: u64, bytes: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let words = std::iter::repeat_with(|| {
        state ^= state >> 12;
        state ^= state << 25;
        state ^= state >> 27;
        state.wrapping_mul(0x2545_F491_4F6C_DD1D).to_le_bytes()
    });
    words.flatten().take(bytes).collect()
}

/// The file at `path`.
#[track_caller]
pub fn read(path: &Path) -> Vec<u8> {
    fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}
