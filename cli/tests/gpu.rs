//! The program on a GPU: the same bytes as on the CPU, whatever the backend.
//!
//! Without a driver or a device every test is reported as ignored, with the reason; with `PTQ_REQUIRE_GPU=1` it fails.

mod support;

use libtest_mimic::{Arguments, Completion, Failed, Trial};
use per_token_quant_fp8::{Backend, DeviceInfo, Error, MathMode, TARGETS, probe};
use safetensors::{Dtype, SafeTensors};
use std::ffi::OsStr;
use std::path::Path;
use std::process::ExitCode;
use support::*;

type Test = fn(&DeviceInfo) -> Completion;

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    let required = std::env::var("PTQ_REQUIRE_GPU").is_ok_and(|v| !["", "0"].contains(&v.as_str()));
    let device =
        probe().map(|driver| driver.devices.into_iter().next().expect("a driver that is present has a device"));
    if let Err(reason) = &device {
        println!("no test can run: {reason}");
    }
    let tests: [(&str, Test); _] = [
        ("activations", activations),
        ("all_types_and_values", all_types_and_values),
        ("misaligned_tensors", misaligned_tensors),
        ("zero_rows", zero_rows),
        ("older_targets", older_targets),
        ("defaults_are_those_of_the_device", defaults_are_those_of_the_device),
        ("the_environment_chooses_the_backend", the_environment_chooses_the_backend),
        ("a_target_that_does_not_exist", a_target_that_does_not_exist),
        ("artifacts_that_are_not_there", artifacts_that_are_not_there),
        ("fast_math_is_refused_elsewhere", fast_math_is_refused_elsewhere),
        ("info_names_the_device", info_names_the_device),
    ];
    let trials = tests.map(|(name, test)| {
        let device = device.clone();
        Trial::ignorable_test(name, move || match device {
            Ok(device) => Ok(test(&device)),
            Err(Error::NoDriver { .. }) if !required => Ok(Completion::ignored_with("no CUDA driver")),
            Err(Error::NoDevice { .. }) if !required => Ok(Completion::ignored_with("no CUDA device")),
            Err(reason) => Err(Failed::from(reason)),
        })
    });
    libtest_mimic::run(&arguments, trials.into()).exit_code()
}

/// Math modes that are proved for the device.
fn modes(device: &DeviceInfo) -> impl Iterator<Item = MathMode> {
    let fast = device.math() == MathMode::Fast;
    MathMode::ALL.into_iter().filter(move |&math| fast || math == MathMode::Precise)
}

/// The output for `input`, and the backends that the table names.
#[track_caller]
fn quantize(folder: &Folder, input: &Path, backend: &str, options: &[&str]) -> (Vec<u8>, Vec<String>) {
    let output = folder.path("out");
    let mut args: Vec<&dyn AsRef<OsStr>> = vec![&"quantize", &input, &output, &"--backend", &backend];
    args.extend(options.iter().map(|option| option as &dyn AsRef<OsStr>));
    let printed = succeed(&args);
    // Name, [rows, hidden] in two words, backend.
    let rows = printed.lines().skip(2).filter(|line| line.contains('['));
    let backends = rows.map(|line| line.split_whitespace().nth(3).unwrap().to_owned());
    (read(&output), backends.collect())
}

/// Every backend gives the bytes of the CPU, and is the one that ran.
#[track_caller]
fn same_bytes(input: &[u8], options: &[&str]) {
    let folder = Folder::new();
    let input = folder.write("in", input);
    let (want, _) = quantize(&folder, &input, "cpu", options);
    for backend in Backend::ALL {
        let (got, ran) = quantize(&folder, &input, backend.name(), options);
        assert!(!ran.is_empty());
        for ran in ran {
            let asked = match backend {
                Backend::Auto => ran == "aot" || ran == "jit",
                _ => ran == backend.name(),
            };
            assert!(asked, "{backend} was asked for and {ran} ran");
        }
        if got != want {
            let first = run(&[&"verify", &input, &folder.path("out")]);
            panic!("{backend} {options:?} is not what the CPU gives: {}", text(&first.stderr));
        }
    }
}

