use super::{case, mixed_strided};
use crate::{Budget, Case};
use ptq_cpu::Params;
use ptq_spec::{Element, Extended, MathMode};

/// Rows of `x` and `q` apart from each other, each alone and both: by whole vectors, and by less, so that every other
/// row starts off the alignment of the one before. The gaps are infinite in `x` and keep their bytes in `q`.
pub fn strides(budget: Budget) -> impl Iterator<Item = Case> {
    const ROWS: usize = 5;
    const ROWS_OUT: usize = 7;
    // Elements between rows of x and of q.
    let gaps = [(1, 0), (0, 1), (3, 5), (2, 2), (4, 0), (0, 4), (4, 8), (8, 4), (8, 8), (16, 16), (0, 16), (100, 64)];
    // Elements by which x, bytes by which q is off.
    let offsets = [(0, 0), (1, 3), (8, 8)];
    let lengths = [4, 12, 16, 264, 1076, 4096, 20000];
    Element::ALL.into_iter().flat_map(move |element| {
        lengths.into_iter().filter(move |&hidden| budget.holds(ROWS_OUT, hidden + 100)).flat_map(move |hidden| {
            gaps.into_iter().flat_map(move |(x_gap, q_gap)| {
                offsets.into_iter().flat_map(move |(x_offset, q_offset)| {
                    let (x_stride, q_stride) = (hidden + x_gap, hidden + q_gap);
                    let x = mixed_strided(element, ROWS, hidden, x_stride, x_offset);
                    let name = format!("strides, x {x_stride} from {x_offset}, q {q_stride} from {q_offset}");
                    let extended =
                        Extended { x_stride: x_stride as u64, q_stride: q_stride as u64, ..Extended::default() };
                    MathMode::ALL.map(|math| {
                        let case = case(&name, &x, (ROWS, ROWS_OUT, hidden), Params::new(math));
                        Case { q_offset, extended, ..case }
                    })
                })
            })
        })
    })
}

/// One case of rows apart from each other by strides to choose, of x and of q.
pub fn apart(
    element: Element,
    rows: usize,
    hidden: usize,
    (x_stride, q_stride): (usize, usize),
    math: MathMode,
) -> Case {
    let x = mixed_strided(element, rows, hidden, x_stride, 0);
    let extended = Extended { x_stride: x_stride as u64, q_stride: q_stride as u64, ..Extended::default() };
    Case { extended, ..case("rows apart", &x, (rows, rows, hidden), Params::new(math)) }
}
