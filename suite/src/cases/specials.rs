use super::{both_modes, tensor};
use crate::sample::{Random, Sample, with_element};
use crate::{Budget, Case, Tensor};
use ptq_spec::Element;

/// Longest row in which a special value takes every column, and not just the first, a middle and the last.
const EACH_COLUMN: usize = 20;

/// What the rest of a special value's row is.
const BACKGROUNDS: [&str; 5] = ["ordinary values", "zeros", "NaN", "subnormals", "huge values"];

/// Each special value at each column of a short row, at the first, a middle and the last of a longer one, among ordinary
/// values, zeros, NaN, subnormals and huge values.
pub fn specials(budget: Budget) -> impl Iterator<Item = Case> {
    Element::ALL.into_iter().flat_map(move |element| {
        [4, 8, EACH_COLUMN, 36, 1076, 4096].into_iter().flat_map(move |hidden| {
            let rows = with_element!(element, T => rows::<T>(hidden));
            let kinds = rows.iter().map(Row::kind).collect();
            let fits = budget.holds(rows.len(), hidden);
            let case =
                || both_modes("special values", with_element!(element, T => input::<T>(&rows, hidden)), hidden, kinds);
            fits.then(case).into_iter().flatten()
        })
    })
}

/// One row: a special value among others.
struct Row {
    name: String,
    bits: u32,
    column: usize,
    background: &'static str,
}

impl Row {
    fn kind(&self) -> String {
        format!("{} at {} among {}", self.name, self.column, self.background)
    }
}

fn rows<T: Sample>(hidden: usize) -> Vec<Row> {
    let columns = if hidden <= EACH_COLUMN { (0..hidden).collect() } else { vec![0, hidden / 2, hidden - 1] };
    let mut rows = Vec::new();
    for (name, bits) in special_values::<T>() {
        for &column in &columns {
            rows.extend(BACKGROUNDS.map(|background| Row { name: name.clone(), bits, column, background }));
        }
    }
    rows
}

fn input<T: Sample>(rows: &[Row], hidden: usize) -> Tensor {
    let mut random = Random(2);
    tensor::<T>(rows.len(), hidden, 0, |row, col| {
        let Row { bits, column, background, .. } = rows[row];
        let ordinary: T = random.moderate();
        let subnormal = random.up_to(0);
        T::with_bits(match background {
            _ if col == column => bits,
            "ordinary values" => return ordinary,
            "zeros" => 0,
            "NaN" => T::NAN,
            "subnormals" => return subnormal,
            _ => T::INFINITY - 1 - col as u32 % T::MIN_NORMAL,
        })
    })
}

/// Names and bits of the special values.
pub(crate) fn special_values<T: Sample>() -> impl Iterator<Item = (String, u32)> {
    let magnitudes = [
        ("quiet NaN", T::NAN),
        ("signalling NaN", T::INFINITY | 1),
        ("infinity", T::INFINITY),
        ("largest finite", T::INFINITY - 1),
        ("one", T::ONE),
        ("twice the smallest normal", 2 * T::MIN_NORMAL),
        ("smallest normal", T::MIN_NORMAL),
        ("largest subnormal", T::MIN_NORMAL - 1),
        ("smallest subnormal", 1),
        ("zero", 0),
    ];
    magnitudes
        .into_iter()
        .flat_map(|(name, bits)| [(name.to_owned(), bits), (format!("negative {name}"), T::SIGN | bits)])
}
