//! Instructions out of the text of PTX and of nvdisasm.

/// One instruction.
#[derive(Debug, PartialEq, Eq)]
pub struct Instruction {
    /// Opcode with its modifiers, without a predicate.
    pub opcode: String,
    /// The rest of the line.
    pub operands: String,
}

/// Instructions of one entry of a PTX module.
pub fn ptx(module: &str, entry: &str) -> Vec<Instruction> {
    let head = format!(".visible .entry {entry}(");
    let lines = module.lines().skip_while(|line| *line != head).skip_while(|line| *line != "{").skip(1);
    let lines = lines.take_while(|line| *line != "}").map(str::trim);
    // What is left out: directives, labels, comments and empty lines.
    let lines = lines.filter(|line| line.starts_with(|c: char| c.is_ascii_lowercase() || c == '@'));
    some(entry, lines.map(instruction).collect())
}

/// Instructions of one entry of what nvdisasm prints, with those of its slow paths: they lie in the entry's section.
pub fn sass(listing: &str, entry: &str) -> Vec<Instruction> {
    let head = format!(".section\t.text.{entry},");
    let lines = listing.lines().map(str::trim).skip_while(|line| !line.starts_with(&head)).skip(1);
    let lines = lines.take_while(|line| !line.starts_with(".section\t"));
    // An instruction follows its address in a comment.
    let lines = lines.filter_map(|line| Some(line.strip_prefix("/*")?.split_once("*/")?.1.trim()));
    // Padding between and after functions.
    let code = lines.map(instruction).filter(|instruction| instruction.opcode != "NOP");
    some(entry, code.collect())
}

fn instruction(text: &str) -> Instruction {
    let text = text.trim_end_matches([';', ' ']);
    let text = match text.strip_prefix('@') {
        Some(predicated) => predicated.split_once(char::is_whitespace).map_or("", |(_, rest)| rest.trim_start()),
        None => text,
    };
    let (opcode, operands) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    Instruction { opcode: opcode.into(), operands: operands.trim().into() }
}

fn some(entry: &str, code: Vec<Instruction>) -> Vec<Instruction> {
    assert!(!code.is_empty(), "no instruction of {entry} was found");
    code
}
