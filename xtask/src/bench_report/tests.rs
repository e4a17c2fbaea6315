//! The report on records that were made up.

use super::matrix::seed;
use super::*;
use crate::record::{compare, launch};

/// A workspace with those records and an empty page.
fn workspace(records: &[(&str, String)]) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let records_dir = dir.path().join(record::FOLDER);
    fs::create_dir_all(&records_dir).unwrap();
    for (name, text) in records {
        fs::write(records_dir.join(name), text).unwrap();
    }
    fs::create_dir(dir.path().join("docs")).unwrap();
    fs::write(dir.path().join(PAGE), format!("# Performance\n\nBy hand.\n\n{BEGIN}\n{END}\n\nMore by hand.\n"))
        .unwrap();
    dir
}

fn page(dir: &tempfile::TempDir) -> String {
    fs::read_to_string(dir.path().join(PAGE)).unwrap()
}

/// A matrix in which ours takes 1 µs, SGLang `sglang` µs in every shape of the seed matrix, vLLM 3 µs; and one large shape.
fn matrix(sglang: f64, copy: f64) -> String {
    let mut text = format!("# record: {}\n# gpu: made up\n{}\n", compare::MATRIX, compare::MATRIX_COLUMNS.join(","));
    let shapes = seed::TOKENS.iter().flat_map(|&rows| seed::HIDDEN.map(|hidden| (rows, hidden))).chain([(65536, 4096)]);
    for (rows, hidden) in shapes {
        for element in ["f16", "bf16", "f32"] {
            let bytes = rows * hidden * 3;
            text += &format!("{element},{rows},{hidden},entry,256,{bytes},2048,1.0,1.02,{sglang},3.0,{copy},0.5,0.8\n");
        }
    }
    text
}

fn launches(prepared: f64) -> String {
    let mut text = format!("# record: {}\n{}\n", launch::LAUNCH, launch::LAUNCH_COLUMNS.join(","));
    for threads in [1, 8] {
        text += &format!("launch,cuLaunchKernel,bf16,{threads},us,2.0\n");
        text += &format!("launch,Prepared::launch,bf16,{threads},us,{prepared}\n");
    }
    text + "prepare,Quantizer::prepare,bf16,1,us,1.5\nfirst use,aot,f16,1,ms,3\nfirst use,aot,f32,1,ms,11\n"
}

fn cpu() -> String {
    let mut text = format!("# record: {}\n{}\n", record::CPU, record::CPU_COLUMNS.join(","));
    for (math, subject, millis) in [
        ("precise", "ours", 2.0),
        ("precise", "ours new outputs", 4.0),
        ("precise", "torch.compile", 5.0),
        ("fast", "ours", 3.0),
        ("precise", "ours beside fast", 2.5),
    ] {
        // The smaller shape would have other ratios.
        text += &format!("bf16,64,64,{math},2,{subject},1\nbf16,4096,4096,{math},2,{subject},{millis}\n");
    }
    text
}

/// The line of the table of goals that begins so.
fn goal(page: &str, begin: &str) -> String {
    page.lines().find(|line| line.starts_with(&format!("| {begin}"))).unwrap_or_default().to_owned()
}

#[test]
fn without_records_the_page_says_so() {
    let dir = workspace(&[]);
    assert_eq!(update(dir.path(), false).unwrap(), [PAGE]);
    let page = page(&dir);
    assert!(page.contains("No record yet") && page.contains("By hand.") && page.contains("More by hand."), "{page}");
    assert!(!dir.path().join(PLOTS).exists());
    assert!(update(dir.path(), true).unwrap().is_empty());
}

