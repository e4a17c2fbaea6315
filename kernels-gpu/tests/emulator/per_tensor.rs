//! The suite of per-tensor quantization through every entry and several grids, with what the host does between the kernels.

use crate::offsets::reserve;
use cuda_std::emulator::{Launch, MathFlags, Memory};
use half::bf16;
use ptq_spec::per_tensor::{ENTRIES, Entry, MAX_THREADS, Pass};
use ptq_spec::{Element, MathMode, Scale, ZeroRows};
use ptq_suite::per_tensor::{Call, Family, PerTensor, run};
use ptq_suite::{Budget, Oracle, Output, Tensor};
use std::error::Error;

/// Widest access of the host's build in bytes.
const VECTOR_BYTES: usize = 16;

/// CTAs and threads of the grids: one warp, several CTAs of several warps, and as many threads as a CTA may have.
const GRIDS: [(u32, u32); 3] = [(1, 32), (7, 64), (3, MAX_THREADS)];

const BUDGET: Budget = Budget { rows: usize::MAX, elements: 1 << 16 };

/// A kernel entry: x, q, s, elements, guard.
type Kernel = unsafe fn(*const u8, *mut u8, *mut f32, u64, u32);

macro_rules! table {
    ($(($name:ident, $pass:ident, $elements:tt),)*) => {
        /// The function of that entry.
        fn kernel(element: Element, name: &str) -> Kernel {
            match (element, name) {
                $(
                    (Element::F16, stringify!($name)) => ptq_kernels::entry::per_tensor::f16::$name,
                    (Element::Bf16, stringify!($name)) => ptq_kernels::entry::per_tensor::bf16::$name,
                    (Element::F32, stringify!($name)) => ptq_kernels::entry::per_tensor::f32::$name,
                )*
                _ => panic!("no entry {name}"),
            }
        }
    };
}
ptq_spec::for_each_per_tensor_entry!(table);

/// The kernels on the emulator, in a grid for both passes.
struct Emulator {
    ctas: u32,
    threads: u32,
    /// Widest vectors, elements.
    width: u32,
}

impl Emulator {
    /// The widest entry up to the given one that suits the addresses.
    fn entry(&self, pass: Pass, element: Element, x: usize, q: usize) -> &'static Entry {
        let suits = |entry: &&Entry| {
            entry.pass == pass
                && entry.elements_per_vector <= self.width
                && entry.suits(element, VECTOR_BYTES, x as u64, q as u64)
        };
        ENTRIES.iter().filter(suits).max_by_key(|entry| entry.elements_per_vector).expect("single elements always fit")
    }
}

impl PerTensor for Emulator {
    fn name(&self) -> String {
        format!("emulator, {} x {}, vectors up to {}", self.ctas, self.threads, self.width)
    }

    fn quantize(&self, call: &Call, out: &mut Output) -> Result<(), Box<dyn Error>> {
        let elements = call.elements() as u64;
        if elements == 0 {
            return Ok(());
        }
        let math = match call.math {
            MathMode::Fast => MathFlags::FAST,
            MathMode::Precise => MathFlags::PRECISE,
        };
        let launch = Launch { ctas: self.ctas, threads: self.threads, dynamic_shared: 0, math };
        let element = call.x.element();
        let guard = u32::from(call.zero_scale == ZeroRows::Guarded);
        let bytes: &[u8] = match &*call.x {
            Tensor::F16(x) => bytemuck::cast_slice(x.operand()),
            Tensor::Bf16(x) => bytemuck::cast_slice(x.operand()),
            Tensor::F32(x) => bytemuck::cast_slice(x.operand()),
        };
        let addresses = (bytes.as_ptr().addr(), out.q.operand().as_ptr().addr());
        let run = |pass, memory: &Memory<'_>, [x, q, s]: [cuda_std::emulator::Address; 3]| {
            let entry = self.entry(pass, element, addresses.0, addresses.1);
            let run = kernel(element, entry.name);
            let (x, q, s) = (x, q, s);
            let ran = launch.run(memory, || {
                // SAFETY: the emulator checks every access of the kernels.
                unsafe { run(x.as_ptr(), q.as_mut_ptr(), s.as_mut_ptr(), elements, guard) }
            });
            (entry.name, ran)
        };
        if call.scale.source() == Scale::Dynamic {
            // The host's memset.
            out.s.operand_mut()[0] = 0.0;
            let mut memory = Memory::new();
            let x = memory.read_only("x", bytes);
            // A kernel that touches the codes in this pass is wrong.
            let q = memory.read_only::<u8>("q", &[]);
            let s = memory.writable("s", out.s.operand_mut());
            let (name, ran) = run(Pass::Absmax, &memory, [x, q, s]);
            out.kernel = Some(name);
            ran?;
        }
        let mut memory = Memory::new();
        let x = memory.read_only("x", bytes);
        let q = memory.writable("q", out.q.operand_mut());
        let s = memory.read_only("s", out.s.operand());
        let (name, ran) = run(Pass::Quantize, &memory, [x, q, s]);
        out.kernel = Some(name);
        Ok(ran?)
    }
}

