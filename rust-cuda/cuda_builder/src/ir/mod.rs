//! rustc's LLVM IR to the NVVM IR that libNVVM reads.
//!
//! A pass over the text: the two dialects differ in a handful of places, and the text needs no LLVM of our own.

mod attributes;
mod intrinsics;
mod statics;
mod symbols;

use crate::{Arch, CudaBuilderError};

/// libNVVM's data layout for 64-bit targets.
const DATA_LAYOUT: &str = "e-p:64:64:64-p6:32:32:32-i1:8:8-i8:8:8-i16:16:16-i32:32:32-i64:64:64-i128:128:128-\
                           f32:32:32-f64:64:64-f128:128:128-v16:16:16-v32:32:32-v64:64:64-v128:128:128-n16:32:64-a:8:8";

/// NVVM IR version that the text conforms to: IR 2.0, debug metadata 3.2.
const NVVM_IR_VERSION: &str = "!{i32 2, i32 0, i32 3, i32 2}";

/// Widest alignment of targets below sm_100: a wider one makes libNVVM emit 256-bit accesses, which they do not have.
const MAX_ALIGN_LOWERED: u64 = 16;

/// Rewrites the module. The result depends on the module's code alone, not on folders or hashes.
pub(crate) fn to_nvvm(llvm_ir: &str, arch: Arch) -> Result<String, CudaBuilderError> {
    let statics = statics::collect(llvm_ir)?;
    let mut out = String::with_capacity(llvm_ir.len());
    let mut last_metadata = 0;
    for line in llvm_ir.lines() {
        if line.starts_with("; ModuleID") || line.starts_with("source_filename") || statics.is_dropped(line) {
            continue;
        }
        if line.starts_with("target datalayout") {
            out += &format!("target datalayout = \"{DATA_LAYOUT}\"\n");
            continue;
        }
        if let Some(id) = metadata_id(line) {
            last_metadata = last_metadata.max(id);
        }
        let line = statics.rewrite(line);
        let line = without_srcloc(&line);
        let line = attributes::keep_known(line);
        let line = if arch.is_lowered() { cap_alignment(&line) } else { line };
        out += &intrinsics::rename(&line);
        out.push('\n');
    }
    let id = last_metadata + 1;
    out += &format!("\n!nvvmir.version = !{{!{id}}}\n!{id} = {NVVM_IR_VERSION}\n");
    Ok(symbols::without_crate_hashes(&out))
}

pub(crate) use intrinsics::users as intrinsic_users;

/// 12 of `!12 = …`.
fn metadata_id(line: &str) -> Option<u64> {
    line.strip_prefix('!')?.split_once(" = ")?.0.parse().ok()
}

/// Source locations of `asm!`: they differ between machines, and only a diagnostic would read them.
fn without_srcloc(line: &str) -> &str {
    match line.find(", !srcloc !") {
        // Always the last attachment: rustc adds it after the others.
        Some(start) => &line[..start],
        None => line,
    }
}

fn cap_alignment(line: &str) -> String {
    let mut out = String::with_capacity(line.len());
    let mut rest = line;
    while let Some(start) = rest.find("align ") {
        let (before, after) = rest.split_at(start + "align ".len());
        out += before;
        let digits = after.len() - after.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        match after[..digits].parse::<u64>() {
            Ok(align) => out += &align.min(MAX_ALIGN_LOWERED).to_string(),
            Err(_) => out += &after[..digits],
        }
        rest = &after[digits..];
    }
    out + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn alignment_is_capped() {
        assert_eq!(cap_alignment("  %v = load <8 x i32>, ptr %p, align 32"), "  %v = load <8 x i32>, ptr %p, align 16");
        assert_eq!(cap_alignment("store i32 0, ptr align 4 %p, align 4"), "store i32 0, ptr align 4 %p, align 4");
    }

    #[test]
    fn module_is_independent_of_its_place() {
        let module = |hash: &str, loc: &str| {
            format!(
                "; ModuleID = 'k.{hash}-cgu.0'\nsource_filename = \"k.{hash}-cgu.0\"\ntarget datalayout = \"e\"\n\
                 @_RNvCs{hash}_1k1T = internal global [4 x i8] undef, section \".gpu.shared\", align 4\n\
                 define ptx_kernel void @k() {{\n  call void asm sideeffect \"x;\", \"\"() #1, !srcloc !{loc}\n  ret void\n}}\n\
                 !4 = !{{i64 {loc}}}\n"
            )
        };
        let arch = Arch { name: "sm_90", ptx_version: (7, 8) };
        let one = to_nvvm(&module("aB3", "17"), arch).unwrap();
        let other = to_nvvm(&module("zZ9", "4"), arch).unwrap();
        // Metadata that nothing refers to stays; it does not reach the PTX.
        let code = |text: &str| text.lines().filter(|l| !l.starts_with('!')).collect::<Vec<_>>().join("\n");
        assert_eq!(code(&one), code(&other));
        assert!(one.contains("@_RNvC1k1T = internal addrspace(3) global [4 x i8] undef, align 16"));
        assert!(one.contains("!nvvmir.version = !{!5}"));
    }
}
