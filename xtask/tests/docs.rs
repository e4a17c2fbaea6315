//! What `docs/` says is in the tree: the tests that `errors.md` names, the code that `serving.md` shows.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// Enums of errors: file, name, and how `errors.md` calls a variant, up to its own name.
const ENUMS: &[(&str, &str, &str)] = &[
    ("spec/src/error.rs", "ShapeError", "ShapeError::"),
    ("host/src/error.rs", "Error", "Error::"),
    ("host/src/error.rs", "PlanError", "PlanError::"),
    ("cli/src/error.rs", "Error", "quant_fp8::Error::"),
    ("capi/src/status.rs", "PtqStatus", C_STATUS),
];

/// In C, whose names are in capitals.
const C_STATUS: &str = "PTQ_STATUS_";

/// Variants that are no error of their own: those that wrap another error are named by what they wrap.
const OTHERS: &[(&str, &str)] = &[("Error::", "Shape"), ("Error::", "Plan"), (C_STATUS, "Ok")];

fn read(path: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(path);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// What stands between backticks.
fn quoted(text: &str) -> Vec<&str> {
    text.split('`').skip(1).step_by(2).collect()
}

/// Rows of the tables, as cells.
fn rows(text: &str) -> Vec<Vec<&str>> {
    let rows = text.lines().filter(|line| line.starts_with('|') && !line.starts_with("|---"));
    rows.map(|line| line.trim_matches('|').split(" | ").map(str::trim).collect()).collect()
}

/// The variants of an enum, by the layout that rustfmt gives them.
fn variants(source: &str, name: &str) -> Vec<String> {
    let start = source.find(&format!("pub enum {name} {{\n")).unwrap_or_else(|| panic!("no enum {name}"));
    let lines = source[start..].lines().skip(1).take_while(|line| *line != "}");
    let starts = lines.filter_map(|line| line.strip_prefix("    ")).filter(|line| line.starts_with(char::is_uppercase));
    starts.map(|line| line.chars().take_while(|c| c.is_alphanumeric()).collect()).collect()
}

/// `NoDevice` as `NO_DEVICE`.
fn in_capitals(variant: &str) -> String {
    let mut name = String::new();
    for (i, letter) in variant.chars().enumerate() {
        if i > 0 && letter.is_uppercase() {
            name.push('_');
        }
        name.extend(letter.to_uppercase());
    }
    name
}

#[test]
fn every_row_of_errors_md_has_a_test_that_exists() {
    let text = read("docs/errors.md");
    let mut count = 0;
    for row in rows(&text).iter().filter(|row| row.last() != Some(&"test")) {
        assert_eq!(row.len(), 4, "a table has four columns: {row:?}");
        let names = quoted(row[3]);
        assert!(!names.is_empty() && names.len().is_multiple_of(2), "a row without a test: {row:?}");
        for pair in names.chunks_exact(2) {
            let keyword = if pair[0].ends_with(".py") { "def" } else { "fn" };
            let found = read(pair[0]).contains(&format!("{keyword} {}(", pair[1]));
            assert!(found, "{} has no test `{}`", pair[0], pair[1]);
            count += 1;
        }
    }
    assert!(count > 50, "the tables were not found");
}

#[test]
fn every_error_is_in_errors_md() {
    let text = read("docs/errors.md");
    let named: BTreeSet<&str> =
        rows(&text).iter().filter(|row| row.len() == 4).flat_map(|row| quoted(row[2])).collect();
    for (file, name, called) in ENUMS {
        let variants = variants(&read(file), name);
        assert!(variants.len() > 3, "{file}: no variants of {name} found");
        for variant in variants.iter().filter(|variant| !OTHERS.contains(&(*called, variant.as_str()))) {
            let name = if *called == C_STATUS { in_capitals(variant) } else { variant.clone() };
            let full = format!("{called}{name}");
            assert!(named.contains(full.as_str()), "{full} is in no row of docs/errors.md");
        }
    }
}

/// Code of `serving.md`: where it says that it is from, and its lines.
fn snippets(text: &str) -> Vec<(Option<&str>, Vec<&str>)> {
    let mut found = Vec::new();
    let mut from = None;
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        if let Some(file) = line.strip_prefix("<!-- from ").and_then(|rest| rest.strip_suffix(" -->")) {
            from = Some(file);
        } else if let Some(language) = line.strip_prefix("```") {
            let lines = lines.by_ref().take_while(|line| *line != "```").collect();
            if language != "sh" {
                found.push((from.take(), lines));
            }
        }
    }
    found
}

#[test]
fn code_in_serving_md_is_that_of_the_examples() {
    let text = read("docs/serving.md");
    let snippets = snippets(&text);
    assert!(snippets.len() >= 5, "the code was not found");
    for (from, lines) in snippets {
        let file = from.unwrap_or_else(|| panic!("says not where it is from: {lines:?}"));
        let source = read(file);
        let source: Vec<&str> = source.lines().collect();
        // As deep as in the file, or less by the same for all.
        let same = |at: &[&str]| {
            let first = at.first().and_then(|line| line.strip_suffix(lines[0]));
            first.is_some_and(|indent| {
                indent.trim().is_empty()
                    && at.iter().zip(&lines).all(|(a, b)| a.strip_prefix(indent).unwrap_or(a.trim_start()) == *b)
            })
        };
        assert!(source.windows(lines.len()).any(same), "{file} has not these lines:\n{}", lines.join("\n"));
    }
}
