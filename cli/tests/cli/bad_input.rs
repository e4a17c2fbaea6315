//! Input that cannot be used: one line on stderr, exit status 2, no file left, an existing one kept.

use crate::support::*;
use safetensors::Dtype;
use std::ffi::OsStr;
use std::fs;
use std::path::Path;

const OLD: &[u8] = b"an older file";

/// Runs the program and expects it to refuse. Returns the line.
#[track_caller]
fn refuse(args: &[&dyn AsRef<OsStr>]) -> String {
    let result = run(args);
    let (out, err) = (text(&result.stdout), text(&result.stderr));
    assert_eq!((result.status.code(), out.as_str()), (Some(2), ""), "{err}");
    assert!(err.starts_with("quant-fp8: ") && err.ends_with('\n') && err.lines().count() == 1, "{err:?}");
    err
}

fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<_> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// Quantizing `input` fails with a line that holds every word of `words`, and leaves the folder as it was.
#[track_caller]
fn refuse_input(input: &[u8], options: &[&str], words: &[&str]) {
    for old in [false, true] {
        let folder = Folder::new();
        let (path, output) = (folder.write("in", input), folder.path("out"));
        if old {
            fs::write(&output, OLD).unwrap();
        }
        let mut args: Vec<&dyn AsRef<OsStr>> = vec![&"quantize", &path, &output];
        args.extend(options.iter().map(|option| option as &dyn AsRef<OsStr>));
        let line = refuse(&args);
        for word in words {
            assert!(line.contains(word), "no `{word}` in {line}");
        }
        assert_eq!(names(folder.path("").as_path()), if old { vec!["in", "out"] } else { vec!["in"] });
        if old {
            assert_eq!(read(&output), OLD);
        }
        assert_eq!(read(&path), input);
    }
}

fn f32_file(name: &str, rows: usize, hidden: usize) -> Vec<u8> {
    file(&[(name, Dtype::F32, &[rows, hidden], &vec![0x3F; rows * hidden * 4])], &[])
}

#[test]
fn not_safetensors() {
    for (bytes, words) in [
        (&b""[..], &["in", "0 bytes", "expected at least 8"][..]),
        (b"PK\x03\x04", &["4 bytes"]),
        (b"this is a text of some length, no tensors", &["header of"]),
        (b"\x02\0\0\0\0\0\0\0[]", &["header is wrong"]),
        (b"\x07\0\0\0\0\0\0\0{\"a\":1}", &["header is wrong"]),
        (b"\xff\xff\xff\xff\xff\xff\xff\xff{}", &["header of 18446744073709551615 bytes"]),
    ] {
        refuse_input(bytes, &[], words);
    }
}

#[test]
fn truncated() {
    let cut = |n: usize| &MINILM[..MINILM.len() - n];
    refuse_input(cut(1), &[], &["663551 bytes of data", "expected 663552"]);
    refuse_input(cut(MINILM.len() / 2), &[], &["truncated"]);
    refuse_input(&MINILM[..100], &[], &["truncated"]);
    refuse_input(&MINILM[..7], &[], &["truncated"]);
    let longer = [MINILM, b"x"].concat();
    refuse_input(&longer, &[], &["663553 bytes of data"]);
}

