use super::{case, strided};
use crate::sample::{Random, Sample as _, with_element};
use crate::{Budget, Case};
use ptq_cpu::Params;
use ptq_spec::per_token::REFERENCE_ROWS_PER_SM;
use ptq_spec::{Element, Extended, MIN_SCALE, MathMode};
use std::sync::Arc;

/// A count of rows in device memory, from none to more than there are, around the rows of a CTA of eight warps; rows
/// from it on keep their bytes. Every third row is zeros: their codes follow the number of rows that the host gives, on
/// one side or the other of the reference's threshold, whatever the count.
pub fn device_rows(budget: Budget) -> impl Iterator<Item = Case> {
    // On a chip of one multiprocessor.
    const BELOW: usize = REFERENCE_ROWS_PER_SM as usize - 1;
    let rows = [BELOW, 39];
    let shapes = rows.into_iter().flat_map(|rows| [8, 36, 1076, 4096].map(|hidden| (rows, hidden)));
    let shapes = shapes.filter(move |&(rows, hidden)| budget.holds(rows, hidden + 4));
    Element::ALL.into_iter().flat_map(move |element| {
        shapes.clone().flat_map(move |(rows, hidden)| {
            let counts = [0, 1, 7, 8, 9, rows - 1, rows, rows + 1].map(|count| count as u32);
            let counts = counts.into_iter().chain([u32::MAX]);
            let strided_too = Extended {
                x_stride: hidden as u64 + 4,
                q_stride: hidden as u64 + 4,
                min_scale: Some(MIN_SCALE),
                ..Extended::default()
            };
            [Extended::default(), strided_too].into_iter().flat_map(move |extended| {
                let stride = hidden.max(extended.x_stride as usize);
                let mut random = Random(13);
                let x = Arc::new(with_element!(element, T => strided::<T>(rows, hidden, stride, 0, |row, _| {
                    let ordinary = random.moderate();
                    if row % 3 == 2 { T::with_bits(0) } else { ordinary }
                })));
                counts.clone().flat_map(move |count| {
                    let x = x.clone();
                    MathMode::ALL.map(|math| {
                        let params = Params { sm_count: 1, ..Params::new(math) };
                        let case = case(&format!("device rows {count}"), &x, (rows, rows, hidden), params);
                        Case { extended, device_rows: Some(count), ..case }
                    })
                })
            })
        })
    })
}
