//! The emulator as the suite's subject.

use crate::entries::kernel;
use cuda_std::emulator::{Launch, MathFlags, Memory};
use ptq_spec::per_token::{ENTRIES, Entry, LANES_PER_WARP, Strategy};
use ptq_spec::{Element, MathMode};
use ptq_suite::{Case, Implementation, Output, Tensor};
use std::error::Error;

/// Threads per CTA where nobody says otherwise.
const THREADS: u32 = 64;

/// Widest access of the host's build in bytes.
const VECTOR_BYTES: usize = 16;

/// The kernels on the emulator.
pub struct Emulator {
    forced: Option<(&'static Entry, u32)>,
}

impl Emulator {
    /// With the entry that has the widest vectors, of those that fit a call the fewest of them.
    pub fn best() -> Self {
        Self { forced: None }
    }

    /// With that entry and number of threads per CTA.
    pub fn forced(entry: &'static Entry, threads: u32) -> Self {
        Self { forced: Some((entry, threads)) }
    }
}

/// Whether the entry, with that many threads per CTA, takes rows of that length at addresses of those remainders.
fn fits(entry: &Entry, threads: u32, element: Element, hidden: u64, (x, q): (usize, usize)) -> bool {
    let elements = entry.elements_per_vector as usize;
    threads <= entry.strategy.max_threads()
        && hidden.is_multiple_of(elements as u64)
        && x.is_multiple_of((elements * element.bytes()).min(VECTOR_BYTES))
        && q.is_multiple_of(elements)
        && entry.max_hidden(threads).is_none_or(|longest| hidden <= longest)
}

/// Whether the entry takes the case with that many threads per CTA.
pub fn takes(entry: &Entry, threads: u32, case: &Case) -> bool {
    fits(entry, threads, case.x.element(), case.shape.hidden(), case.offsets())
}

/// The entry with the widest vectors, and the fewest of them, for a call with operands at those addresses.
fn choose(element: Element, hidden: u64, addresses: (usize, usize)) -> &'static Entry {
    let fits = |entry: &&Entry| fits(entry, THREADS, element, hidden, addresses);
    let held = ENTRIES.iter().filter(|entry| entry.strategy != Strategy::CtaTwoPass).filter(fits);
    let widest = |entry: &&Entry| (entry.elements_per_vector, std::cmp::Reverse(entry.vectors_per_thread));
    held.max_by_key(widest)
        .or_else(|| ENTRIES.iter().filter(fits).max_by_key(widest))
        .expect("the two-pass entry of single elements takes any call")
}

impl Implementation for Emulator {
    fn name(&self) -> String {
        match self.forced {
            Some((entry, threads)) => format!("emulator {} x {threads}", entry.name),
            None => "emulator".into(),
        }
    }

    fn quantize(&self, case: &Case, out: &mut Output) -> Result<(), Box<dyn Error>> {
        let element = case.x.element();
        let (rows, hidden) = (case.shape.rows(), case.shape.hidden());
        let guard = case.params.options.guard(rows, case.params.sm_count);
        let math = match case.params.math {
            MathMode::Fast => MathFlags::FAST,
            MathMode::Precise => MathFlags::PRECISE,
        };

        let mut memory = Memory::new();
        let x = match &*case.x {
            Tensor::F16(x) => memory.read_only("x", x.operand()),
            Tensor::Bf16(x) => memory.read_only("x", x.operand()),
            Tensor::F32(x) => memory.read_only("x", x.operand()),
        };
        // Only the input's rows: a kernel that touches those beyond is wrong.
        let q = memory.writable("q", &mut out.q.operand_mut()[..(rows * hidden) as usize]);
        let s = memory.writable("s", &mut out.s.operand_mut()[..rows as usize]);

        let addresses = (x.as_ptr::<u8>().addr(), q.as_ptr::<u8>().addr());
        let (entry, threads) = self.forced.unwrap_or_else(|| (choose(element, hidden, addresses), THREADS));
        out.kernel = Some(entry.name);
        let rows_per_cta = if entry.strategy == Strategy::Warp { threads / LANES_PER_WARP } else { 1 };
        let ctas = u32::try_from(rows.div_ceil(rows_per_cta.into()))?;
        let run = kernel(element, entry.name);
        Launch { ctas, threads, dynamic_shared: 0, math }.run(&memory, || {
            // SAFETY: the emulator checks every access of the kernels.
            unsafe { run(x.as_ptr(), q.as_mut_ptr(), s.as_mut_ptr(), rows, hidden, guard.into()) }
        })?;
        Ok(())
    }
}