#[test]
fn lying_headers() {
    let lie = |json: &str| [&(json.len() as u64).to_le_bytes()[..], json.as_bytes(), &[0; 32]].concat();
    for json in [
        // Of another size than type and shape say, overlapping, with a hole, backwards, too large.
        r#"{"w":{"dtype":"F32","shape":[2,8],"data_offsets":[0,32]}}"#,
        r#"{"w":{"dtype":"F32","shape":[1,4],"data_offsets":[0,16]},"v":{"dtype":"F32","shape":[1,4],"data_offsets":[8,24]}}"#,
        r#"{"w":{"dtype":"F32","shape":[1,4],"data_offsets":[16,32]}}"#,
        r#"{"w":{"dtype":"F32","shape":[1,4],"data_offsets":[16,0]}}"#,
        r#"{"w":{"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,32]}}"#,
        r#"{"w":{"dtype":"F32","shape":[18446744073709551616,1],"data_offsets":[0,32]}}"#,
    ] {
        refuse_input(&lie(json), &[], &["in is not a valid safetensors file", "header is wrong"]);
    }
    refuse_input(&lie(r#"{"w":{"dtype":"F32","shape":[1,4],"data_offsets":[0,16]}}"#), &[], &["32 bytes of data"]);
}

#[test]
fn shapes_that_cannot_be_quantized() {
    for hidden in [1, 3, 6, 1026] {
        let words = [format!("`hidden` is {hidden}"), "multiple of 4".to_owned()];
        let words: Vec<_> = words.iter().map(String::as_str).chain(["tensor `some.w`", "--select"]).collect();
        refuse_input(&f32_file("some.w", 2, hidden), &[], &words);
    }
    refuse_input(&f32_file("some.w", 0, 3), &[], &["tensor `some.w`"]);
    refuse_input(&f32_file("some.w", 3, 0), &[], &["tensor `some.w`", "`hidden` is 0", "--select"]);
}

#[test]
fn a_name_in_use() {
    let data = [0x3F; 16];
    let input = file(&[("w", Dtype::F32, &[1, 4], &data), ("w_scale", Dtype::I8, &[2], &data[..2])], &[]);
    refuse_input(&input, &[], &["`w`", "`w_scale`", "--select"]);
    let input = file(&[("w", Dtype::F32, &[1, 4], &data), ("w_scale", Dtype::F32, &[1, 4], &data)], &[]);
    refuse_input(&input, &["--select", "*"], &["`w_scale`"]);
}

#[test]
fn patterns_that_select_nothing() {
    let data = [0x3F; 16];
    let input = file(&[("w", Dtype::F32, &[1, 4], &data), ("ids", Dtype::I32, &[4], &data)], &[]);
    refuse_input(&input, &["--select", "v*"], &["--select v*", "none of the 2 tensors"]);
    refuse_input(&input, &["--select", "w", "--select", "?"], &["--select ?"]);
    refuse_input(&input, &["--select", ""], &["matches none"]);
    refuse_input(&input, &["--select", "i*"], &["--select i*", "`ids` is I32 [4]"]);
    // Without patterns too there must be something to do.
    refuse_input(&file(&[("ids", Dtype::I32, &[4], &data)], &[]), &[], &["`ids` is I32 [4]"]);
    refuse_input(b"\x02\0\0\0\0\0\0\0{}", &[], &["none of the 0 tensors"]);
}

#[test]
fn quantized_before() {
    let folder = Folder::new();
    let (input, once) = (folder.write("in", MINILM), folder.path("once"));
    succeed(&[&"quantize", &input, &once]);
    refuse_input(&read(&once), &[], &["quantized before", "ptq."]);
}

/// The name of the scales repeats that of the tensor.
#[test]
fn a_header_that_gets_too_long() {
    let name = "n".repeat(51_000_000);
    refuse_input(&f32_file(&name, 1, 4), &[], &["header", "expected at most 100000000", "select fewer tensors"]);
}

#[test]
fn names_do_not_break_the_line() {
    refuse_input(&f32_file("a\nb\u{1b}[31m\r", 1, 3), &[], &["a\\nb\\u{1b}[31m\\r"]);
}

#[test]
fn wrong_flags() {
    for (options, words) in [
        (&["--backend", "gpu"][..], &["gpu", "auto, aot, jit, cpu"][..]),
        (&["--math", "exact"], &["exact", "auto, fast, precise"]),
        (&["--zero-rows", "none"], &["none", "legacy, guarded"]),
        (&["--dispatch", "block"], &["block", "auto, warp, cta"]),
        (&["--sm-count", "0"], &["--sm-count"]),
        (&["--sm-count", "-1"], &["-1"]),
        (&["--sm-count", "4294967296"], &["--sm-count"]),
        (&["--sm-count", "many"], &["--sm-count"]),
        (&["--select"], &["--select"]),
        (&["--fast"], &["--fast"]),
        (&["--math", "fast", "--math", "precise"], &["--math"]),
        (&["third"], &["third"]),
    ] {
        refuse_input(MINILM, options, words);
    }
    for args in [&[][..], &["quantise"], &["quantize"], &["quantize", "in"], &["verify", "in"], &["info", "more"]] {
        let args: Vec<_> = args.iter().map(|arg| arg as &dyn AsRef<OsStr>).collect();
        refuse(&args);
    }
}

#[test]
fn missing_and_special_files() {
    let folder = Folder::new();
    let (input, output) = (folder.write("in", MINILM), folder.path("out"));
    let missing = folder.path("missing");
    for command in ["quantize", "verify"] {
        assert!(refuse(&[&command, &missing, &output]).contains("cannot read"));
        assert!(refuse(&[&command, &folder.path(""), &output]).contains("not a regular file"));
    }
    assert!(refuse(&[&"verify", &input, &missing]).contains("missing"));
    #[cfg(unix)]
    {
        let pipe = folder.path("pipe");
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        assert!(refuse(&[&"quantize", &pipe, &output]).contains("not a regular file"));
        assert!(refuse(&[&"quantize", &input, &pipe]).contains("not a regular file"));
        assert!(refuse(&[&"quantize", &"/dev/zero", &output]).contains("not a regular file"));
        assert!(refuse(&[&"quantize", &input, &"/dev/null"]).contains("not a regular file"));
        fs::remove_file(pipe).unwrap();
    }
    assert_eq!(names(&folder.path("")), ["in"]);
}

#[test]
fn outputs_that_cannot_be_written() {
    let folder = Folder::new();
    let input = folder.write("in", MINILM);
    assert!(refuse(&[&"quantize", &input, &folder.path("no/such/folder/out")]).contains("cannot write"));
    assert!(refuse(&[&"quantize", &input, &folder.path("in/out")]).contains("cannot write"));
    assert!(refuse(&[&"quantize", &input, &folder.path("")]).contains("not a regular file"));
    assert!(refuse(&[&"quantize", &input, &""]).contains("<OUT.safetensors>"));
    assert!(refuse(&[&"quantize", &input, &folder.path("").join("..")]).contains("not a regular file"));
    assert_eq!(names(&folder.path("")), ["in"]);
}

/// Where not even root creates files.
#[cfg(target_os = "linux")]
#[test]
fn a_folder_that_takes_no_files() {
    let folder = Folder::new();
    let input = folder.write("in", MINILM);
    assert!(refuse(&[&"quantize", &input, &"/proc/out"]).contains("cannot write /proc/out"));
}

#[test]
fn input_and_output_are_one_file() {
    let folder = Folder::new();
    let input = folder.write("in", MINILM);
    let mut others = vec![input.clone(), folder.path(".").join("in")];
    #[cfg(unix)]
    {
        others.push(folder.path("symbolic"));
        std::os::unix::fs::symlink(&input, folder.path("symbolic")).unwrap();
    }
    others.push(folder.path("hard"));
    fs::hard_link(&input, folder.path("hard")).unwrap();
    for other in others {
        assert!(refuse(&[&"quantize", &input, &other]).contains("same file"));
        assert!(refuse(&[&"quantize", &other, &input]).contains("same file"));
        assert_eq!(read(&input), MINILM);
    }
}

#[test]
fn a_gpu_that_is_not_there() {
    let folder = Folder::new();
    let input = folder.write("in", MINILM);
    for backend in ["aot", "jit"] {
        let output = folder.path(backend);
        let result = program()
            .args(["quantize".as_ref(), input.as_os_str(), output.as_os_str(), "--backend".as_ref(), backend.as_ref()])
            // Where there is a device, the driver hides it.
            .env("CUDA_VISIBLE_DEVICES", "-1")
            .output()
            .unwrap();
        let err = text(&result.stderr);
        assert_eq!(result.status.code(), Some(2), "{err}");
        assert!(err.starts_with(&format!("quant-fp8: backend {backend} needs a GPU: ")), "{err}");
        assert_eq!(err.lines().count(), 1, "{err}");
        assert!(!output.exists());
    }
    assert_eq!(names(&folder.path("")), ["in"]);
}

#[test]
fn a_backend_in_the_environment_that_does_not_exist() {
    let folder = Folder::new();
    let (input, output) = (folder.write("in", MINILM), folder.path("out"));
    for (variable, options) in [("gpu", &[][..]), ("CPU", &[]), ("jit ", &[]), ("gpu", &["--backend", "cpu"])] {
        let result = program()
            .args(["quantize".as_ref(), input.as_os_str(), output.as_os_str()])
            .args(options)
            .env("PTQ_BACKEND", variable)
            .output()
            .unwrap();
        let err = text(&result.stderr);
        assert_eq!((result.status.code(), text(&result.stdout)), (Some(2), String::new()), "{err}");
        assert!(err.contains(&format!("`{variable}`")) && err.contains("PTQ_BACKEND"), "{err}");
        assert!(err.contains("auto, aot, jit, cpu") && err.lines().count() == 1, "{err}");
    }
    assert_eq!(names(&folder.path("")), ["in"]);
}

#[test]
fn verify_without_a_usable_record() {
    let folder = Folder::new();
    let (input, output) = (folder.write("in", MINILM), folder.path("out"));
    assert!(refuse(&[&"verify", &input, &input]).contains("no `ptq.math`"));
    succeed(&[&"quantize", &input, &output]);
    assert!(refuse(&[&"verify", &output, &output]).contains("quantized before"));
    // Another input: the recorded patterns must fit it.
    let other = folder.write("other", &file(&[("ids", Dtype::I32, &[1], &[0; 4])], &[]));
    assert!(refuse(&[&"verify", &other, &output]).contains("matches no tensor"));
    let good = read(&output);
    for (from, to, key) in [
        ("\"ptq.zero_rows\":\"legacy\"", "\"ptq.zero_rows\":\"legacI\"", "ptq.zero_rows"),
        ("\"ptq.select\":\"[", "\"ptq.select\":\"{", "ptq.select"),
        ("\"ptq.dispatch\":\"auto\"", "\"ptq.dispatch\":\"Auto\"", "ptq.dispatch"),
    ] {
        let bad = replace(&good, from.as_bytes(), to.as_bytes());
        let line = refuse(&[&"verify", &input, &folder.write("bad", &bad)]);
        assert!(line.contains(key), "{line}");
    }
}

fn replace(bytes: &[u8], from: &[u8], to: &[u8]) -> Vec<u8> {
    assert_eq!(from.len(), to.len());
    let at = bytes.windows(from.len()).position(|window| window == from).expect("the text is there");
    [&bytes[..at], to, &bytes[at + to.len()..]].concat()
}
