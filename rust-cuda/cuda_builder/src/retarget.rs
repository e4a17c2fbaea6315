//! PTX as libNVVM wrote it to the PTX of the target asked for.

use crate::{Arch, CudaBuilderError};

/// Instructions that libNVVM may choose for sm_100 and that older targets lack. `ptxas` is the proof; this is the
/// explanation.
const MODERN: &[&str] =
    &[".v8.b32", ".v8.f32", ".v4.b64", ".v4.f64", "f32x2", "redux.sync.max.f32", "redux.sync.min.f32"];

/// Sets `.version` and `.target`, and drops comments that only mark inline assembly.
pub(crate) fn lower(ptx: &str, arch: Arch) -> Result<String, CudaBuilderError> {
    let (major, minor) = arch.ptx_version;
    let mut kernel = String::new();
    let mut out = String::with_capacity(ptx.len());
    for line in ptx.lines() {
        if matches!(line.trim(), "// begin inline asm" | "// end inline asm") {
            continue;
        }
        if line.starts_with(".version ") {
            out += &format!(".version {major}.{minor}\n");
            continue;
        }
        if line.starts_with(".target ") {
            out += &format!(".target {}\n", arch.name);
            continue;
        }
        if let Some((_, name)) = line.split_once(".entry ") {
            kernel = name.trim_end_matches('(').to_string();
        }
        if arch.is_lowered()
            && let Some(instruction) = MODERN.iter().find(|modern| line.contains(**modern))
        {
            return Err(CudaBuilderError::Instruction { kernel, instruction, target: arch.name });
        }
        out += line.trim_end();
        out.push('\n');
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PTX: &str = ".version 9.5\n.target sm_100\n.visible .entry k(\n)\n{\n\t// begin inline asm\n\tmov.u32 %r1, 0;\n\t\
                       // end inline asm\n\tret;\n}\n";

    #[test]
    fn header_is_lowered() {
        let ptx = lower(PTX, Arch { name: "sm_90", ptx_version: (7, 8) }).unwrap();
        assert_eq!(ptx, ".version 7.8\n.target sm_90\n.visible .entry k(\n)\n{\n\tmov.u32 %r1, 0;\n\tret;\n}\n");
    }

    #[test]
    fn modern_instructions_name_their_kernel() {
        let ptx = PTX.replace("mov.u32 %r1, 0;", "ld.global.nc.v8.b32 {…}, [%rd1];");
        let error = lower(&ptx, Arch { name: "sm_90", ptx_version: (7, 8) }).unwrap_err();
        assert!(matches!(error, CudaBuilderError::Instruction { kernel, target: "sm_90", .. } if kernel == "k"));
        assert!(lower(&ptx, Arch { name: "sm_100f", ptx_version: (8, 8) }).is_ok());
    }
}
