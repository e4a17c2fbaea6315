//! Which tensors are quantized.

use crate::container::{Container, Tensor};
use crate::error::Error;
use per_token_quant_fp8::Element;
use safetensors::Dtype;
use std::collections::BTreeSet;

/// Names of the tensors that any pattern matches and that are 2-D f16, bf16 or f32.
///
/// # Errors
/// [`Error::NothingMatches`] and [`Error::NothingEligible`] for a pattern that selects nothing.
pub fn select<'c>(container: &'c Container<'_>, patterns: &[String]) -> Result<BTreeSet<&'c str>, Error> {
    let mut selected = BTreeSet::new();
    for pattern in patterns {
        let mut matched = container.tensors.iter().filter(|(name, _)| matches(pattern, name)).peekable();
        let Some(&(first_name, first)) = matched.peek() else {
            return Err(Error::NothingMatches { pattern: pattern.clone(), tensors: container.tensors.len() });
        };
        let mut eligible =
            matched.filter(|(_, tensor)| element(tensor).is_some()).map(|(name, _)| name.as_str()).peekable();
        if eligible.peek().is_none() {
            return Err(Error::NothingEligible {
                pattern: pattern.clone(),
                tensor: first_name.clone(),
                dtype: first.dtype.to_string(),
                shape: first.shape.clone(),
            });
        }
        selected.extend(eligible);
    }
    Ok(selected)
}

/// Element type of a tensor that can be quantized: two dimensions of a floating-point type that the kernels read.
pub fn element(tensor: &Tensor<'_>) -> Option<Element> {
    let element = match tensor.dtype {
        Dtype::F16 => Element::F16,
        Dtype::BF16 => Element::Bf16,
        Dtype::F32 => Element::F32,
        _ => return None,
    };
    (tensor.shape.len() == 2).then_some(element)
}

/// Whether `pattern` matches the whole `name`; `*` matches any characters, also none, and all others themselves.
fn matches(pattern: &str, name: &str) -> bool {
    let mut pieces = pattern.split('*');
    // `split` yields at least one piece.
    let first = pieces.next().unwrap_or_default();
    let Some(mut rest) = name.strip_prefix(first) else { return false };
    let Some(last) = pieces.next_back() else { return rest.is_empty() };
    // Between first and last, the leftmost place of each piece leaves the most for those behind it.
    for piece in pieces {
        let Some(at) = rest.find(piece) else { return false };
        rest = &rest[at + piece.len()..];
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn star_matches_any_characters_and_nothing_else_is_special() {
        for (pattern, name) in [
            ("*", ""),
            ("*", "a.b/c"),
            ("**", "x"),
            ("", ""),
            ("a.b", "a.b"),
            ("a*", "a"),
            ("*.weight", "layer.0/q.weight"),
            ("layer.*.q", "layer.10.attention.q"),
            ("*a*a", "aa"),
            ("a*b*c", "a--b--bc"),
            ("*ab*ab", "abab"),
            ("?[x]", "?[x]"),
            ("é*ü", "é…ü"),
        ] {
            assert!(matches(pattern, name), "{pattern} {name}");
        }
        for (pattern, name) in [
            ("", "a"),
            ("a", ""),
            ("a", "ab"),
            ("a.b", "axb"),
            ("?", "a"),
            ("[ab]", "a"),
            ("a*a", "a"),
            ("*a*a", "a"),
            ("*ab*ab", "xab"),
            ("a*b*c", "acb"),
            ("*.weight", "q.weight2"),
        ] {
            assert!(!matches(pattern, name), "{pattern} {name}");
        }
    }

    fn container(tensors: &[(&str, Dtype, &[usize])]) -> Container<'static> {
        let tensors = tensors
            .iter()
            .map(|&(name, dtype, shape)| (name.to_owned(), Tensor { dtype, shape: shape.to_vec(), data: &[] }));
        Container { header: &[], metadata: Default::default(), tensors: tensors.collect() }
    }

    #[test]
    fn ineligible_tensors_are_left_out_unless_nothing_else_matches() {
        let file = container(&[
            ("a.f16", Dtype::F16, &[1, 4]),
            ("a.bf16", Dtype::BF16, &[1, 4]),
            ("a.f32", Dtype::F32, &[1, 4]),
            ("a.f64", Dtype::F64, &[1, 4]),
            ("b.one", Dtype::F32, &[4]),
            ("b.three", Dtype::F32, &[1, 1, 4]),
        ]);
        let chosen = |patterns: &[&str]| {
            let patterns: Vec<_> = patterns.iter().map(|&p| p.to_owned()).collect();
            select(&file, &patterns).map(|names| names.into_iter().collect::<Vec<_>>())
        };
        assert_eq!(chosen(&["*"]).unwrap(), ["a.bf16", "a.f16", "a.f32"]);
        assert_eq!(chosen(&["*16", "*.f*"]).unwrap(), ["a.bf16", "a.f16", "a.f32"]);
        assert_eq!(chosen(&["a.f16", "a.f16"]).unwrap(), ["a.f16"]);
        assert!(matches!(chosen(&["*", "c*"]), Err(Error::NothingMatches { pattern, tensors: 6 }) if pattern == "c*"));
        assert!(matches!(chosen(&["b.*"]), Err(Error::NothingEligible { tensor, .. }) if tensor == "b.one"));
        assert!(matches!(chosen(&["*64"]), Err(Error::NothingEligible { dtype, .. }) if dtype == "F64"));
    }
}
