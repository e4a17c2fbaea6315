//! `quantize`: the bytes of the output against the scalar CPU implementation, and the options.

use crate::support::*;
use half::{bf16, f16};
use per_token_quant_fp8::cpu::{Input, Params};
use per_token_quant_fp8::{Dispatch, MathMode, Options, Shape, ZeroRows};
use safetensors::{Dtype, SafeTensors};
use std::fs;

/// Codes and scales, as bytes, of `x` [rows, hidden], by the implementation that judges all others.
fn expected(dtype: Dtype, x: &[u8], rows: usize, hidden: usize, params: Params) -> (Vec<u8>, Vec<u8>) {
    fn of<T: Input + bytemuck::Pod>(x: &[u8], rows: usize, hidden: usize, params: Params) -> (Vec<u8>, Vec<u8>) {
        let x: Vec<T> = bytemuck::pod_collect_to_vec(x);
        let (mut q, mut s) = (vec![0xAA; rows * hidden], vec![f32::NAN; rows]);
        let shape = Shape::new(rows as u64, hidden as u64).unwrap();
        per_token_quant_fp8::cpu::scalar::quantize(&x, &mut q, &mut s, shape, params).unwrap();
        (q, bytemuck::cast_slice(&s).to_vec())
    }
    match dtype {
        Dtype::F16 => of::<f16>(x, rows, hidden, params),
        Dtype::BF16 => of::<bf16>(x, rows, hidden, params),
        Dtype::F32 => of::<f32>(x, rows, hidden, params),
        other => panic!("{other} is not quantized"),
    }
}

fn params(math: MathMode, zero_rows: ZeroRows, dispatch: Dispatch, sm_count: u32) -> Params {
    Params { math, options: Options { zero_rows, dispatch }, sm_count }
}

/// Checks that `output` is `input` with the tensors named `selected` quantized, and nothing else.
#[track_caller]
fn check(input: &[u8], output: &[u8], selected: &[&str], params: Params) {
    let (input, output) = (SafeTensors::deserialize(input).unwrap(), SafeTensors::deserialize(output).unwrap());
    assert_eq!(output.len(), input.len() + selected.len());
    for (name, original) in input.tensors() {
        let got = output.tensor(&name).unwrap();
        assert_eq!(got.shape(), original.shape(), "{name}");
        if selected.contains(&name.as_str()) {
            let [rows, hidden] = original.shape() else { panic!("{name} is not 2-D") };
            let (q, s) = expected(original.dtype(), original.data(), *rows, *hidden, params);
            let scale = output.tensor(&format!("{name}_scale")).unwrap();
            assert_eq!((got.dtype(), scale.dtype()), (Dtype::F8_E4M3, Dtype::F32), "{name}");
            assert_eq!(scale.shape(), [*rows, 1], "{name}");
            assert!(got.data() == q, "{name}: codes differ");
            assert!(scale.data() == s, "{name}: scales differ");
        } else {
            assert_eq!(got.dtype(), original.dtype(), "{name}");
            assert!(got.data() == original.data(), "{name}: copy differs");
        }
    }
}

fn metadata(file: &[u8]) -> std::collections::BTreeMap<String, String> {
    let (_, header) = SafeTensors::read_metadata(file).unwrap();
    header.metadata().clone().unwrap_or_default().into_iter().collect()
}

const LEGACY: ZeroRows = ZeroRows::Legacy;

