//! Summaries of instructions, compared with `snapshots/`.

use crate::{Listing, Needed, Used};
use per_token_quant_fp8::{ARTIFACTS, Artifact};
use ptq_spec::per_token::Strategy;
use ptq_spec::{Kernel, per_tensor};
use std::collections::BTreeMap;
use std::error::Error;
use std::fmt::Write;
use std::path::Path;

/// End of the names of summaries of PTX.
pub const PTX: &str = "ptx";

/// End of the names of summaries of machine code.
pub const SASS: &str = "sass";

/// Begins of opcodes whose modifiers are of interest: accesses, collectives, and what rounds. Of the machine's other
/// instructions only the name shows.
const WHOLE: &[&str] =
    &["LD", "ST", "ATOM", "BAR", "CREDUX", "REDUX", "SHFL", "VOTE", "MUFU", "F2F", "FFMA", "FMUL", "FADD", "FMNMX"];

/// The folder with the snapshots, among the sources.
pub fn folder() -> Needed {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/machine_code/snapshots");
    if path.is_dir() { Ok(path) } else { Err(format!("no {}: the sources are elsewhere", path.display())) }
}

/// Compares one summary with its snapshot.
pub fn check(folder: &Path, artifact: &Artifact, kind: &str, table: &str) -> Result<(), Box<dyn Error>> {
    let mut settings = insta::Settings::new();
    settings.set_snapshot_path(folder);
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    // It panics where they differ, which fails the test, with a diff on stdout.
    settings.bind(|| insta::assert_snapshot!(name(artifact, kind), table));
    Ok(())
}

/// Snapshots that are of no artifact.
pub fn left_over(folder: &Path) -> Result<Vec<String>, Box<dyn Error>> {
    let known: Vec<_> =
        ARTIFACTS.as_slice().iter().flat_map(|artifact| [PTX, SASS].map(|kind| name(artifact, kind))).collect();
    let mut found = Vec::new();
    for entry in folder.read_dir()? {
        let path = entry?.path();
        let is_snapshot = path.extension().is_some_and(|extension| extension == "snap");
        if is_snapshot && !known.iter().any(|name| path.file_stem().is_some_and(|stem| *stem == **name)) {
            found.push(format!("{}: is of no artifact; remove it", path.display()));
        }
    }
    Ok(found)
}

fn name(artifact: &Artifact, kind: &str) -> String {
    format!("{}.{kind}", artifact.stem())
}

/// One line per opcode, one column per entry: how often it occurs. Above it, what the cubin's tables say.
pub fn table(listing: &Listing, used: &Used) -> String {
    let mut text = String::new();
    let [kinds, shapes]: [Vec<String>; 2] =
        [0, 1].map(|i| listing.iter().map(|(name, _)| head(name)[i].clone()).collect());
    line(&mut text, "", kinds.into_iter());
    line(&mut text, "", shapes.into_iter());
    if !used.is_empty() {
        line(&mut text, "registers", used.iter().map(|(_, r)| r.registers.to_string()));
        line(&mut text, "local bytes", used.iter().map(|(_, r)| r.local.to_string()));
        line(&mut text, "shared bytes", used.iter().map(|(_, r)| r.shared.to_string()));
    }
    line(&mut text, "instructions", listing.iter().map(|(_, code)| code.len().to_string()));
    let mut counts: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (column, (_, code)) in listing.iter().enumerate() {
        for instruction in code {
            counts.entry(shown(&instruction.opcode)).or_insert_with(|| vec![0; listing.len()])[column] += 1;
        }
    }
    for (opcode, counts) in counts {
        line(&mut text, opcode, counts.into_iter().map(|n| if n == 0 { "-".into() } else { n.to_string() }));
    }
    text
}

fn shown(opcode: &str) -> &str {
    let machine = opcode.starts_with(|c: char| c.is_ascii_uppercase());
    if !machine || WHOLE.iter().any(|begin| opcode.starts_with(begin)) {
        return opcode;
    }
    opcode.split('.').next().unwrap_or(opcode)
}

/// What stands above the column of an entry: what it does, and its vectors.
fn head(name: &str) -> [String; 2] {
    if let Some(entry) = per_tensor::Entry::named(name) {
        let pass = match entry.pass {
            per_tensor::Pass::Absmax => "max",
            per_tensor::Pass::Quantize => "quant",
        };
        return [pass.into(), format!("e{}", entry.elements_per_vector)];
    }
    let entries = Kernel::ALL.iter().flat_map(|kernel| kernel.row_entries());
    let entry = entries.into_iter().find(|entry| entry.name == name).expect("some table has every entry");
    let strategy = match entry.strategy {
        Strategy::Warp => "warp",
        Strategy::Cta => "cta",
        Strategy::CtaTwoPass => "two",
    };
    [strategy.into(), format!("e{}x{}", entry.elements_per_vector, entry.vectors_per_thread)]
}

fn line(text: &mut String, head: &str, cells: impl Iterator<Item = String>) {
    // Writing to a String cannot fail.
    let _ = write!(text, "{head:<36}");
    for cell in cells {
        let _ = write!(text, "{cell:>6}");
    }
    text.push('\n');
}
