//! What registers, memory and instructions of an entry of per-token quantization must be.

use crate::listing::Instruction;
use crate::{Listing, Used};
use per_token_quant_fp8::Artifact;
use ptq_spec::per_token::{Entry, LANES_PER_WARP, Strategy};
use ptq_spec::{Kernel, MathMode, Target};
use std::fmt::Debug;

/// 32-bit registers of a multiprocessor: CUDA C++ Programming Guide, "Compute Capabilities", for 8.0 to 12.0.
pub const REGISTERS_PER_SM: u32 = 1 << 16;

/// A thread gets registers in this many at a time.
pub const REGISTER_GRANULE: u32 = 8;

/// Most registers that an instruction can name.
const MAX_REGISTERS: u32 = 255;

/// Bytes of a row that a thread holds, at most, in the plans of `host/src/policy.rs` that are to fill a multiprocessor with
/// threads: those for rows of at most 512 threads.
const POLICY_BYTES: usize = 32;

/// Threads that a multiprocessor holds: CUDA C++ Programming Guide, "Compute Capabilities". Of the devices that run an
/// artifact, those with the most count.
fn threads_per_sm(target: &Target) -> u32 {
    if matches!(target.name, "sm_89" | "sm_120") { 1536 } else { 2048 }
}

/// Registers that a thread may take.
fn register_budget(artifact: &Artifact, entry: &Entry) -> u32 {
    let held = entry.vectors_per_thread * entry.elements_per_vector;
    let planned = entry.strategy != Strategy::CtaTwoPass && held as usize * artifact.element.bytes() <= POLICY_BYTES;
    // The policy's plans fill a multiprocessor with threads: loads in flight are what hides memory. The others must start.
    let threads = if planned { threads_per_sm(artifact.target) } else { entry.strategy.max_threads() };
    (REGISTERS_PER_SM / threads / REGISTER_GRANULE * REGISTER_GRANULE).min(MAX_REGISTERS)
}

fn named(artifact: &Artifact, name: &str) -> &'static Entry {
    artifact
        .kernel
        .row_entries()
        .iter()
        .find(|entry| entry.name == name)
        .expect("the artifact's entries are the table's")
}

/// What the cubin's tables say against the contract.
pub fn resources(artifact: &Artifact, used: &Used) -> Vec<String> {
    let mut wrong = Violations::default();
    for (name, resources) in used {
        let entry = named(artifact, name);
        wrong.entry = name;
        let budget = register_budget(artifact, entry);
        if resources.registers > budget || resources.registers == 0 {
            wrong.add(format!("{} registers, expected 1 to {budget}", resources.registers));
        }
        // Entries that hold no row may put a number aside in a loop.
        let most = if entry.strategy == Strategy::CtaTwoPass { 8 } else { 0 };
        wrong.unless_equal("more local memory than a number takes", resources.local > most, false);
        let numbers = usize::from(entry.strategy.barriers() > 0);
        wrong.unless_equal("bytes of shared memory", resources.shared, (numbers * size_of::<u32>()) as u64);
    }
    wrong.found
}

/// What the instructions are against the contract.
pub fn instructions(artifact: &Artifact, listing: &Listing) -> Vec<String> {
    let mut wrong = Violations::default();
    for (name, code) in listing {
        let entry = named(artifact, name);
        wrong.entry = name;
        if entry.strategy != Strategy::CtaTwoPass {
            local_memory(&mut wrong, code);
        }
        other_accesses(&mut wrong, code);
        wrong.unless_equal("raises of global memory", raises(code), 0);
        global_memory(&mut wrong, artifact, entry, code);
        order_of_grids(&mut wrong, artifact, code);
        collectives(&mut wrong, artifact.target, entry, code);
        arithmetic(&mut wrong, artifact, entry, code);
        calls(&mut wrong, artifact.math, entry, code);
    }
    // Division and reciprocal are made of fused multiply-adds, whatever the number of elements; nothing else is. Where the
    // absmax is in a uniform register, as in warp entries, there may be others.
    for in_warps in [true, false] {
        let of_kind = listing.iter().filter(|(name, _)| (named(artifact, name).strategy == Strategy::Warp) == in_warps);
        let mut fused: Vec<usize> = of_kind.map(|(_, code)| starting(code, "FFMA")).collect();
        fused.sort_unstable();
        fused.dedup();
        wrong.entry = if in_warps { "every warp entry" } else { "every CTA entry" };
        wrong.unless_equal("numbers of fused multiply-adds, apart from the entry", fused.len(), 1);
        wrong.unless_equal("no fused multiply-adds", fused[0] == 0, artifact.math == MathMode::Fast);
    }
    wrong.found
}

/// Nothing spills.
pub fn local_memory(wrong: &mut Violations, code: &[Instruction]) {
    none_of(wrong, code, &["LDL", "STL"]);
}