#[test]
fn real_activations_and_verify() {
    let folder = Folder::new();
    let (input, output) = (folder.write("in", MINILM), folder.path("out"));
    for math in MathMode::ALL {
        let printed = succeed(&[
            &"quantize",
            &input,
            &output,
            &"--backend",
            &"cpu",
            &"--math",
            &math.name(),
            &"--sm-count",
            &"132",
        ]);
        let bytes = read(&output);
        let names: Vec<_> = SafeTensors::deserialize(MINILM).unwrap().names().into_iter().map(str::to_owned).collect();
        let names: Vec<_> = names.iter().map(String::as_str).collect();
        assert_eq!(names.len(), 9);
        check(MINILM, &bytes, &names, params(math, LEGACY, Dispatch::Auto, 132));

        let recorded = metadata(&bytes);
        for (key, value) in metadata(MINILM) {
            assert_eq!(recorded[&key], value);
        }
        for (key, value) in [
            ("ptq.math", math.name()),
            ("ptq.dispatch", "auto"),
            ("ptq.zero_rows", "legacy"),
            ("ptq.sm_count", "132"),
            ("ptq.select", r#"["*"]"#),
        ] {
            assert_eq!(recorded[key], value);
        }
        assert_eq!(recorded.len(), metadata(MINILM).len() + 5);

        // A title, the columns, a line for each tensor, the totals.
        let lines: Vec<_> = printed.lines().collect();
        assert_eq!(lines.len(), 12, "{printed}");
        assert!(lines[0].ends_with(&format!("math {math}, zero rows legacy, dispatch auto, 132 SMs")), "{printed}");
        for line in &lines[2..11] {
            let cells: Vec<_> = line.split_whitespace().collect();
            assert!(names.contains(&cells[0]), "{line}");
            assert_eq!(cells[3], "cpu", "{line}");
            let sqnr: f64 = cells.last().unwrap().parse().unwrap();
            // Three bits of mantissa: an error of a few percent of each value.
            assert!((28.0..40.0).contains(&sqnr), "{line}");
        }
        assert!(lines[11].starts_with("9 quantized, 0 copied"), "{printed}");

        let verified = succeed(&[&"verify", &input, &output]);
        assert_eq!(verified.lines().count(), 1, "{verified}");
        assert!(verified.contains("9 tensors quantized"), "{verified}");
    }
}

#[test]
fn default_options_work_everywhere() {
    let folder = Folder::new();
    let (input, output) = (folder.write("in", MINILM), folder.path("out"));
    succeed(&[&"quantize", &input, &output]);
    succeed(&[&"verify", &input, &output]);
}

/// Whatever is not 2-D f16, bf16 or f32 is copied, and the copy is that of the bytes.
#[test]
fn everything_else_is_copied() {
    let data = noise(1, 4096);
    let input = file(
        &[
            ("a.f16", Dtype::F16, &[3, 4], &data[..24]),
            ("a.bf16", Dtype::BF16, &[2, 20], &data[24..104]),
            ("a.f32", Dtype::F32, &[5, 8], &data[104..264]),
            ("b.one", Dtype::F32, &[8], &data[300..332]),
            ("b.three", Dtype::BF16, &[2, 2, 4], &data[400..432]),
            ("b.scalar", Dtype::F32, &[], &data[500..504]),
            ("b.f64", Dtype::F64, &[2, 4], &data[600..664]),
            ("b.i64", Dtype::I64, &[2, 4], &data[700..764]),
            ("b.u8", Dtype::U8, &[3, 4], &data[800..812]),
            ("b.bool", Dtype::BOOL, &[4], &[0, 1, 1, 0]),
            ("b.f8", Dtype::F8_E4M3, &[2, 4], &data[900..908]),
            ("b.f4", Dtype::F4, &[2, 4], &data[910..914]),
            ("b.empty", Dtype::I32, &[0, 3], &[]),
            ("\u{e9} \"quoted\" \\ name", Dtype::U16, &[1], &data[1000..1002]),
        ],
        &[("format", "pt"), ("z", "\u{e9}\n\"")],
    );
    let folder = Folder::new();
    let (path, output) = (folder.write("in", &input), folder.path("out"));
    let printed =
        succeed(&[&"quantize", &path, &output, &"--backend", &"cpu", &"--math", &"precise", &"--sm-count", &"132"]);
    assert!(printed.contains("3 quantized, 11 copied"), "{printed}");
    let bytes = read(&output);
    check(&input, &bytes, &["a.f16", "a.bf16", "a.f32"], params(MathMode::Precise, LEGACY, Dispatch::Auto, 132));
    assert_eq!(metadata(&bytes)["z"], "\u{e9}\n\"");
    succeed(&[&"verify", &path, &output]);
}

/// Apart from the order of the metadata, which the crate leaves to chance, the file is what the crate would write.
#[test]
fn layout_is_that_of_the_crate() {
    let folder = Folder::new();
    let data = noise(2, 256);
    let input = file(
        &[
            ("w", Dtype::F32, &[2, 4], &data[..32]),
            ("i", Dtype::I64, &[3], &data[..24]),
            ("b", Dtype::U8, &[3], &data[..3]),
        ],
        &[],
    );
    let (path, output) = (folder.write("in", &input), folder.path("out"));
    succeed(&[&"quantize", &path, &output]);
    let bytes = read(&output);
    let parsed = SafeTensors::deserialize(&bytes).unwrap();
    let (_, header) = SafeTensors::read_metadata(&bytes).unwrap();
    let again = safetensors::serialize(parsed.tensors(), header.metadata().clone()).unwrap();
    assert_eq!(again.len(), bytes.len());
    let data_bytes = parsed.iter().map(|(_, view)| view.data().len()).sum::<usize>();
    assert!(again[again.len() - data_bytes..] == bytes[bytes.len() - data_bytes..]);
    assert_eq!((bytes.len() - data_bytes) % 8, 0);
}

/// Tensors may lie at any address in a file.
#[test]
fn misaligned_tensors() {
    let data = noise(3, 96);
    let mut json = String::from(
        r#"{"b":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"w":{"dtype":"F32","shape":[2,8],"data_offsets":[1,65]},"h":{"dtype":"F16","shape":[1,8],"data_offsets":[65,81]}}"#,
    );
    for _ in 0..8 {
        json.push(' ');
        let input = [&(json.len() as u64).to_le_bytes()[..], json.as_bytes(), &data[..81]].concat();
        let folder = Folder::new();
        let (path, output) = (folder.write("in", &input), folder.path("out"));
        succeed(&[&"quantize", &path, &output, &"--backend", &"cpu", &"--math", &"fast", &"--sm-count", &"132"]);
        check(&input, &read(&output), &["h", "w"], params(MathMode::Fast, LEGACY, Dispatch::Auto, 132));
        succeed(&[&"verify", &path, &output]);
    }
}

#[test]
fn no_rows() {
    let folder = Folder::new();
    let input = file(&[("w", Dtype::BF16, &[0, 4], &[])], &[]);
    let (path, output) = (folder.write("in", &input), folder.path("out"));
    let printed = succeed(&[&"quantize", &path, &output]);
    assert!(
        printed.lines().any(|line| line.split_whitespace().eq(["w", "[0,", "4]", "-", "0.0", "us", "-", "-"])),
        "{printed}"
    );
    check(&input, &read(&output), &["w"], Params::new(MathMode::Precise));
    succeed(&[&"verify", &path, &output]);
}

#[test]
fn patterns_choose_and_are_recorded() {
    let folder = Folder::new();
    let data = noise(4, 64);
    let tensor = (Dtype::F32, &[2usize, 4][..], &data[..32]);
    let named = |name| (name, tensor.0, tensor.1, tensor.2);
    let odd = ("layer.0.odd", Dtype::F32, &[2usize, 3][..], &data[..24]);
    let input = file(&[named("layer.0.q,k"), named("layer.1.q"), named("head"), named("layer?"), odd], &[]);
    let (path, output) = (folder.write("in", &input), folder.path("out"));
    let run = |patterns: &[&'static str]| {
        let mut args: Vec<&dyn AsRef<std::ffi::OsStr>> =
            vec![&"quantize", &path, &output, &"--backend", &"cpu", &"--math", &"precise", &"--sm-count", &"132"];
        for pattern in patterns {
            args.extend([&"--select" as &dyn AsRef<_>, pattern]);
        }
        succeed(&args);
        succeed(&[&"verify", &path, &output]);
        read(&output)
    };
    let params = Params::new(MathMode::Precise);
    let bytes = run(&["layer.*q", "layer.*q,k"]);
    check(&input, &bytes, &["layer.0.q,k", "layer.1.q"], params);
    assert_eq!(metadata(&bytes)["ptq.select"], r#"["layer.*q","layer.*q,k"]"#);
    check(&input, &run(&["layer?"]), &["layer?"], params);
    check(&input, &run(&["*q*", "head", "h*d"]), &["layer.0.q,k", "layer.1.q", "head"], params);
    // An option's value may also be attached, and may start with a dash.
    succeed(&[&"quantize", &path, &output, &"--select=head"]);
}

#[test]
fn the_same_run_gives_the_same_bytes() {
    let folder = Folder::new();
    let keys: Vec<_> = (0..40).map(|i| format!("key {i}")).collect();
    let pairs: Vec<_> = keys.iter().map(|key| (key.as_str(), "value")).collect();
    let data = noise(5, 4096);
    let input = file(&[("w", Dtype::F32, &[16, 64], &data), ("v", Dtype::BF16, &[32, 64], &data)], &pairs);
    let path = folder.write("in", &input);
    let outputs: Vec<_> = (0..4)
        .map(|i| {
            let output = folder.path(&format!("out {i}"));
            succeed(&[&"quantize", &path, &output]);
            read(&output)
        })
        .collect();
    assert!(outputs.windows(2).all(|pair| pair[0] == pair[1]));
}

/// A row of zeros and a NaN: what becomes of it is all that these options decide.
#[test]
fn zero_rows_follow_the_options() {
    const GUARDED: [u8; 4] = [0x00, 0x80, 0x00, 0x7E];
    const UNGUARDED: [u8; 4] = [0x7E; 4];
    const ROWS: usize = 32;
    let mut x = vec![1.0f32; ROWS * 4];
    x[4..8].copy_from_slice(&[0.0, -0.0, 0.0, f32::NAN]);
    let folder = Folder::new();
    let input = file(&[("x", Dtype::F32, &[ROWS, 4], bytemuck::cast_slice(&x))], &[]);
    let (path, output) = (folder.write("in", &input), folder.path("out"));
    for math in MathMode::ALL {
        // The reference's threshold for 32 rows: 2 multiprocessors.
        for (zero_rows, dispatch, sm_count, want) in [
            (LEGACY, Dispatch::Auto, 2, GUARDED),
            (LEGACY, Dispatch::Auto, 3, UNGUARDED),
            (LEGACY, Dispatch::Warp, 3, GUARDED),
            (LEGACY, Dispatch::Cta, 2, UNGUARDED),
            (ZeroRows::Guarded, Dispatch::Auto, 3, GUARDED),
            (ZeroRows::Guarded, Dispatch::Cta, 2, GUARDED),
        ] {
            succeed(&[
                &"quantize",
                &path,
                &output,
                &"--math",
                &math.name(),
                &"--backend",
                &"cpu",
                &"--zero-rows",
                &zero_rows.name(),
                &"--dispatch",
                &dispatch.name(),
                &"--sm-count",
                &sm_count.to_string(),
            ]);
            let bytes = read(&output);
            check(&input, &bytes, &["x"], params(math, zero_rows, dispatch, sm_count));
            let parsed = SafeTensors::deserialize(&bytes).unwrap();
            assert_eq!(parsed.tensor("x").unwrap().data()[4..8], want, "{math} {zero_rows} {dispatch} {sm_count}");
            let recorded = metadata(&bytes);
            assert_eq!(recorded["ptq.zero_rows"], zero_rows.name());
            assert_eq!(recorded["ptq.dispatch"], dispatch.name());
            assert_eq!(recorded["ptq.sm_count"], sm_count.to_string());
            succeed(&[&"verify", &path, &output]);
        }
    }
}

/// Every pattern of bits of the 16-bit types, and many of f32.
#[test]
fn all_values() {
    let halves: Vec<u8> = (0..=u16::MAX).flat_map(u16::to_le_bytes).collect();
    let words = noise(6, 1 << 18);
    let input = file(
        &[
            ("h", Dtype::F16, &[256, 256], &halves),
            ("b", Dtype::BF16, &[8192, 8], &halves),
            ("f", Dtype::F32, &[64, 1024], &words),
        ],
        &[],
    );
    let folder = Folder::new();
    let (path, output) = (folder.write("in", &input), folder.path("out"));
    for math in MathMode::ALL {
        succeed(&[&"quantize", &path, &output, &"--backend", &"cpu", &"--math", &math.name(), &"--sm-count", &"132"]);
        check(&input, &read(&output), &["h", "b", "f"], params(math, LEGACY, Dispatch::Auto, 132));
    }
}

#[test]
fn a_reader_that_went_away_is_no_failure() {
    let folder = Folder::new();
    let (input, output) = (folder.write("in", MINILM), folder.path("out"));
    let mut child = program()
        .args(["quantize".as_ref(), input.as_os_str(), output.as_os_str()])
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let result = child.wait_with_output().unwrap();
    assert_eq!((result.status.code(), text(&result.stderr).as_str()), (Some(0), ""));
    succeed(&[&"verify", &input, &output]);
}

/// A report that cannot be written is a failure, and a failure leaves no file.
#[cfg(target_os = "linux")]
#[test]
fn a_full_stdout_is_a_failure() {
    let folder = Folder::new();
    let (input, output) = (folder.write("in", MINILM), folder.path("out"));
    let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let result =
        program().args(["quantize".as_ref(), input.as_os_str(), output.as_os_str()]).stdout(full).output().unwrap();
    assert_eq!(result.status.code(), Some(2));
    assert!(text(&result.stderr).starts_with("quant-fp8: cannot print the report: "), "{}", text(&result.stderr));
    assert!(!output.exists());
}

#[test]
fn help_version_and_info_succeed() {
    assert!(succeed(&[&"--help"]).contains("quantize"));
    assert!(succeed(&[&"quantize", &"--help"]).contains("SQNR"));
    assert!(succeed(&[&"--version"]).starts_with("quant-fp8 "));
    assert!(!succeed(&[&"info"]).is_empty());
}

/// `PTQ_BACKEND` is the default of `--backend`, whatever this machine has, and does not show in the output.
#[test]
fn the_environment_chooses_the_backend_and_an_argument_overrides_it() {
    let folder = Folder::new();
    let input = folder.write("in", MINILM);
    let quantize = |variable: &str, options: &[&str]| {
        let output = folder.path("out");
        let result = program()
            .args(["quantize".as_ref(), input.as_os_str(), output.as_os_str()])
            .args(["--math", "precise", "--sm-count", "132"])
            .args(options)
            .env("PTQ_BACKEND", variable)
            // Where there is a device, the driver hides it: the GPU's backends are refused by name.
            .env("CUDA_VISIBLE_DEVICES", "-1")
            .output()
            .unwrap();
        if result.status.success() { Ok(read(&output)) } else { Err(text(&result.stderr)) }
    };
    let unset = quantize("", &[]).unwrap();
    for (variable, options) in
        [("cpu", &[][..]), ("auto", &[]), ("jit", &["--backend", "cpu"]), ("aot", &["--backend", "auto"])]
    {
        assert!(quantize(variable, options) == Ok(unset.clone()), "{variable} {options:?}");
    }
    for (variable, options, named) in
        [("jit", &[][..], "jit"), ("aot", &[], "aot"), ("cpu", &["--backend", "jit"], "jit")]
    {
        let error = quantize(variable, options).unwrap_err();
        assert!(error.starts_with(&format!("quant-fp8: backend {named} needs a GPU: ")), "{error}");
    }
}
