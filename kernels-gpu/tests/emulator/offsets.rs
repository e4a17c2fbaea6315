//! The last CTA of the largest grid: indices of 32 bits and offsets beyond them, in address space of which only that CTA's rows are
//! touched.

use crate::entries;
use cuda_std::emulator::{Launch, MathFlags, Memory};
use memmap2::{MmapMut, MmapOptions};
use ptq_cpu::Params;
use ptq_spec::per_token::{Entry, HIDDEN_MULTIPLE, LANES_PER_WARP, MAX_GRID, MAX_WARP_ENTRY_THREADS, Strategy};
use ptq_spec::{Element, Kernel, MathMode};
use ptq_suite::{Case, Implementation, Oracle, Output, Tensor, cases, run};
use std::error::Error;

/// Most CTAs of a grid.
const CTAS: u32 = MAX_GRID;

/// Warps of a CTA: with a warp entry, the last row's index takes 32 bits.
const WARPS: u32 = MAX_WARP_ENTRY_THREADS / LANES_PER_WARP;

/// Elements per row: with either, offsets have more than 32 bits.
const BY_WARPS: usize = HIDDEN_MULTIPLE as usize;
const BY_CTAS: usize = 32;

/// An entry whose input ends with the case's rows, as many as its last CTA has.
struct LastCta(&'static Entry);

impl LastCta {
    fn rows(&self) -> usize {
        if self.0.strategy == Strategy::Warp { WARPS as usize } else { 1 }
    }

    fn hidden(&self) -> usize {
        if self.0.strategy == Strategy::Warp { BY_WARPS } else { BY_CTAS }
    }
}

/// Address space of that many bytes. A page of memory comes with its first use, the others cost nothing.
pub fn reserve(bytes: usize) -> Result<MmapMut, String> {
    let reserved = MmapOptions::new().len(bytes).no_reserve_swap().map_anon();
    reserved.map_err(|e| format!("{bytes} bytes of address space: {e}; vm.overcommit_memory=2 or ulimit -v forbids it"))
}

impl Implementation for LastCta {
    fn name(&self) -> String {
        format!("emulator, last CTA, {}", self.0.name)
    }

    fn quantize(&self, case: &Case, out: &mut Output) -> Result<(), Box<dyn Error>> {
        let element = case.x.element();
        let (rows, hidden) = (CTAS as usize * self.rows(), self.hidden());
        let first = (rows - self.rows()) * hidden;
        let x_rows: &[u8] = match &*case.x {
            Tensor::F16(x) => bytemuck::cast_slice(x.operand()),
            Tensor::Bf16(x) => bytemuck::cast_slice(x.operand()),
            Tensor::F32(x) => bytemuck::cast_slice(x.operand()),
        };
        let s_rows: &mut [u8] = bytemuck::cast_slice_mut(out.s.operand_mut());
        let q_rows = out.q.operand_mut();

        let mut x = reserve(rows * hidden * element.bytes())?;
        let mut q = reserve(rows * hidden)?;
        let mut s = reserve(rows * size_of::<f32>())?;
        x[first * element.bytes()..].copy_from_slice(x_rows);
        q[first..].copy_from_slice(q_rows);
        s[first / hidden * size_of::<f32>()..].copy_from_slice(s_rows);

        let mut memory = Memory::new();
        let x_address = memory.read_only("x", &x);
        let q_address = memory.writable("q", &mut q);
        let s_address = memory.writable("s", &mut s);
        let plain = entries::plain(element, self.0.name);
        let extended = entries::extended(element, self.0.name);
        let launch =
            Launch { ctas: CTAS, threads: WARPS * LANES_PER_WARP, dynamic_shared: 0, math: MathFlags::PRECISE };
        launch.run_cta(CTAS - 1, &memory, || {
            let (x, q, s) = (x_address.as_ptr(), q_address.as_mut_ptr(), s_address.as_mut_ptr());
            let hidden = hidden as u64;
            if let Some(run) = plain {
                // SAFETY: the emulator checks every access of the kernels.
                unsafe { run(x, q, s, rows as u64, hidden, 0) }
            } else if let Some(run) = extended {
                let none = std::ptr::null();
                // SAFETY: as above.
                unsafe { run(x, q, s, rows as u64, hidden, 0, hidden, hidden, f32::INFINITY, 0.0, 0, none) }
            }
        })?;

        q_rows.copy_from_slice(&q[first..]);
        s_rows.copy_from_slice(&s[first / hidden * size_of::<f32>()..]);
        Ok(())
    }
}

#[test]
fn the_last_cta_of_the_largest_grid() {
    let entries = [Kernel::PerToken, Kernel::PerTokenExtended].into_iter().flat_map(Kernel::row_entries);
    for subject in entries.map(LastCta) {
        if !subject.hidden().is_multiple_of(subject.0.elements_per_vector as usize) {
            continue;
        }
        let params = Params::new(MathMode::Precise);
        let cases =
            Element::ALL.into_iter().map(|element| cases::ordinary(element, subject.rows(), subject.hidden(), params));
        run(&subject, Oracle::Scalar, cases).unwrap_or_else(|failures| panic!("{failures}"));
    }
}
