//! What is asked for on the command line.

use crate::seed;
use per_token_quant_fp8::Element;

/// (rows, hidden).
pub type Shape = (u64, u64);

/// With the seed matrix, all shapes.
const MORE_TOKENS: [u64; 2] = [16384, 65536];
const MORE_HIDDEN: [u64; 2] = [7168, 16384];

/// Element types and shapes to measure, in order.
#[derive(Debug, PartialEq)]
pub struct Arguments {
    pub elements: Vec<Element>,
    pub shapes: Vec<Shape>,
}

impl Arguments {
    /// Names of element types, `ROWSxHIDDEN`, or `seed` for those shapes alone; all element types where none is named, all
    /// shapes where none is, seed first.
    pub fn parse(arguments: &[String]) -> Result<Self, String> {
        let (mut elements, mut shapes) = (Vec::new(), Vec::new());
        for argument in arguments.iter().filter(|a| !a.starts_with("--")) {
            let shape = argument.split_once('x').and_then(|(r, h)| Some((r.parse().ok()?, h.parse().ok()?)));
            match (Element::ALL.into_iter().find(|e| e.name() == argument), shape) {
                (Some(element), _) => elements.push(element),
                (_, Some((rows, hidden))) if rows > 0 && hidden > 0 => shapes.push((rows, hidden)),
                _ if argument == "seed" => shapes.extend(seed_shapes()),
                _ => return Err(format!("`{argument}` is no element type, no ROWSxHIDDEN, and not `seed`")),
            }
        }
        if elements.is_empty() {
            elements.extend(Element::ALL);
        }
        if shapes.is_empty() {
            shapes.extend(seed_shapes());
            shapes.extend(product(&seed::TOKENS, &MORE_HIDDEN));
            shapes.extend(product(&MORE_TOKENS, &seed::HIDDEN));
            shapes.extend(product(&MORE_TOKENS, &MORE_HIDDEN));
        }
        Ok(Self { elements, shapes })
    }
}

fn seed_shapes() -> impl Iterator<Item = Shape> {
    product(&seed::TOKENS, &seed::HIDDEN)
}

fn product(tokens: &'static [u64], hidden: &'static [u64]) -> impl Iterator<Item = Shape> {
    tokens.iter().flat_map(move |&rows| hidden.iter().map(move |&hidden| (rows, hidden)))
}