#[track_caller]
fn same_bytes_in_every_mode(device: &DeviceInfo, input: &[u8]) {
    for math in modes(device) {
        same_bytes(input, &["--math", math.name(), "--sm-count", "132"]);
    }
}

fn activations(device: &DeviceInfo) -> Completion {
    same_bytes_in_every_mode(device, MINILM);
    Completion::Completed
}

fn all_types_and_values(device: &DeviceInfo) -> Completion {
    const SHAPES: [[usize; 2]; 8] =
        [[257, 4], [1, 8], [33, 12], [39, 1076], [7, 1368], [65, 4096], [3, 7168], [5, 20000]];
    let halves: Vec<u8> = (0..=u16::MAX).flat_map(u16::to_le_bytes).collect();
    let mut tensors = vec![("every_f16".to_owned(), Dtype::F16, [256, 256], halves.clone())];
    tensors.push(("every_bf16".to_owned(), Dtype::BF16, [16384, 4], halves));
    for (i, shape) in SHAPES.into_iter().enumerate() {
        for dtype in [Dtype::F16, Dtype::BF16, Dtype::F32] {
            let bytes = shape[0] * shape[1] * dtype.bitsize() / 8;
            let name = format!("{dtype}_{}x{}", shape[0], shape[1]);
            tensors.push((name, dtype, shape, noise(i as u64, bytes)));
        }
    }
    let tensors: Vec<_> =
        tensors.iter().map(|(name, dtype, shape, x)| (name.as_str(), *dtype, &shape[..], &x[..])).collect();
    same_bytes_in_every_mode(device, &file(&tensors, &[("k", "v")]));
    Completion::Completed
}

fn misaligned_tensors(device: &DeviceInfo) -> Completion {
    let json = br#"{"b":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"w":{"dtype":"F32","shape":[2,8],"data_offsets":[1,65]}}"#;
    let input = [&(json.len() as u64).to_le_bytes()[..], json, &noise(9, 65)].concat();
    same_bytes_in_every_mode(device, &input);
    Completion::Completed
}

/// Zeros, NaN and infinities, with every option that decides about them.
fn zero_rows(device: &DeviceInfo) -> Completion {
    const ROWS: usize = 64;
    const HIDDEN: usize = 72;
    let special = [0.0, -0.0, f32::NAN, f32::INFINITY, f32::from_bits(1), -f32::from_bits(0x04DF_FFFE)];
    let x: Vec<f32> = (0..ROWS * HIDDEN)
        .map(|i| match i / HIDDEN {
            row if row % 2 == 0 => special[(row / 2 + i * usize::from(row % 4 == 0)) % special.len()],
            _ => (i as f32).sin(),
        })
        .collect();
    let input = file(&[("x", Dtype::F32, &[ROWS, HIDDEN], bytemuck::cast_slice(&x))], &[]);
    for math in modes(device) {
        // The reference's threshold for 64 rows: 4 multiprocessors.
        for (zero_rows, dispatch, sm_count) in [
            ("legacy", "auto", "4"),
            ("legacy", "auto", "5"),
            ("legacy", "warp", "5"),
            ("legacy", "cta", "4"),
            ("guarded", "auto", "5"),
        ] {
            let math = ["--math", math.name()];
            let zero_rows = ["--zero-rows", zero_rows, "--dispatch", dispatch, "--sm-count", sm_count];
            same_bytes(&input, &[&math, &zero_rows[..]].concat());
        }
    }
    Completion::Completed
}

/// What other devices run, from PTX.
fn older_targets(device: &DeviceInfo) -> Completion {
    let folder = Folder::new();
    let input = folder.write("in", MINILM);
    let options = ["--math", "precise", "--sm-count", "132"];
    let (want, _) = quantize(&folder, &input, "cpu", &options);
    let output = folder.path("older");
    for target in TARGETS.iter().filter(|target| target.runs_ptx(device.capability)) {
        let result = program()
            .args([OsStr::new("quantize"), input.as_ref(), output.as_ref(), "--backend".as_ref(), "jit".as_ref()])
            .args(options)
            .env("PTQ_TARGET", target.name)
            .output()
            .unwrap();
        assert!(result.status.success(), "{target}: {}", text(&result.stderr));
        assert!(read(&output) == want, "{target}");
    }
    Completion::Completed
}

