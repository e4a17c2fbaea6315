//! Programs in C, linked with either library, on the CPU.

mod library;

use ptq_cpu::{Input, per_tensor};
use ptq_fp8::{PtqDispatch, PtqDtype, PtqGranularity, PtqMath, PtqZeroRows};
use ptq_suite::{Budget, Buffer, Case, Family, Implementation, Oracle, Tensor, check, cpu};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What a program links with.
const LIBRARIES: [&str; 2] = ["libptq_fp8.so", "libptq_fp8.a"];

/// What the static library needs of the system: `rustc --print native-static-libs`, less the driver, which is opened when
/// it is first used.
const SYSTEM: [&str; 5] = ["-lgcc_s", "-lpthread", "-lm", "-ldl", "-lc"];

/// The reference's own cases: its bytes as recorded, for every element type, hidden and dispatch; rounding midpoints; zero
/// rows; padded outputs.
const FAMILIES: [&str; 4] = ["golden", "midpoints", "zero_scales", "padded"];

/// Compiles `source` against the header and links it with a library; the program is in `dir`.
fn compile(dir: &Path, source: &Path, library: &str) -> PathBuf {
    let program = dir.join(format!("{}-{library}", source.file_stem().unwrap().display()));
    let library = library::built(library);
    let status = Command::new("cc")
        .args(["-std=c11", "-D_POSIX_C_SOURCE=200809L", "-Wall", "-Wextra", "-Werror", "-O1", "-o"])
        .arg(&program)
        .arg("-I")
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("include"))
        .arg(source)
        .arg(&library)
        .arg(format!("-Wl,-rpath,{}", library.parent().unwrap().display()))
        .args(SYSTEM)
        .status()
        .expect("a C compiler, cc");
    assert!(status.success(), "cc failed on {}", source.display());
    program
}

/// Runs a program with each library and returns what it printed.
fn run(source: &Path, arguments: &[&Path]) -> Vec<String> {
    let dir = tempfile::tempdir().unwrap();
    let programs = LIBRARIES.map(|library| compile(dir.path(), source, library));
    let outputs = programs.map(|program| {
        let output = Command::new(&program).args(arguments).output().unwrap();
        let words = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{}: {}\n{words}", program.display(), output.status);
        String::from_utf8(output.stdout).unwrap()
    });
    outputs.into()
}

fn source(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/c").join(name)
}

/// A call of a case and what it must write, as `conformance.c` reads it.
fn record(case: &Case, granularity: PtqGranularity, into: &mut Vec<u8>) {
    let mut want = case.output();
    let scales = match granularity {
        PtqGranularity::PerToken => {
            // Where bytes were recorded, the oracle gives them.
            check(&cpu::Scalar, Oracle::Scalar, case).unwrap();
            cpu::Scalar.quantize(case, &mut want).unwrap();
            want.s.operand().to_vec()
        }
        _ => vec![match &*case.x {
            Tensor::F16(x) => one_scale(x, case, granularity, want.q.operand_mut()),
            Tensor::Bf16(x) => one_scale(x, case, granularity, want.q.operand_mut()),
            Tensor::F32(x) => one_scale(x, case, granularity, want.q.operand_mut()),
        }],
    };
    let dtype = match &*case.x {
        Tensor::F16(_) => PtqDtype::F16,
        Tensor::Bf16(_) => PtqDtype::Bf16,
        Tensor::F32(_) => PtqDtype::F32,
    };
    let math = match case.params.math {
        ptq_spec::MathMode::Fast => PtqMath::Fast,
        ptq_spec::MathMode::Precise => PtqMath::Precise,
    };
    let zero_rows = match case.params.options.zero_rows {
        ptq_spec::ZeroRows::Legacy => PtqZeroRows::Legacy,
        ptq_spec::ZeroRows::Guarded => PtqZeroRows::Guarded,
    };
    let dispatch = match case.params.options.dispatch {
        ptq_spec::Dispatch::Auto => PtqDispatch::Auto,
        ptq_spec::Dispatch::Warp => PtqDispatch::Warp,
        ptq_spec::Dispatch::Cta => PtqDispatch::Cta,
    };
    let name = format!("{}, {granularity:?}", case.name);
    let numbers = [dtype as u32, math as u32, zero_rows as u32, dispatch as u32, case.params.sm_count];
    for number in numbers.into_iter().chain([granularity as u32, name.len() as u32]) {
        into.extend(number.to_le_bytes());
    }
    for number in [case.shape.rows(), case.shape.hidden(), case.shape.rows_out()] {
        into.extend(number.to_le_bytes());
    }
    into.extend(name.bytes());
    match &*case.x {
        Tensor::F16(x) => bytes(x, |x| x.to_le_bytes(), into),
        Tensor::Bf16(x) => bytes(x, |x| x.to_le_bytes(), into),
        Tensor::F32(x) => bytes(x, f32::to_le_bytes, into),
    }
    into.extend(want.q.operand());
    into.extend(scales.into_iter().flat_map(f32::to_le_bytes));
}

/// Quantizes a case with one scale, by the scalar implementation, and returns the scale.
fn one_scale<T: Input>(x: &Buffer<T>, case: &Case, granularity: PtqGranularity, q: &mut [u8]) -> f32 {
    let x = x.operand();
    let (math, zero_rows) = (case.params.math, case.params.options.zero_rows);
    let q = &mut q[..x.len()];
    let mut s = 0.37;
    let done = match granularity {
        PtqGranularity::Static => per_tensor::scalar::quantize_static(x, q, s, math, zero_rows),
        _ => per_tensor::scalar::quantize_dynamic(x, q, &mut s, math, zero_rows),
    };
    done.unwrap();
    s
}

fn bytes<T: Copy, const N: usize>(operand: &Buffer<T>, of: impl Fn(T) -> [u8; N], into: &mut Vec<u8>) {
    into.extend(operand.operand().iter().flat_map(|&element| of(element)));
}

#[test]
fn c_gives_the_bytes_of_the_reference() {
    let budget = Budget { rows: 128, elements: 1 << 17 };
    let mut calls = Vec::new();
    let mut cases = 0;
    for family in FAMILIES {
        let before = cases;
        for case in Family::named(family).unwrap().cases(budget) {
            record(&case, PtqGranularity::PerToken, &mut calls);
            record(&case, PtqGranularity::PerTensor, &mut calls);
            record(&case, PtqGranularity::Static, &mut calls);
            cases += 1;
        }
        assert!(cases > before, "{family} has no case");
    }
    let file = tempfile::NamedTempFile::new().unwrap();
    fs::write(file.path(), calls).unwrap();
    for output in run(&source("conformance.c"), &[file.path()]) {
        // Per-token calls go through both entries.
        assert_eq!(output, format!("{} calls, 0 failures\n", 4 * cases));
    }
}

#[test]
fn c_bad_input_is_an_error_and_nothing_is_written() {
    for output in run(&source("bad_input.c"), &[]) {
        assert!(output.ends_with(" checks, 0 failures\n") && !output.starts_with("0 "), "{output}");
    }
}

/// The program in `README.md`.
#[test]
fn c_example_of_the_readme_runs() {
    let readme = include_str!("../README.md");
    let (_, after) = readme.split_once("```c\n").unwrap();
    let (program, _) = after.split_once("```").unwrap();
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("example.c");
    fs::write(&path, program).unwrap();
    for output in run(&path, &[]) {
        assert_eq!(output, "7e f6 00 6e, scale 0.015625\n");
    }
}
