//! What registers, memory and instructions of an entry of per-tensor quantization must be.

use crate::contract::{
    REGISTER_GRANULE, REGISTERS_PER_SM, Violations, equal, load_opcode, local_memory, order_of_grids, other_accesses,
    raises, shared_maximum, starting, store_opcode,
};
use crate::listing::Instruction;
use crate::{Listing, Used};
use per_token_quant_fp8::Artifact;
use ptq_spec::MathMode;
use ptq_spec::per_tensor::{CTAS_PER_SM, Entry, MAX_THREADS, Pass};

fn named(name: &str) -> &'static Entry {
    Entry::named(name).expect("the artifact's entries are the table's")
}

/// What the cubin's tables say against the contract. Entries whose vectors are more than one load are not the policy's; they
/// have to start.
pub fn resources(artifact: &Artifact, used: &Used) -> Vec<String> {
    let mut wrong = Violations::default();
    for (name, resources) in used {
        wrong.entry = name;
        let entry = named(name);
        let one_load = entry.elements_per_vector as usize * artifact.element.bytes() <= artifact.target.vector_bytes;
        let threads = if one_load { CTAS_PER_SM * MAX_THREADS } else { MAX_THREADS };
        let budget = REGISTERS_PER_SM / threads / REGISTER_GRANULE * REGISTER_GRANULE;
        if resources.registers > budget || resources.registers == 0 {
            wrong.add(format!("{} registers, expected 1 to {budget}", resources.registers));
        }
        wrong.unless_equal("bytes of local memory", resources.local, 0);
        let numbers = usize::from(entry.pass.barriers() > 0);
        wrong.unless_equal("bytes of shared memory", resources.shared, (numbers * size_of::<u32>()) as u64);
    }
    wrong.found
}

/// What the instructions are against the contract.
pub fn instructions(artifact: &Artifact, listing: &Listing) -> Vec<String> {
    let mut wrong = Violations::default();
    for (name, code) in listing {
        wrong.entry = name;
        let entry = named(name);
        local_memory(&mut wrong, code);
        other_accesses(&mut wrong, code);
        order_of_grids(&mut wrong, artifact, code);
        global_memory(&mut wrong, artifact, entry, code);
        let maxima = usize::from(entry.pass == Pass::Absmax);
        shared_maximum(&mut wrong, artifact.target, entry.pass.barriers(), maxima, code);
        arithmetic(&mut wrong, artifact.math, entry, code);
    }
    wrong.found
}

/// Loads are the vectors', one of a single element that is left over, and one of the scale; stores are the codes'; the scale is
/// raised by one instruction.
fn global_memory(wrong: &mut Violations, artifact: &Artifact, entry: &Entry, code: &[Instruction]) {
    let vector = entry.elements_per_vector as usize * artifact.element.bytes();
    let load = load_opcode(artifact, vector.min(artifact.target.vector_bytes));
    let single = load_opcode(artifact, artifact.element.bytes());
    let scale = if artifact.orders_grids() { "LDG.E" } else { "LDG.E.CONSTANT" };
    let known = [&*load, &*single, scale];
    let others = code.iter().filter(|i| i.opcode.starts_with("LDG") && !known.contains(&&*i.opcode)).count();
    wrong.unless_equal("loads that are neither vectors, nor elements, nor the scale", others, 0);
    wrong.unless_equal("vectors are loaded", equal(code, &load) > 0, true);
    let left_over = usize::from(entry.elements_per_vector > 1);
    if load != single && single != scale {
        wrong.unless_equal("loads of the element that is left over", equal(code, &single), left_over);
    }
    let quantizes = entry.pass == Pass::Quantize;
    if ![&*load, &*single].contains(&scale) {
        wrong.unless_equal("loads of the scale", equal(code, scale), usize::from(quantizes));
    }

    let store = store_opcode(entry.elements_per_vector as usize);
    let codes = equal(code, &store);
    wrong.unless_equal("vectors of codes are stored", codes > 0, quantizes);
    let single = if entry.elements_per_vector > 1 { equal(code, "STG.E.U8") } else { 0 };
    wrong.unless_equal("stores of the code that is left over", single, left_over * usize::from(quantizes));
    wrong.unless_equal("other stores", starting(code, "STG") - codes - single, 0);

    let maxima = equal(code, "RED.E.MAX.STRONG.GPU") + equal(code, "REDG.E.MAX.STRONG.GPU");
    wrong.unless_equal("raises of the scale", maxima, usize::from(!quantizes));
    wrong.unless_equal("raises of global memory", raises(code), maxima);
}

fn arithmetic(wrong: &mut Violations, math: MathMode, entry: &Entry, code: &[Instruction]) {
    let fast = math == MathMode::Fast;
    for opcode in ["FMUL", "FMNMX"] {
        let flushing = code.iter().filter(|i| i.opcode.starts_with(opcode));
        let other = flushing.filter(|i| i.opcode.split('.').any(|part| part == "FTZ") != fast).count();
        let what = format!("{opcode} that {} subnormals", if fast { "keep" } else { "flush" });
        wrong.unless_equal(&what, other, 0);
    }
    let precise_absmax = usize::from(!fast && entry.pass == Pass::Absmax);
    let precise_quantize = usize::from(!fast && entry.pass == Pass::Quantize);
    wrong.unless_equal("divisions that check their range", equal(code, "FCHK"), precise_absmax);
    for (slow_path, expected) in
        [("div_rn_noftz_f32_slowpath", precise_absmax), ("rcp_rn_f32_slowpath", precise_quantize)]
    {
        let calls = code.iter().filter(|i| i.opcode.starts_with("CALL") && i.operands.contains(slow_path)).count();
        wrong.unless_equal(slow_path, calls, expected);
    }
    // Fused are only the steps of a rounded division or reciprocal.
    wrong.unless_equal("no fused multiply-adds", starting(code, "FFMA") == 0, fast);
    for opcode in ["DADD", "DMUL", "DFMA", "DSETP", "FFMA2", "FMUL2", "FADD2"] {
        wrong.unless_equal(opcode, starting(code, opcode), 0);
    }
}