/// No access is of a kind that is not expected.
pub fn other_accesses(wrong: &mut Violations, code: &[Instruction]) {
    none_of(wrong, code, &["LD", "ST", "ATOM", "ATOMG", "LDGSTS"]);
}

fn none_of(wrong: &mut Violations, code: &[Instruction], opcodes: &[&str]) {
    for opcode in opcodes {
        let found = code.iter().filter(|i| i.opcode.split('.').next() == Some(*opcode)).count();
        wrong.unless_equal(opcode, found, 0);
    }
}

/// Where grids order themselves, the next may start and this one waits, once, before anything of global memory, before a
/// branch and before any thread ends.
pub fn order_of_grids(wrong: &mut Violations, artifact: &Artifact, code: &[Instruction]) {
    let expected = usize::from(artifact.orders_grids());
    wrong.unless_equal("PREEXIT", equal(code, "PREEXIT"), expected);
    wrong.unless_equal("ACQBULK", equal(code, "ACQBULK"), expected);
    let after = |i: &Instruction| ["LDG", "STG", "EXIT", "BRA", "BAR", "CALL"].iter().any(|o| i.opcode.starts_with(o));
    let before = code.iter().take_while(|i| i.opcode != "ACQBULK").filter(|_| artifact.orders_grids());
    wrong.unless_equal("instructions before the wait that belong behind it", before.filter(|i| after(i)).count(), 0);
}

/// The modifier of an access of that many bytes.
fn width(bytes: usize) -> &'static str {
    match bytes {
        1 => ".U8",
        2 => ".U16",
        4 => "",
        8 => ".64",
        16 => ".128",
        32 => ".ENL2.256",
        other => panic!("there is no access of {other} bytes"),
    }
}

/// A load of the input: read-only where no grid overlaps another.
pub fn load_opcode(artifact: &Artifact, bytes: usize) -> String {
    let constant = if artifact.orders_grids() { "" } else { ".CONSTANT" };
    format!("LDG.E{}{constant}", width(bytes))
}

/// A store of codes.
pub fn store_opcode(bytes: usize) -> String {
    format!("STG.E{}", width(bytes))
}

/// Loads are as wide as a vector, or the target's widest access; stores are whole vectors of codes, and the scale.
fn global_memory(wrong: &mut Violations, artifact: &Artifact, entry: &Entry, code: &[Instruction]) {
    let vector = entry.elements_per_vector as usize * artifact.element.bytes();
    let access = vector.min(artifact.target.vector_bytes);
    // The count of rows is loaded once.
    let counts = usize::from(artifact.kernel == Kernel::PerTokenExtended);
    wrong.unless_equal("the count of rows is loaded", equal(code, &load_opcode(artifact, 4)) >= counts, true);
    let load = load_opcode(artifact, access);
    let loads = equal(code, &load).saturating_sub(if access == 4 { counts } else { 0 });
    // Of rows that are held there is a second load, which asks caches not to keep them, where it was measured.
    let no_allocate = equal(code, &load.replace("LDG.E", "LDG.E.NA"));
    let twice = artifact.target.name == "sm_90" && entry.strategy != Strategy::CtaTwoPass;
    wrong.unless_equal("loads that caches are not to keep", no_allocate, if twice { loads } else { 0 });
    let known = loads + no_allocate + counts;
    wrong.unless_equal("loads from global memory, of vectors and the count", starting(code, "LDG"), known);

    let store = store_opcode(entry.elements_per_vector as usize);
    let scale = equal(code, "STG.E") - if store == "STG.E" { equal(code, &store) - 1 } else { 0 };
    wrong.unless_equal("stores of the scale", scale, 1);
    let stores = equal(code, &store) - usize::from(store == "STG.E");
    wrong.unless_equal("stores to global memory", starting(code, "STG"), stores + 1);

    let parts = vector / access;
    if entry.strategy == Strategy::CtaTwoPass {
        // The compiler unrolls both loops as it likes.
        wrong.unless_equal("whole vectors are loaded", loads % parts, 0);
        wrong.unless_equal("vectors are loaded in both passes", loads / parts > stores && stores > 0, true);
    } else {
        let vectors = entry.vectors_per_thread as usize;
        wrong.unless_equal(&load, loads, vectors * parts);
        wrong.unless_equal(&store, stores, vectors);
    }
}

/// Barriers and reductions are those written, none doubled.
fn collectives(wrong: &mut Violations, target: &Target, entry: &Entry, code: &[Instruction]) {
    let in_warps = entry.strategy == Strategy::Warp;
    shared_maximum(wrong, target, entry.strategy.barriers(), usize::from(!in_warps), code);
    if in_warps {
        let (redux, shuffles) = match target.name {
            "sm_100f" => ("CREDUX.MAX.F32", 0),
            "sm_90" => ("REDUX.MAX", 0),
            _ => ("", LANES_PER_WARP.ilog2() as usize),
        };
        wrong.unless_equal("warp reductions", equal(code, redux), usize::from(!redux.is_empty()));
        wrong.unless_equal("SHFL.BFLY", equal(code, "SHFL.BFLY"), shuffles);
        wrong.unless_equal("shuffles", starting(code, "SHFL"), shuffles);
    }
}

