//! Which entries a per-tensor call takes, in grids of which size. Neither ever shows in the bits.

use ptq_spec::per_tensor::{CTAS_PER_SM, ENTRIES, Entry, MAX_THREADS, Pass, Scale};
use ptq_spec::{Element, Target};

/// One kernel of a per-tensor call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TensorPass {
    /// One of [`ENTRIES`].
    pub entry: &'static Entry,
    /// CTAs of its grid.
    pub ctas: u32,
    /// Threads per CTA.
    pub threads: u32,
}

/// What the passes depend on.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TensorCall {
    pub element: Element,
    pub elements: u64,
    pub scale: Scale,
    /// Address of `x`.
    pub x: u64,
    /// Address of `q`.
    pub q: u64,
    /// Multiprocessors of the device.
    pub sm_count: u32,
    /// Most CTAs of one grid, at least one.
    pub grid_limit: u32,
}

/// The passes of a call of at least one element: that over the absmax where the scale is dynamic, and the quantizing one.
pub(crate) fn passes(target: &Target, call: TensorCall) -> (Option<TensorPass>, TensorPass) {
    let absmax = (call.scale == Scale::Dynamic).then(|| plan(Pass::Absmax, target, call));
    (absmax, plan(Pass::Quantize, target, call))
}

fn plan(pass: Pass, target: &Target, call: TensorCall) -> TensorPass {
    // A vector is one load, as in the policy of per-token quantization, where that was measured.
    let wanted = |entry: &&Entry| {
        entry.pass == pass
            && entry.elements_per_vector as usize * call.element.bytes() <= target.vector_bytes
            && entry.suits(call.element, target.vector_bytes, call.x, call.q)
    };
    let entry = ENTRIES
        .iter()
        .filter(wanted)
        .max_by_key(|entry| entry.elements_per_vector)
        .expect("the entry of single elements suits every call");
    let per_cta = u64::from(entry.elements_per_vector) * u64::from(MAX_THREADS);
    // Not tuned: as many CTAs as run at once.
    let most = call.sm_count.saturating_mul(CTAS_PER_SM).min(call.grid_limit).max(1);
    // At most `most`, which has 32 bits.
    let ctas = call.elements.div_ceil(per_cta).clamp(1, u64::from(most)) as u32;
    TensorPass { entry, ctas, threads: MAX_THREADS }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ptq_spec::TARGETS;
    use ptq_spec::per_token::MAX_GRID;

    fn call(element: Element, elements: u64, x: u64, q: u64) -> TensorCall {
        let (x, q) = ((1 << 20) + x, (1 << 30) + q);
        TensorCall { element, elements, scale: Scale::Dynamic, x, q, sm_count: 132, grid_limit: MAX_GRID }
    }

    fn names(target: &str, call: TensorCall) -> (&'static str, &'static str) {
        let (absmax, quantize) = passes(Target::by_name(target).unwrap(), call);
        (absmax.unwrap().entry.name, quantize.entry.name)
    }

    #[test]
    fn vectors_are_one_load_and_as_wide_as_the_addresses_allow() {
        let wide = ("per_tensor_absmax_e8", "per_tensor_quantize_e8");
        assert_eq!(names("sm_90", call(Element::Bf16, 1, 0, 0)), wide);
        assert_eq!(names("sm_90", call(Element::F32, 1, 0, 0)), ("per_tensor_absmax_e4", "per_tensor_quantize_e4"));
        assert_eq!(names("sm_100f", call(Element::F16, 1, 0, 0)), ("per_tensor_absmax_e16", "per_tensor_quantize_e16"));
        assert_eq!(names("sm_100f", call(Element::F32, 1, 0, 0)), wide);
        // The first pass does not touch q.
        assert_eq!(names("sm_90", call(Element::Bf16, 1, 0, 4)), ("per_tensor_absmax_e8", "per_tensor_quantize_e4"));
        assert_eq!(names("sm_90", call(Element::Bf16, 1, 2, 0)), ("per_tensor_absmax_e1", "per_tensor_quantize_e1"));
    }

    #[test]
    fn every_alignment_gets_entries_that_suit_it() {
        for target in TARGETS {
            for element in Element::ALL {
                for x in (0..64).step_by(element.bytes()) {
                    for q in 0..32 {
                        let call = call(element, 1000, x as u64, q);
                        let (absmax, quantize) = passes(target, call);
                        for pass in [absmax.unwrap(), quantize] {
                            assert!(pass.entry.suits(element, target.vector_bytes, call.x, call.q), "{pass:?}");
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn grids_cover_small_tensors_and_fill_the_device_with_large_ones() {
        let ctas = |elements, change: fn(&mut TensorCall)| {
            let mut call = call(Element::Bf16, elements, 0, 0);
            change(&mut call);
            passes(Target::by_name("sm_90").unwrap(), call).1.ctas
        };
        let per_cta = 8 * u64::from(MAX_THREADS);
        assert_eq!(ctas(1, |_| ()), 1);
        assert_eq!(ctas(per_cta, |_| ()), 1);
        assert_eq!(ctas(per_cta + 1, |_| ()), 2);
        assert_eq!(ctas(u64::MAX >> 8, |_| ()), 132 * CTAS_PER_SM);
        assert_eq!(ctas(1 << 40, |call| call.grid_limit = 3), 3);
        assert_eq!(ctas(1 << 40, |call| call.sm_count = 0), 1);
        assert_eq!(ctas(u64::MAX >> 8, |call| call.sm_count = u32::MAX), MAX_GRID);
    }

    #[test]
    fn a_static_scale_takes_one_pass() {
        let given = TensorCall { scale: Scale::Static, ..call(Element::F32, 9, 0, 0) };
        assert_eq!(passes(Target::by_name("sm_90").unwrap(), given).0, None);
    }
}
