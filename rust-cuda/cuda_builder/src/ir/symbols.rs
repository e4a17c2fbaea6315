//! Symbol names that depend on the code alone.

/// Removes the crate hashes of v0-mangled names: `Cs9OKl_11ptq_kernels` becomes `C11ptq_kernels`. They depend on the
/// folder and the compiler's build, and end up in the names of shared arrays.
pub(super) fn without_crate_hashes(module: &str) -> String {
    let mut out = String::with_capacity(module.len());
    let mut rest = module;
    while let Some(start) = rest.find("_R") {
        let end = start + 2 + rest[start + 2..].bytes().take_while(|b| b.is_ascii_alphanumeric() || *b == b'_').count();
        out += &rest[..start];
        out += &strip_symbol(&rest[start..end]);
        rest = &rest[end..];
    }
    out + rest
}

fn strip_symbol(symbol: &str) -> String {
    let mut out = String::with_capacity(symbol.len());
    let mut rest = symbol;
    while let Some(start) = rest.find("Cs") {
        let (before, after) = rest.split_at(start + 1);
        out += before;
        let digits = after[1..].bytes().take_while(u8::is_ascii_alphanumeric).count();
        let tail = &after[1 + digits..];
        // `Cs<base 62>_<length>`: a crate root. Anything else stays.
        rest = match tail.strip_prefix('_') {
            Some(name) if name.starts_with(|c: char| c.is_ascii_digit()) => name,
            _ => after,
        };
    }
    out + rest
}

#[cfg(test)]
mod tests {
    use super::without_crate_hashes;

    #[test]
    fn crate_hashes_go() {
        let line = "@_RNvNvNtCs9OKlpgqczqG_11ptq_kernels3cta10reduce_max6SHARED = internal";
        assert_eq!(without_crate_hashes(line), "@_RNvNvNtC11ptq_kernels3cta10reduce_max6SHARED = internal");
        assert_eq!(without_crate_hashes("define void @main_Cs1_a()"), "define void @main_Cs1_a()");
    }
}
