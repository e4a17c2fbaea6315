//! Parameter and function attributes: the known ones stay, any other goes, so that a newer rustc's text still parses.
//!
//! An attribute only tells the optimiser more; dropping one never changes what the code computes. The exceptions are known:
//! `convergent`, and those that say how an argument is passed.

/// Attributes that stay.
const KNOWN: &[&str] = &[
    "align",
    "alwaysinline",
    "byval",
    "captures",
    "cold",
    "convergent",
    "dereferenceable",
    "inlinehint",
    "memory",
    "mustprogress",
    "noalias",
    "nocallback",
    "nofree",
    "noinline",
    "nonnull",
    "noreturn",
    "nosync",
    "noundef",
    "nounwind",
    "range",
    "readnone",
    "readonly",
    "returned",
    "signext",
    "sret",
    "speculatable",
    "willreturn",
    "writeonly",
    "zeroext",
];

/// Other words of a `define`, `declare` or `call` line.
const GRAMMAR: &[&str] = &[
    // the line itself
    "define",
    "declare",
    "call",
    "tail",
    "notail",
    "musttail",
    "asm",
    "sideeffect",
    "ptx_kernel",
    "ptx_device",
    "fastcc",
    "internal",
    "private",
    "hidden",
    "protected",
    "dso_local",
    "unnamed_addr",
    "local_unnamed_addr",
    "addrspace",
    // fast-math flags
    "nnan",
    "ninf",
    "nsz",
    "arcp",
    "contract",
    "afn",
    "reassoc",
    "fast",
    // types
    "void",
    "ptr",
    "half",
    "bfloat",
    "float",
    "double",
    "x",
    "label",
    "metadata",
    "token",
    // constants
    "true",
    "false",
    "null",
    "undef",
    "poison",
    "zeroinitializer",
    "splat",
    "to",
    "addrspacecast",
    "getelementptr",
    "inbounds",
    "nuw",
    "nsw",
    "inttoptr",
    "ptrtoint",
    "bitcast",
    "trunc",
    "sub",
    "add",
    "c",
];

/// The line without unknown attributes.
pub(super) fn keep_known(line: &str) -> String {
    let is_call = line.starts_with(' ') && (line.contains(" call ") || line.contains("= call "));
    let is_group = line.starts_with("attributes #");
    if line.starts_with("define ") || line.starts_with("declare ") || is_call || is_group {
        filter(line, is_group)
    } else {
        line.to_string()
    }
}

fn filter(line: &str, is_group: bool) -> String {
    let mut out = String::with_capacity(line.len());
    let mut rest = line;
    while let Some(first) = rest.chars().next() {
        let len = token_length(rest);
        let (token, after) = rest.split_at(len);
        rest = after;
        if first == '"' && is_group {
            // A string attribute, `"key"` or `"key"="value"`: none that rustc writes matters to libNVVM.
            if let Some(value) = rest.strip_prefix('=') {
                rest = &value[token_length(value)..];
            }
        } else if first.is_ascii_lowercase() && !is_kept(token) && !(is_group && token == "attributes") {
            rest = rest.strip_prefix('(').map_or(rest, |arguments| &arguments[closing(arguments)..]);
            rest = rest.trim_start_matches(' ');
        } else {
            out += token;
        }
    }
    out
}

fn is_kept(word: &str) -> bool {
    let is_integer_type =
        word.strip_prefix('i').is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()));
    is_integer_type || KNOWN.contains(&word) || GRAMMAR.contains(&word) || is_memory_word(word)
}

/// Words inside `memory(…)` and `captures(…)`.
fn is_memory_word(word: &str) -> bool {
    ["none", "read", "write", "readwrite", "argmem", "inaccessiblemem", "errnomem"].contains(&word)
        || ["address", "provenance", "ret"].contains(&word)
}

/// Length of the token that `text` starts with: a word, a string, a name with its sigil, or one character.
fn token_length(text: &str) -> usize {
    let is_word = |c: char| c.is_ascii_alphanumeric() || "_.$-".contains(c);
    let word = |text: &str| text.find(|c| !is_word(c)).unwrap_or(text.len());
    let string = |text: &str| 1 + text[1..].find('"').map_or(text.len() - 1, |end| end + 1);
    match text.chars().next() {
        None => 0,
        Some('"') => string(text),
        Some('@' | '%' | '!' | '#') if text[1..].starts_with('"') => 1 + string(&text[1..]),
        Some('@' | '%' | '!' | '#') => 1 + word(&text[1..]),
        Some(c) if is_word(c) => word(text),
        Some(c) => c.len_utf8(),
    }
}

/// Length up to and with the parenthesis that closes one opened before `text`.
fn closing(text: &str) -> usize {
    let mut depth = 1;
    for (index, c) in text.char_indices() {
        depth += i32::from(c == '(') - i32::from(c == ')');
        if depth == 0 {
            return index + 1;
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::keep_known;

    #[test]
    fn known_attributes_stay() {
        for line in [
            "define ptx_kernel void @k(ptr noundef %x, i64 noundef %rows) unnamed_addr #0 \"nvvm.maxntid\"=\"256\" {",
            "  %1 = tail call i32 @llvm.nvvm.shfl.sync.bfly.i32(i32 -1, i32 %0, i32 range(i32 1, 0) 16, i32 31), !noalias !2",
            "  %4 = tail call nsz float @llvm.maximumnum.f32(float %3, float 4.480000e+02)",
            "declare void @llvm.lifetime.start.p0(ptr captures(none)) #1",
            "define ptx_kernel void @k(ptr byval([24 x i8]) align 8 captures(none) dereferenceable(24) %by_value) #0 {",
            "  tail call void asm sideeffect \"st.global.b32 [${0}], ${1};\", \"l,r,~{memory}\"(i64 %1, i32 %2) #7",
            "  store float %1, ptr %slot, align 4, !noalias !2",
        ] {
            assert_eq!(keep_known(line), line);
        }
    }

    #[test]
    fn unknown_attributes_go() {
        assert_eq!(
            keep_known(
                "define void @f(ptr dead_on_return(24) initializes((0, 4)) noalias %p, i32 futuristic %q) newish #0 {"
            ),
            "define void @f(ptr noalias %p, i32 %q) #0 {"
        );
        assert_eq!(
            keep_known(
                "attributes #0 = { convergent nocreateundeforpoison nounwind memory(argmem: read) \"target-cpu\"=\"sm_30\" }"
            ),
            "attributes #0 = { convergent nounwind memory(argmem: read)  }"
        );
    }
}
