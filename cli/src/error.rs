//! What can keep a command from doing its work: one variant per cause, each a single line that says what to do.

use crate::backend::ComputeError;
use crate::container::Malformed;
use crate::gpu;
use per_token_quant_fp8::ShapeError;
use std::io;
use std::path::PathBuf;

/// A command did not do its work.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The command line is wrong.
    #[error("{0} (see `quant-fp8 --help`)")]
    Arguments(String),
    /// The environment says what nobody understands.
    #[error("{0}; unset the variable, or correct it")]
    Environment(per_token_quant_fp8::Error),
    /// A file cannot be opened, looked at or mapped.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A path leads to a folder, a pipe or a device.
    #[error("{} is not a regular file; name a file on disk", path.display())]
    NotRegular {
        /// The path.
        path: PathBuf,
    },
    /// A file's bytes are not what the format allows.
    #[error("{} is not a valid safetensors file: {reason}", path.display())]
    NotSafetensors {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        reason: Malformed,
    },
    /// Input and output are one file.
    #[error("{} and {} are the same file; write the output to another one", input.display(), output.display())]
    SameFile {
        /// Input as given.
        input: PathBuf,
        /// Output as given.
        output: PathBuf,
    },
    /// A pattern matches no tensor's name.
    #[error(
        "`--select {pattern}` matches none of the {tensors} tensors; in a pattern only `*` stands for other characters"
    )]
    NothingMatches {
        /// The pattern.
        pattern: String,
        /// Tensors in the file.
        tensors: usize,
    },
    /// A pattern matches names, but no tensor that can be quantized.
    #[error(
        "`--select {pattern}` matches no tensor that can be quantized, expected two dimensions of F16, BF16 or F32; \
         `{tensor}` is {dtype} {shape:?}"
    )]
    NothingEligible {
        /// The pattern.
        pattern: String,
        /// First tensor it matches.
        tensor: String,
        /// That tensor's type.
        dtype: String,
        /// That tensor's shape.
        shape: Vec<usize>,
    },
    /// A selected tensor has a shape that cannot be quantized.
    #[error("tensor `{tensor}`: {source}, or leave it out with --select")]
    Shape {
        /// The tensor.
        tensor: String,
        /// The precondition it does not meet.
        source: ShapeError,
    },
    /// The name of a scale tensor is in use.
    #[error(
        "tensor `{tensor}` would get its scales in `{scale}`, which the input already holds; \
         rename that tensor or leave `{tensor}` out with --select"
    )]
    ScaleTaken {
        /// The selected tensor.
        tensor: String,
        /// The name in use.
        scale: String,
    },
    /// The input's metadata already holds a record of this program.
    #[error("the input's metadata already holds `{key}`: it was quantized before; start from the original file")]
    AlreadyQuantized {
        /// First such key.
        key: String,
    },
    /// The output's header would be longer than readers accept.
    #[error("the output's header would have {actual} bytes, expected at most {expected}; select fewer tensors")]
    HeaderTooLarge {
        /// Most that readers accept.
        expected: u64,
        /// Bytes the header needs.
        actual: u64,
    },
    /// The output cannot be written.
    #[error("cannot write {}: {source}", path.display())]
    Write {
        /// The output.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Signals cannot be watched, so an interrupted run would leave a file behind.
    #[error("cannot watch for signals: {0}")]
    Signals(io::Error),
    /// stdout does not take the report.
    #[error("cannot print the report: {0}")]
    Report(io::Error),
    /// The output to verify has no record of how it was made.
    #[error("{} has no `{key}` in its metadata, so how it was made is unknown; name a file that `quantize` wrote", path.display())]
    NoRecord {
        /// The file.
        path: PathBuf,
        /// The missing key.
        key: &'static str,
    },
    /// The record of how the output was made cannot be understood.
    #[error("{}: `{key}` in its metadata is `{actual}`, expected {expected}", path.display())]
    BadRecord {
        /// The file.
        path: PathBuf,
        /// The key.
        key: &'static str,
        /// What the key may hold.
        expected: &'static str,
        /// What it holds.
        actual: String,
    },
    /// A GPU is asked for and there is none.
    #[error("backend {backend} needs a GPU: {absence} (--backend cpu)")]
    NoDevice {
        /// What was asked for.
        backend: &'static str,
        /// What is missing.
        absence: per_token_quant_fp8::Error,
    },
    /// There is a GPU, and it cannot be used.
    #[error("the GPU cannot be used: {source}; `--backend cpu`, with --math and --sm-count given, does without it")]
    Gpu {
        /// Why.
        source: gpu::Error,
    },
    /// A tensor was not computed.
    #[error("tensor `{tensor}`: {source}")]
    Compute {
        /// The tensor.
        tensor: String,
        /// Why.
        source: ComputeError,
    },
}
