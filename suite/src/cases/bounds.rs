use super::{case, tensor};
use crate::sample::{Random, Sample, with_element};
use crate::{Budget, Case, Tensor};
use ptq_cpu::Params;
use ptq_spec::{Dispatch, Element, Extended, MIN_SCALE, MathMode, Options, ZeroRows};
use std::sync::Arc;

/// What a row is; each kind comes with every bound.
const KINDS: [&str; 10] = [
    "ordinary values",
    "zeros of both signs",
    "NaN",
    "NaN and zeros",
    "infinity among ordinary values",
    "huge values",
    "subnormals",
    "near the smallest normal",
    "absmax of one",
    "absmax just above one",
];

/// Bounds on the scale, upper and lower, alone and both, on every kind of row: bounds that do nothing, that most rows
/// meet, that no row escapes, the largest and the smallest of them, subnormal ones among them.
pub fn bounds(budget: Budget) -> impl Iterator<Item = Case> {
    const ROWS: usize = 2 * KINDS.len();
    let subnormal = f32::MIN_POSITIVE / 2.0;
    let uppers = [1.0, 1e-3, 1e-30, f32::MAX, f32::MIN_POSITIVE, subnormal, f32::from_bits(1)].map(Some);
    let floors = [MIN_SCALE, 0.5, 1.0 / 448.0, f32::MAX, f32::MIN_POSITIVE, subnormal, f32::from_bits(1)].map(Some);
    let alone = uppers.map(|upper| (upper, None)).into_iter().chain(floors.map(|floor| (None, floor)));
    let both = [(Some(1.0), Some(MIN_SCALE)), (Some(1e-3), Some(MIN_SCALE)), (Some(448.0), Some(2.0))];
    let pairs = alone.chain(both);
    let zero_rows = [(ZeroRows::Legacy, Dispatch::Cta), (ZeroRows::Guarded, Dispatch::Auto)];
    Element::ALL.into_iter().flat_map(move |element| {
        let pairs = pairs.clone();
        [12, 16, 1076, 4096].into_iter().filter(move |&hidden| budget.holds(ROWS, hidden)).flat_map(move |hidden| {
            let x = Arc::new(with_element!(element, T => rows::<T>(ROWS, hidden)));
            let row_kinds: Arc<[String]> = (0..ROWS).map(|row| KINDS[row % KINDS.len()].to_owned()).collect();
            pairs.clone().flat_map(move |(scale_upper_bound, min_scale)| {
                let extended = Extended { scale_upper_bound, min_scale, ..Extended::default() };
                let (x, row_kinds) = (x.clone(), row_kinds.clone());
                zero_rows.into_iter().flat_map(move |(zero_rows, dispatch)| {
                    let name = format!("bounds {scale_upper_bound:?} {min_scale:?}, {zero_rows}, dispatch {dispatch}");
                    let options = Options { zero_rows, dispatch };
                    MathMode::ALL.map(|math| {
                        let params = Params { options, ..Params::new(math) };
                        let case = case(&name, &x, (ROWS, ROWS, hidden), params);
                        Case { extended, row_kinds: row_kinds.clone(), ..case }
                    })
                })
            })
        })
    })
}

fn rows<T: Sample>(rows: usize, hidden: usize) -> Tensor {
    let mut random = Random(11);
    tensor::<T>(rows, hidden, 0, |row, column| {
        let ordinary: T = random.moderate();
        let bits = random.bits();
        let sign = if (row + column).is_multiple_of(2) { 0 } else { T::SIGN };
        // The first column, and the last, decide the maximum by turns.
        let decides = column == if row < KINDS.len() { 0 } else { hidden - 1 };
        T::with_bits(match KINDS[row % KINDS.len()] {
            "zeros of both signs" => sign,
            "NaN" => sign | T::NAN,
            "NaN and zeros" if column.is_multiple_of(3) => sign | T::NAN,
            "NaN and zeros" => sign,
            "infinity among ordinary values" if decides => sign | T::INFINITY,
            "huge values" => sign | (T::INFINITY - 1 - bits % T::MIN_NORMAL),
            "subnormals" => sign | (bits % T::MIN_NORMAL),
            "near the smallest normal" => sign | (T::MIN_NORMAL - 4 + bits % 8),
            "absmax of one" if decides => sign | T::ONE,
            "absmax just above one" if decides => sign | (T::ONE + 1),
            "absmax of one" | "absmax just above one" => sign | (T::ONE - 1 - bits % (4 * T::MIN_NORMAL)),
            _ => return ordinary,
        })
    })
}
