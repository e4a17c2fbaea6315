//! PTX as text.

/// What an entry begins with, at the start of a line.
const ENTRY: &[u8] = b".visible .entry ";

/// The text less the entries of other names. What stands between entries, the arrays in shared memory above all, stays.
pub(crate) fn alone(text: &[u8], entry: &str) -> Vec<u8> {
    let mut kept = Vec::new();
    let mut inside = None;
    let mut depth = 0_usize;
    for line in text.split_inclusive(|&byte| byte == b'\n') {
        if let Some(rest) = line.strip_prefix(ENTRY) {
            let name = rest.split(|&byte| byte == b'(').next();
            inside = Some(name == Some(entry.as_bytes()));
        }
        if inside.unwrap_or(true) {
            kept.extend_from_slice(line);
        }
        let braces = |brace| line.iter().filter(|&&byte| byte == brace).count();
        let closed = braces(b'}');
        depth = (depth + braces(b'{')).saturating_sub(closed);
        if closed > 0 && depth == 0 {
            inside = None;
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::alone;

    const HEAD: &str = ".version 7.8\n.target sm_90\n\n.shared .align 16 .b8 a[128];\n\n";
    const FIRST: &str =
        ".visible .entry first(\n\t.param .u64 p\n)\n.maxntid 256\n{\n\t{ ret; }\n{\n ret;\n}\n\tret;\n}\n";
    const BETWEEN: &str = "\t// .globl\tsecond\n.shared .b8 b[4];\n";
    const SECOND: &str = ".visible .entry first_and_more(\n)\n{\n\tret;\n}\n";

    #[test]
    fn one_entry_is_left_with_all_that_is_no_entry() {
        let text = [HEAD, FIRST, BETWEEN, SECOND, "\n"].concat();
        let left = |name| String::from_utf8(alone(text.as_bytes(), name)).unwrap();
        assert_eq!(left("first"), [HEAD, FIRST, BETWEEN, "\n"].concat());
        assert_eq!(left("first_and_more"), [HEAD, BETWEEN, SECOND, "\n"].concat());
        assert_eq!(left("third"), [HEAD, BETWEEN, "\n"].concat());
        assert_eq!(alone(b".version 7.8", "first"), b".version 7.8");
    }

    #[test]
    fn line_ends_may_be_two_bytes() {
        let text = [HEAD, FIRST, BETWEEN, SECOND].concat().replace('\n', "\r\n");
        let expected = [HEAD, BETWEEN, SECOND].concat().replace('\n', "\r\n");
        assert_eq!(alone(text.as_bytes(), "first_and_more"), expected.as_bytes());
    }
}