/// The device decides, also about what the CPU computes.
fn defaults_are_those_of_the_device(device: &DeviceInfo) -> Completion {
    let folder = Folder::new();
    let input = folder.write("in", MINILM);
    for backend in ["auto", "cpu"] {
        let (bytes, _) = quantize(&folder, &input, backend, &[]);
        let (_, header) = SafeTensors::read_metadata(&bytes).unwrap();
        let metadata = header.metadata().as_ref().unwrap();
        assert_eq!(metadata["ptq.math"], device.math().name());
        assert_eq!(metadata["ptq.sm_count"], device.sm_count.to_string());
    }
    Completion::Completed
}

/// `PTQ_BACKEND` says who computes where no argument does.
fn the_environment_chooses_the_backend(_: &DeviceInfo) -> Completion {
    let folder = Folder::new();
    let (input, output) = (folder.write("in", MINILM), folder.path("chosen"));
    let (want, _) = quantize(&folder, &input, "cpu", &[]);
    for backend in [Backend::Aot, Backend::Jit, Backend::Cpu] {
        let result = program()
            .args(["quantize".as_ref(), input.as_os_str(), output.as_os_str()])
            .env("PTQ_BACKEND", backend.name())
            .output()
            .unwrap();
        assert!(result.status.success(), "{backend}: {}", text(&result.stderr));
        let printed = text(&result.stdout);
        let ran = |line: &str| line.split_whitespace().nth(3) == Some(backend.name());
        assert!(printed.lines().skip(2).filter(|line| line.contains('[')).all(ran), "{backend}: {printed}");
        assert!(read(&output) == want, "{backend}");
    }
    Completion::Completed
}

/// One line with `words`, status 2, and no output, with that variable in the environment.
#[track_caller]
fn refused(variable: &str, value: &OsStr, words: &[&str]) -> Completion {
    let folder = Folder::new();
    let (input, output) = (folder.write("in", MINILM), folder.path("out"));
    let args = ["quantize".as_ref(), input.as_os_str(), output.as_os_str(), "--backend".as_ref(), "jit".as_ref()];
    let result = program().args(args).env(variable, value).output().unwrap();
    let err = text(&result.stderr);
    assert_eq!(result.status.code(), Some(2), "{err}");
    assert!(err.lines().count() == 1 && words.iter().all(|word| err.contains(word)), "{err}");
    assert!(!output.exists());
    Completion::Completed
}

fn a_target_that_does_not_exist(_: &DeviceInfo) -> Completion {
    refused("PTQ_TARGET", "sm_9".as_ref(), &["the GPU cannot be used", "no target is called `sm_9`"])
}

fn artifacts_that_are_not_there(_: &DeviceInfo) -> Completion {
    let artifacts = Folder::new();
    artifacts.write("per_token.f32.sm_80.precise.ptx", b".version 7.0");
    let dir = artifacts.path("");
    refused("PTQ_ARTIFACTS", dir.as_ref(), &["tensor `", "artifact per_token.bf16.", "PTQ_ARTIFACTS"])
}

fn fast_math_is_refused_elsewhere(device: &DeviceInfo) -> Completion {
    if device.math() == MathMode::Fast {
        return Completion::ignored_with("the device is of the one compute capability that has fast math");
    }
    let folder = Folder::new();
    let (input, output) = (folder.write("in", MINILM), folder.path("out"));
    let result = run(&[&"quantize", &input, &output, &"--math", &"fast"]);
    let err = text(&result.stderr);
    assert_eq!(result.status.code(), Some(2), "{err}");
    assert!(err.lines().count() == 1 && err.contains("fast"), "{err}");
    assert!(!output.exists());
    Completion::Completed
}

fn info_names_the_device(device: &DeviceInfo) -> Completion {
    let printed = succeed(&[&"info"]);
    for word in [&device.name, &device.capability.to_string(), &device.sm_count.to_string(), device.math().name()] {
        assert!(printed.contains(word), "no `{word}` in {printed}");
    }
    Completion::Completed
}
