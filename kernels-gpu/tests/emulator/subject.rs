//! The emulator as the suite's subject.

use crate::entries;
use cuda_std::emulator::{Address, Launch, MathFlags, Memory};
use ptq_spec::per_token::{Caching, Entry, LANES_PER_WARP, Strategy, flags};
use ptq_spec::per_token_extended::Bounds;
use ptq_spec::{Kernel, MathMode, per_token_extended};
use ptq_suite::{Case, Implementation, Output, Tensor};
use std::error::Error;

/// Threads per CTA where nobody says otherwise.
const THREADS: u32 = 64;

/// Widest access of the host's build in bytes.
const VECTOR_BYTES: usize = 16;

/// The kernels on the emulator.
pub struct Emulator {
    forced: Option<(&'static Entry, u32)>,
    /// Most rows of a grid.
    rows_per_grid: usize,
}

impl Emulator {
    /// With the entry that has the widest vectors, of those that fit a call the fewest of them.
    pub fn best() -> Self {
        Self { forced: None, rows_per_grid: usize::MAX }
    }

    /// With that entry and number of threads per CTA.
    pub fn forced(entry: &'static Entry, threads: u32) -> Self {
        Self { forced: Some((entry, threads)), ..Self::best() }
    }

    /// With grids of at most that many rows, launched one after the other as the GPU runtime does.
    pub fn in_grids(self, rows_per_grid: usize) -> Self {
        Self { rows_per_grid, ..self }
    }
}

/// Whether the entry, with that many threads per CTA, takes the case with operands at those addresses. Entries of the
/// extended operation take every call, the others those that ask for nothing.
fn fits(entry: &Entry, threads: u32, case: &Case, (x, q): (usize, usize)) -> bool {
    let (elements, bytes) = (entry.elements_per_vector as usize, case.x.element().bytes());
    let (hidden, layout) = (case.shape.hidden(), case.layout());
    let x_access = (elements * bytes).min(VECTOR_BYTES);
    threads <= entry.strategy.max_threads()
        && (is_extended(entry) || case.kernel() == Kernel::PerToken)
        && hidden.is_multiple_of(elements as u64)
        && x.is_multiple_of(x_access)
        && (layout.x_stride() as usize * bytes).is_multiple_of(x_access)
        && q.is_multiple_of(elements)
        && layout.q_stride().is_multiple_of(elements as u64)
        && entry.max_hidden(threads).is_none_or(|longest| hidden <= longest)
}

fn is_extended(entry: &Entry) -> bool {
    per_token_extended::ENTRIES.contains(entry)
}

/// Whether the entry takes the case with that many threads per CTA.
pub fn takes(entry: &Entry, threads: u32, case: &Case) -> bool {
    fits(entry, threads, case, case.offsets())
}

/// The entry with the widest vectors, and the fewest of them, for a call with operands at those addresses.
fn choose(case: &Case, addresses: (usize, usize)) -> &'static Entry {
    let entries = case.kernel().row_entries();
    let fits = |entry: &&Entry| fits(entry, THREADS, case, addresses);
    let held = entries.iter().filter(|entry| entry.strategy != Strategy::CtaTwoPass).filter(fits);
    let widest = |entry: &&Entry| (entry.elements_per_vector, std::cmp::Reverse(entry.vectors_per_thread));
    held.max_by_key(widest)
        .or_else(|| entries.iter().filter(fits).max_by_key(widest))
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

        let (layout, quantized) = (case.layout(), case.quantized_rows());
        let x: &[u8] = match &*case.x {
            Tensor::F16(x) => bytemuck::cast_slice(x.operand()),
            Tensor::Bf16(x) => bytemuck::cast_slice(x.operand()),
            Tensor::F32(x) => bytemuck::cast_slice(x.operand()),
        };
        let mut memory = Memory::new();
        // Only the rows that the case quantizes: a kernel that touches those beyond, or what lies between, is wrong.
        if case.kernel() == Kernel::PerTokenExtended {
            let stride = layout.x_stride() as usize * element.bytes();
            for row in x.chunks(stride).take(quantized as usize) {
                memory.read_only("x", &row[..hidden as usize * element.bytes()]);
            }
        } else {
            memory.read_only("x", x);
        }
        let codes = if quantized == 0 { 0 } else { (quantized - 1) * layout.q_stride() + hidden };
        let q = memory.writable("q", &mut out.q.operand_mut()[..codes as usize]);
        let s = memory.writable("s", &mut out.s.operand_mut()[..quantized as usize]);
        let count = case.device_rows.map(|count| [count]);
        let device_rows = count.as_ref().map(|count| memory.read_only("device_rows", count));

        let addresses = (x.as_ptr().addr(), q.as_ptr::<u8>().addr());
        let (entry, threads) = self.forced.unwrap_or_else(|| (choose(case, addresses), THREADS));
        out.kernel = Some(entry.name);
        let rows_per_cta = if entry.strategy == Strategy::Warp { threads / LANES_PER_WARP } else { 1 };
        // Caching by turns: nothing shows of it here.
        let caching = Caching::ALL[rows as usize % 2];
        let flags = caching.flag() | if guard { flags::GUARD } else { 0 };
        let Bounds { upper, min_scale } = layout.bounds();
        let (x_stride, q_stride) = (layout.x_stride(), layout.q_stride());
        let all = rows as usize;
        for first in (0..all).step_by(self.rows_per_grid) {
            let rows = self.rows_per_grid.min(all - first) as u64;
            let launch =
                Launch { ctas: u32::try_from(rows.div_ceil(rows_per_cta.into()))?, threads, dynamic_shared: 0, math };
            let x_first = first * x_stride as usize * element.bytes();
            let q_first = first * q_stride as usize;
            let operands = || {
                let x = x.as_ptr().wrapping_add(x_first);
                (x, q.as_mut_ptr::<u8>().wrapping_add(q_first), s.as_mut_ptr::<f32>().wrapping_add(first))
            };
            if let Some(run) = entries::plain(element, entry.name) {
                launch.run(&memory, || {
                    let (x, q, s) = operands();
                    // SAFETY: the emulator checks every access of the kernels.
                    unsafe { run(x, q, s, rows, hidden, flags) }
                })?;
            } else {
                let run = entries::extended(element, entry.name).expect("the tables have no other entries");
                let first = first as u64;
                launch.run(&memory, || {
                    let (x, q, s) = operands();
                    let count = device_rows.map_or(std::ptr::null(), Address::as_ptr);
                    // SAFETY: the emulator checks every access of the kernels.
                    unsafe { run(x, q, s, rows, hidden, flags, x_stride, q_stride, upper, min_scale, first, count) }
                })?;
            }
        }
        Ok(())
    }
}
