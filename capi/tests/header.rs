//! The header is what the sources give, and the shared library exports what the header declares and nothing else.

mod library;

use object::{Object, ObjectSymbol};
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

#[test]
fn header_is_what_the_sources_give() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let path = root.join("include/ptq_fp8.h");
    let config = cbindgen::Config::from_file(root.join("cbindgen.toml")).unwrap();
    let mut made = Vec::new();
    cbindgen::generate_with_config(root, config).unwrap().write(&mut made);
    let made = String::from_utf8(made).unwrap();
    if std::env::var_os("PTQ_UPDATE_HEADER").is_some() {
        fs::write(&path, &made).unwrap();
    }
    let kept = fs::read_to_string(&path).unwrap_or_default();
    assert!(kept == made, "{} is not what capi/src gives; PTQ_UPDATE_HEADER=1 makes it again", path.display());
}

/// The functions that the header declares: names that a parenthesis follows, outside comments.
fn declared(header: &str) -> BTreeSet<String> {
    let code: String = header.lines().filter(|line| !line.trim_start().starts_with("//")).collect();
    let code = code.split_once("*/").map_or("", |(_, after)| after);
    let called = code.match_indices('(').filter_map(|(at, _)| {
        let name = code[..at].rsplit(|c: char| !c.is_ascii_alphanumeric() && c != '_').next()?;
        name.starts_with("ptq_").then(|| name.to_owned())
    });
    called.collect()
}

#[test]
fn shared_library_exports_what_the_header_declares_and_nothing_else() {
    let header = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("include/ptq_fp8.h")).unwrap();
    let declared = declared(&header);
    assert!(declared.contains("ptq_per_token_quant_fp8"), "{declared:?}");
    let image = fs::read(library::built("libptq_fp8.so")).unwrap();
    let file = object::File::parse(&*image).unwrap();
    let symbols = || file.dynamic_symbols().filter(|symbol| !symbol.is_local());
    let exported: BTreeSet<_> =
        symbols().filter(|symbol| symbol.is_definition()).map(|symbol| symbol.name().unwrap().to_owned()).collect();
    assert_eq!(exported, declared);
    // Nor does it ask anyone for the driver.
    let driver = symbols().map(|symbol| symbol.name().unwrap()).find(|name| name.starts_with("cu"));
    assert_eq!(driver, None);
}