#[test]
fn goals_are_judged_by_the_numbers() {
    let dir = workspace(&[("a.csv", matrix(1.3, 0.96)), ("b.csv", launches(2.1)), ("c.csv", cpu())]);
    update(dir.path(), false).unwrap();
    let page = page(&dir);
    for (begin, value, holds) in [
        ("bf16: times as fast as SGLang", "1.300", true),
        ("bf16: aim", "1.300", false),
        ("f32: aim", "1.300", true),
        ("bf16: times as fast as the faster", "1.300", true),
        ("f16: part of a copy", "0.960", true),
        ("launch of a `Prepared` over `cuLaunchKernel`, threads: 8", "1.050", true),
        ("`Quantizer::prepare`", "1.500 µs", true),
        ("first use, aot", "11.000 ms (f32)", false),
        ("CPU, bf16: times as fast as torch.compile, precise, 2 threads, into the same", "2.500", true),
        ("CPU, bf16: times as fast as torch.compile, precise, 2 threads, into new", "1.250", false),
        ("CPU, bf16: fast mode", "1.200", false),
    ] {
        let line = goal(&page, begin);
        assert!(line.contains(value), "{begin}: {line}");
        assert_eq!(line.ends_with("| holds |"), holds, "{begin}: {line}");
        assert_eq!(line.ends_with("| **missed** |"), !holds, "{begin}: {line}");
    }
    assert!(goal(&page, "first use, jit").ends_with("| not measured |"));
    assert!(page.contains("| 2.0 % |"), "the noise");
    for plot in ["speed-up-f16.svg", "bandwidth-f32.svg"] {
        assert!(page.contains(plot) && dir.path().join(PLOTS).join(plot).is_file(), "{plot}");
    }
}

#[test]
fn one_slow_shape_misses_the_goal_and_is_named() {
    let slow =
        matrix(1.3, 0.96).replace("bf16,39,1536,entry,256,179712,2048,1.0", "bf16,39,1536,entry,256,179712,2048,2.0");
    let dir = workspace(&[("a.csv", slow)]);
    update(dir.path(), false).unwrap();
    let line = goal(&page(&dir), "bf16: times as fast as the faster");
    assert!(line.contains("0.650 (39 x 1536; below the bound: 1 of 37") && line.ends_with("| **missed** |"), "{line}");
}

#[test]
fn a_mean_over_a_part_of_the_matrix_is_none() {
    let lines = matrix(1.3, 0.96);
    let part: Vec<_> = lines.lines().filter(|line| !line.starts_with("bf16,39,1536,")).collect();
    let dir = workspace(&[("a.csv", part.join("\n"))]);
    update(dir.path(), false).unwrap();
    let page = page(&dir);
    assert!(goal(&page, "bf16: times as fast as SGLang").ends_with("| not measured |"));
    assert!(goal(&page, "f16: times as fast as SGLang").ends_with("| holds |"));
}

#[test]
fn what_was_not_measured_counts_for_nothing() {
    // Without the reference, as on another GPU.
    let alone = matrix(1.3, 0.96).replace(",1.3,3.0,", ",,,");
    let dir = workspace(&[("a.csv", alone)]);
    update(dir.path(), false).unwrap();
    let page = page(&dir);
    assert!(goal(&page, "bf16: times as fast as the faster").ends_with("| not measured |"));
    assert!(goal(&page, "bf16: part of a copy").ends_with("| holds |"));
}

#[test]
fn a_check_finds_what_is_stale_and_writes_nothing() {
    let dir = workspace(&[("a.csv", matrix(1.3, 0.96))]);
    let stale = update(dir.path(), true).unwrap();
    assert!(stale.contains(&PAGE.to_owned()) && stale.len() == 7, "{stale:?}");
    assert!(!dir.path().join(PLOTS).exists());
    update(dir.path(), false).unwrap();
    assert!(update(dir.path(), true).unwrap().is_empty());

    let plots = dir.path().join(PLOTS);
    fs::write(plots.join("bandwidth-f16.svg"), "drawn by hand").unwrap();
    fs::write(plots.join("of-an-old-record.svg"), "").unwrap();
    let stale = update(dir.path(), true).unwrap();
    assert_eq!(stale, ["docs/performance/of-an-old-record.svg", "docs/performance/bandwidth-f16.svg"]);
    update(dir.path(), false).unwrap();
    assert!(!plots.join("of-an-old-record.svg").exists());
    assert!(update(dir.path(), true).unwrap().is_empty());
}

#[test]
fn newer_records_take_the_place_of_older_ones() {
    let dir = workspace(&[("2026-01.csv", matrix(1.3, 0.96)), ("2026-02.csv", matrix(1.4, 0.96))]);
    update(dir.path(), false).unwrap();
    assert!(goal(&page(&dir), "bf16: aim").contains("1.400"));
}

#[test]
fn a_page_without_marks_is_an_error() {
    let dir = workspace(&[]);
    fs::write(dir.path().join(PAGE), BEGIN).unwrap();
    assert!(matches!(update(dir.path(), false), Err(Error::Mark { mark: END, .. })));
}
