//! What the reference's kernels wrote on an H200 (`tests/golden/README.md`).

use crate::sample::Sample;
use crate::{Buffer, Case, Tensor};
use half::{bf16, f16};
use ptq_cpu::Params;
use ptq_spec::{Dispatch, Element, Extended, MathMode, Options, Shape, ZeroRows};
use safetensors::SafeTensors;
use safetensors::tensor::{Dtype, TensorView};
use std::sync::Arc;

const FILE: &[u8] = include_bytes!("../../tests/golden/sglang_h200.safetensors");

/// Row lengths; each element type has a group of each.
const HIDDEN: [u64; 6] = [4, 8, 36, 512, 1076, 1368];
/// The reference's two kernels.
const DISPATCHES: [Dispatch; 2] = [Dispatch::Cta, Dispatch::Warp];

/// Every group in both math modes and both dispatches, against the recorded bytes.
///
/// # Panics
/// Where the file is not what its README says.
pub fn cases() -> impl Iterator<Item = Case> {
    let file = SafeTensors::deserialize(FILE).expect("the golden file is a safetensors file");
    let (_, header) = SafeTensors::read_metadata(FILE).expect("the golden file has a header");
    let metadata = header.metadata().clone().expect("the golden file has metadata");
    let groups = Element::ALL.into_iter().flat_map(|element| HIDDEN.map(|hidden| (element, hidden)));
    groups.flat_map(move |(element, hidden)| {
        let group = format!("{element}_h{hidden}");
        let row_kinds = row_kinds(metadata.get(&group).expect("the metadata describe every group"));
        let rows = row_kinds.len();
        let tensor = |name: &str, dtype, columns| {
            let name = format!("{group}/{name}");
            let view = file.tensor(&name).expect("every group has all its tensors");
            assert_eq!((view.dtype(), view.shape()), (dtype, [rows, columns].as_slice()), "{name}");
            view
        };
        let columns = hidden as usize;
        let x = Arc::new(match element {
            Element::F16 => input::<f16>(&tensor("input", Dtype::F16, columns)),
            Element::Bf16 => input::<bf16>(&tensor("input", Dtype::BF16, columns)),
            Element::F32 => input::<f32>(&tensor("input", Dtype::F32, columns)),
        });
        let modes = MathMode::ALL.into_iter().flat_map(|math| DISPATCHES.map(|dispatch| (math, dispatch)));
        let cases = modes.map(|(math, dispatch)| {
            let q = tensor(&format!("q_{math}_{dispatch}"), Dtype::U8, columns).data().to_vec();
            let s = elements(&tensor(&format!("s_{math}_{dispatch}"), Dtype::F32, 1)).collect();
            Case {
                name: format!("golden {group} {math} {dispatch}"),
                x: x.clone(),
                shape: Shape::new(rows as u64, hidden).expect("a valid shape"),
                params: Params { options: Options { zero_rows: ZeroRows::Legacy, dispatch }, ..Params::new(math) },
                extended: Extended::default(),
                device_rows: None,
                q_offset: 0,
                row_kinds: row_kinds.clone(),
                recorded: Some((q, s)),
            }
        });
        cases.collect::<Vec<_>>()
    })
}

fn input<T: Sample>(view: &TensorView<'_>) -> Tensor {
    T::tensor(Buffer::new(elements::<T>(view), 0, T::with_bits(T::INFINITY)))
}

/// The elements of a tensor, whatever its alignment.
fn elements<T: Sample>(view: &TensorView<'_>) -> impl ExactSizeIterator<Item = T> {
    view.data().chunks_exact(size_of::<T>()).map(|bytes| {
        let mut bits = [0; 4];
        bits[..bytes.len()].copy_from_slice(bytes);
        T::with_bits(u32::from_le_bytes(bits))
    })
}

/// The kind of every row, from `kind:count,...`.
fn row_kinds(description: &str) -> Arc<[String]> {
    let parts = description.split(',').map(|part| part.split_once(':').expect("parts are kind:count"));
    parts
        .flat_map(|(kind, count)| std::iter::repeat_n(kind.to_owned(), count.parse().expect("a count is a number")))
        .collect()
}