/// Every width, each in one of the grids by turns; the families that are about places and sizes in all grids.
fn through_every_entry(name: &str) {
    let family = Family::named(name).expect("the list has it");
    let everywhere = ["sizes", "largest_at_each_part", "off_alignment"].contains(&name);
    for (number, width) in [1, 4, 8, 16].into_iter().enumerate() {
        for (turn, (ctas, threads)) in GRIDS.into_iter().enumerate() {
            if everywhere || number % GRIDS.len() == turn {
                // What costs the emulator most: a thread for every few elements is enough.
                let budget = if ctas == 1 { Budget { elements: 1 << 12, ..BUDGET } } else { BUDGET };
                let calls: Vec<_> = family.calls(budget).collect();
                if !calls.is_empty() {
                    run(&Emulator { ctas, threads, width }, Oracle::Scalar, calls).unwrap();
                }
            }
        }
    }
}

macro_rules! tests {
    ($($family:ident,)*) => {$(
        #[test]
        fn $family() {
            through_every_entry(stringify!($family));
        }
    )*};
}
ptq_suite::for_each_per_tensor_family!(tests);

/// Indices beyond 32 bits, in address space of which only the tensor's end is touched: that of the last CTA where the absmax is
/// taken, and of the first where codes are written, for it begins at the end.
#[test]
fn the_end_of_a_tensor_beyond_32_bits() {
    const CTAS: u32 = (1 << 28) + 1;
    const THREADS: u32 = 32;
    for width in [1, 4] {
        let ours = (THREADS * width) as usize;
        let elements = CTAS as usize * ours;
        let end: Vec<bf16> = (0..ours).map(|i| bf16::from_f32(i as f32 - 20.5)).collect();
        let (mut codes, mut scale) = (vec![0; ours], 0.0);
        let (math, legacy) = (MathMode::Precise, ZeroRows::Legacy);
        ptq_cpu::per_tensor::scalar::quantize_dynamic(&end, &mut codes, &mut scale, math, legacy).unwrap();

        let mut x = reserve(elements * size_of::<bf16>()).unwrap();
        x[(elements - ours) * size_of::<bf16>()..].copy_from_slice(bytemuck::cast_slice(&end));
        let mut q = reserve(elements).unwrap();
        let mut s = [0.0_f32];
        let launch = Launch { ctas: CTAS, threads: THREADS, dynamic_shared: 0, math: MathFlags::PRECISE };
        for (pass, cta) in [(Pass::Absmax, CTAS - 1), (Pass::Quantize, 0)] {
            let entry = Entry::find(pass, width).expect("the table has it");
            let run = kernel(Element::Bf16, entry.name);
            let mut memory = Memory::new();
            let (x, q) = (memory.read_only("x", &x), memory.writable("q", &mut q));
            let s = memory.writable("s", &mut s);
            let ran = launch.run_cta(cta, &memory, || {
                // SAFETY: the emulator checks every access of the kernels.
                unsafe { run(x.as_ptr(), q.as_mut_ptr(), s.as_mut_ptr(), elements as u64, 0) }
            });
            ran.unwrap_or_else(|fault| panic!("{}: {fault}", entry.name));
        }
        assert_eq!(s[0].to_bits(), scale.to_bits(), "the scale differs");
        assert_eq!(q[elements - ours..], codes, "codes differ");
    }
}
