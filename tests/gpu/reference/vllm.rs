//! vLLM's own kernel, `dynamic_per_token_scaled_fp8_quant`: its scales are those of our bounds in precise mode, and its
//! codes are those of its scales by a division where we multiply by the reciprocal.

use crate::Outcome;
use crate::subject::{OnDevice, Operands, Subject, on_device};
use crate::vllm::{MAX_THREADS, Vllm, code};
use per_token_quant_fp8::cust::memory::DeviceBuffer;
use per_token_quant_fp8::cust::stream::{Stream, StreamFlags};
use per_token_quant_fp8::{Element, GpuElement, MIN_SCALE, MathMode, RawArgs, quantizer};
use ptq_suite::{Budget, Case, Implementation, Oracle, Output, Tensor, cases, check, cpu};
use std::error::Error;
use std::path::Path;

/// Elements of a vector of its kernel, which does not check that input and output are equally far off one.
const VECTOR: u64 = 16;

/// The library, and the stream of its launches.
struct Theirs {
    library: Vllm,
    stream: Stream,
}

/// Whether every row of the case starts at a vector and fills a CTA's threads: with fewer than a warp's it shuffles
/// among lanes that are not there. More is not asked of its kernel here.
fn suits(case: &Case) -> bool {
    let layout = case.layout();
    let (x, q) = case.offsets();
    let fills = case.shape.hidden() >= MAX_THREADS;
    fills && x == 0 && q == 0 && layout.x_stride().is_multiple_of(VECTOR) && layout.q_stride().is_multiple_of(VECTOR)
}

impl OnDevice<Case> for Theirs {
    fn quantize<T: GpuElement>(&self, operands: &mut Operands<T>, case: &Case) -> Result<(), Box<dyn Error>> {
        if !suits(case) || case.shape.rows() == 0 {
            return Err("vLLM's kernel is given rows of vectors alone, from a CTA's threads up".into());
        }
        let upper = case.extended.scale_upper_bound.map(|bound| DeviceBuffer::from_slice(&[bound])).transpose()?;
        let upper_address = upper.as_ref().map_or(0, |bound| bound.as_device_ptr().as_raw());
        let args = RawArgs { extended: case.extended, ..operands.raw(case.shape, case.params.options) };
        // SAFETY: the slices have the size of shape and strides, and live until the stream is done below, as the bound does;
        // the kernel is the element's, and there are rows.
        unsafe { self.library.kernel(T::ELEMENT)?.launch(&args, upper_address, &self.stream) }?;
        self.stream.synchronize()?;
        Ok(())
    }
}

/// With and without an upper bound, always with vLLM's floor.
fn all_cases() -> impl Iterator<Item = Case> {
    let apart = Element::ALL.into_iter().flat_map(|element| {
        [(1076, 1088, 1152), (1368, 1408, 1376), (4096, 4096, 4160), (7168, 7232, 7168)].into_iter().flat_map(
            move |(hidden, x_stride, q_stride)| {
                [None, Some(0.75), Some(1e-4)].map(|bound| {
                    let mut case = cases::apart(element, 133, hidden, (x_stride, q_stride), MathMode::Precise);
                    case.extended.scale_upper_bound = bound;
                    case
                })
            },
        )
    });
    let bounds = cases::bounds(Budget::UNBOUNDED).filter(|case| case.params.math == MathMode::Precise);
    apart.chain(bounds).filter(suits).map(|mut case| {
        case.extended.min_scale = Some(MIN_SCALE);
        case
    })
}

/// Ours against the CPU, vLLM's scales against the CPU's, and vLLM's codes against a division by them.
pub fn bounds(folder: &Path) -> Outcome {
    let vllm = Theirs { library: Vllm::load(folder)?, stream: Stream::new(StreamFlags::DEFAULT, None)? };
    let ours = Subject::new("ours", quantizer()?.with_math(MathMode::Precise)?)?;
    let (mut bounded, mut unbounded, mut other_codes) = (0, 0, 0);
    for case in all_cases() {
        check(&ours, Oracle::Rayon, &case)?;
        let mut expected = case.output();
        cpu::Rayon.quantize(&case, &mut expected)?;
        let mut theirs = case.output();
        on_device(&vllm, &case.x, &case, &mut theirs)?;
        let bits = |out: &Output| out.s.whole().iter().map(|s| s.to_bits()).collect::<Vec<_>>();
        if bits(&theirs) != bits(&expected) {
            return Err(format!("{}: vLLM's scales are others", case.name).into());
        }
        other_codes += compare_codes(&case, &expected, &theirs).map_err(|e| format!("{}: {e}", case.name))?;
        *if case.extended.scale_upper_bound.is_some() { &mut bounded } else { &mut unbounded } += 1;
    }
    println!(
        "{unbounded} cases without an upper bound, {bounded} with one; {other_codes} codes of vLLM's are not ours"
    );
    if bounded == 0 || unbounded == 0 || other_codes == 0 {
        return Err("a division and a product with the reciprocal should differ, with a bound and without".into());
    }
    Ok(())
}

/// Compares vLLM's codes with its arithmetic, and returns how many are not those of `ours`.
fn compare_codes(case: &Case, ours: &Output, theirs: &Output) -> Result<usize, String> {
    let layout = case.layout();
    let (x_stride, q_stride) = (layout.x_stride() as usize, layout.q_stride() as usize);
    let widened: Vec<f32> = match &*case.x {
        Tensor::F16(x) => x.operand().iter().map(|x| x.to_f32()).collect(),
        Tensor::Bf16(x) => x.operand().iter().map(|x| x.to_f32()).collect(),
        Tensor::F32(x) => x.operand().to_vec(),
    };
    // Guards, gaps and rows beyond the input's too, which nobody may touch.
    let mut expected = case.output();
    for row in 0..case.shape.rows() as usize {
        let scale = theirs.s.operand()[row];
        for column in 0..case.shape.hidden() as usize {
            let code = code(widened[row * x_stride + column], scale);
            expected.q.operand_mut()[row * q_stride + column] = code;
        }
    }
    let differ = |a: &Output, b: &Output| (0..a.q.whole().len()).filter(|&i| a.q.whole()[i] != b.q.whole()[i]).count();
    match differ(&expected, theirs) {
        0 => Ok(differ(ours, theirs)),
        wrong => Err(format!("{wrong} of vLLM's codes are not those of a division by its scales")),
    }
}
