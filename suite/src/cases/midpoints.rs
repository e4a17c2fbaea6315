use super::{both_modes, tensor};
use crate::sample::{Random, Sample, with_element};
use crate::{Budget, Case};
use ptq_spec::Element;
use ptq_spec::fp8::{E4M3_BIAS, E4M3_MANTISSA_BITS, E4M3_MAX, E4M3_MAX_CODE};
use ptq_spec::per_token::ENTRIES;

/// Units in the last place around each value: a scale and a product that are rounded move it by less.
const NEIGHBOURS: std::ops::RangeInclusive<i32> = -2..=2;
/// Rows of scales that are no power of two.
const OTHER_SCALES: usize = 24;

/// Every E4M3 value and every midpoint of two, of either sign, times the row's scale, with the elements next to it.
///
/// The scales are every power of two under which the element type has them all, so that midpoints are exact ties, and
/// some in between.
pub fn midpoints(budget: Budget) -> impl Iterator<Item = Case> {
    Element::ALL.into_iter().flat_map(move |element| {
        let (x, hidden, kinds) = with_element!(element, T => rows::<T>());
        let fits = budget.holds(kinds.len(), hidden);
        fits.then(|| both_modes("midpoints", x, hidden, kinds.into())).into_iter().flatten()
    })
}

fn rows<T: Sample>() -> (crate::Tensor, usize, Vec<String>) {
    let values = values_and_midpoints();
    // A power of two times the smallest and the largest: then times all of them.
    let exact = |v: f64| f64::from(T::with_bits(T::bits_near(v)).widen()) == v;
    let powers = (-149..128).filter(|&k| exact(values[1] * 2f64.powi(k)) && exact(f64::from(E4M3_MAX) * 2f64.powi(k)));
    let mut scales: Vec<(String, u32)> =
        powers.map(|k| (format!("scale 2^{k}"), T::bits_near(f64::from(E4M3_MAX) * 2f64.powi(k)))).collect();
    let mut random = Random(6);
    let largest_field = T::INFINITY / T::MIN_NORMAL - 1;
    scales.extend((0..OTHER_SCALES).map(|_| {
        let absmax = T::bits_near(random.up_to::<T>(largest_field).widen().abs().into()).max(T::MIN_NORMAL);
        (format!("absmax {absmax:#x}"), absmax)
    }));

    let signs = [0, T::SIGN];
    // For entries of any vector.
    let widest = ENTRIES.iter().map(|entry| entry.elements_per_vector as usize).max().expect("there are entries");
    let row = |absmax: u32| {
        let scale = f64::from(T::with_bits(absmax).widen()) / f64::from(E4M3_MAX);
        let around =
            |v: f64| NEIGHBOURS.map(move |ulps| T::bits_near(v * scale).saturating_add_signed(ulps).min(absmax));
        let elements = values.iter().flat_map(|&v| around(v)).flat_map(|bits| signs.map(|sign| sign | bits));
        let mut row: Vec<u32> = std::iter::once(absmax).chain(elements).collect();
        row.resize(row.len().next_multiple_of(widest), 0);
        row
    };
    let bits: Vec<Vec<u32>> = scales.iter().map(|(_, absmax)| row(*absmax)).collect();
    let hidden = bits[0].len();
    let x = tensor::<T>(bits.len(), hidden, 0, |row, column| T::with_bits(bits[row][column]));
    (x, hidden, scales.into_iter().map(|(kind, _)| kind).collect())
}

/// 0, the midpoint to the next value, that value, ... the largest value.
fn values_and_midpoints() -> Vec<f64> {
    let value = |code: u8| {
        let (field, mantissa) = (code >> E4M3_MANTISSA_BITS, code & ((1 << E4M3_MANTISSA_BITS) - 1));
        // Subnormal values have the exponent of the smallest normal one, and no leading 1.
        let leading = if field == 0 { 0 } else { 1 << E4M3_MANTISSA_BITS };
        let exponent = i32::from(field.max(1)) - E4M3_BIAS - E4M3_MANTISSA_BITS as i32;
        f64::from(leading + mantissa) * 2f64.powi(exponent)
    };
    let steps = (0..E4M3_MAX_CODE).flat_map(|code| [value(code), (value(code) + value(code + 1)) / 2.0]);
    steps.chain([value(E4M3_MAX_CODE)]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use ptq_cpu::e4m3::encode;

    #[test]
    fn ties_go_to_even_and_their_neighbours_do_not() {
        let values = values_and_midpoints();
        assert_eq!(values.last(), Some(&f64::from(E4M3_MAX)));
        for (i, v) in values.iter().map(|&v| v as f32).enumerate() {
            let below = (i / 2) as u8;
            let tie = !i.is_multiple_of(2);
            assert_eq!(encode(v), if tie { below + below % 2 } else { below }, "{v}");
            if tie {
                assert_eq!((encode(v.next_down()), encode(v.next_up())), (below, below + 1), "{v}");
            }
        }
    }

    #[test]
    fn powers_of_two_are_every_one_that_is_exact() {
        let powers = |kinds: Vec<String>| kinds.iter().filter(|kind| kind.starts_with("scale")).count();
        // From the smallest subnormal over 2^-10 to the largest power over 2^8.
        assert_eq!(powers(rows::<half::f16>().2), (-14..=7).count());
        assert_eq!(powers(rows::<half::bf16>().2), (-123..=119).count());
        assert_eq!(powers(rows::<f32>().2), (-139..=119).count());
    }
}