/// The maximum of a CTA: one number, which one lane of each warp raises by what ptxas reduces the warp's threads to.
pub fn shared_maximum(wrong: &mut Violations, target: &Target, barriers: usize, maxima: usize, code: &[Instruction]) {
    wrong.unless_equal("barriers", starting(code, "BAR."), barriers);
    wrong.unless_equal("stores to shared memory", starting(code, "STS"), maxima);
    wrong.unless_equal("loads from shared memory", starting(code, "LDS"), maxima);
    wrong.unless_equal("ATOMS.MAX", equal(code, "ATOMS.MAX"), maxima);
    wrong.unless_equal("atomics in shared memory", starting(code, "ATOMS"), maxima);
    if maxima > 0 {
        let redux = if target.name == "sm_100f" { "CREDUX.MAX" } else { "REDUX.MAX" };
        // Once more where ptxas does the same for a raise of global memory.
        let most = maxima + raises(code);
        wrong.unless_equal("a warp is reduced before it raises", (maxima..=most).contains(&equal(code, redux)), true);
        wrong.unless_equal("shuffles", starting(code, "SHFL"), 0);
    }
}

fn arithmetic(wrong: &mut Violations, artifact: &Artifact, entry: &Entry, code: &[Instruction]) {
    let fast = artifact.math == MathMode::Fast;
    for opcode in ["FMUL", "FMNMX"] {
        let flushing = code.iter().filter(|i| i.opcode.starts_with(opcode));
        let other = flushing.filter(|i| i.opcode.split('.').any(|part| part == "FTZ") != fast).count();
        let what = format!("{opcode} that {} subnormals", if fast { "keep" } else { "flush" });
        wrong.unless_equal(&what, other, 0);
    }
    if fast {
        // An integer division also starts from an approximate reciprocal, of the divisor that I2F rounded up.
        let integer = code.iter().filter(|i| i.opcode.starts_with("I2F") && i.opcode.ends_with(".RP")).count();
        wrong.unless_equal("reciprocals", equal(code, "MUFU.RCP"), 1 + integer);
    }
    wrong.unless_equal("divisions that check their range", equal(code, "FCHK"), usize::from(!fast));
    for opcode in ["DADD", "DMUL", "DFMA", "DSETP", "FFMA2", "FMUL2", "FADD2"] {
        wrong.unless_equal(opcode, starting(code, opcode), 0);
    }
    if artifact.target.name != "sm_80" && entry.strategy != Strategy::CtaTwoPass {
        let pairs = (entry.vectors_per_thread * entry.elements_per_vector / 2) as usize;
        wrong.unless_equal("conversions of two elements", starting(code, "F2FP.SATFINITE.E4M3"), pairs);
    }
}

/// The only functions called are the slow paths of precise division and reciprocal and, in two-pass entries, the 64-bit
/// division with which the compiler counts the rounds of a loop that it unrolls, and parts of the entry itself.
fn calls(wrong: &mut Violations, math: MathMode, entry: &Entry, code: &[Instruction]) {
    let calls: Vec<&Instruction> = code.iter().filter(|i| i.opcode.starts_with("CALL")).collect();
    let to = |name: &str| calls.iter().filter(|call| call.operands.contains(name)).count();
    let slow_paths = ["div_rn_noftz_f32_slowpath", "rcp_rn_f32_slowpath"].map(to);
    wrong.unless_equal("calls of slow paths", slow_paths, [usize::from(math == MathMode::Precise); 2]);
    let rounds_and_parts = to("div_u64") + to("(.L_");
    let allowed = if entry.strategy == Strategy::CtaTwoPass { rounds_and_parts } else { 0 };
    wrong.unless_equal("calls", calls.len(), slow_paths.iter().sum::<usize>() + allowed);
}

/// Atomic operations on global memory that return nothing.
pub fn raises(code: &[Instruction]) -> usize {
    starting(code, "RED.") + starting(code, "REDG.")
}

pub fn equal(code: &[Instruction], opcode: &str) -> usize {
    code.iter().filter(|i| i.opcode == opcode).count()
}

pub fn starting(code: &[Instruction], opcode: &str) -> usize {
    code.iter().filter(|i| i.opcode.starts_with(opcode)).count()
}

/// What was found against a contract.
#[derive(Default)]
pub struct Violations {
    pub entry: &'static str,
    pub found: Vec<String>,
}

impl Violations {
    pub fn add(&mut self, what: String) {
        self.found.push(format!("{}: {what}", self.entry));
    }

    pub fn unless_equal<T: PartialEq + Debug>(&mut self, what: &str, actual: T, expected: T) {
        if actual != expected {
            self.add(format!("{what}: {actual:?}, expected {expected:?}"));
        }
    }
}
