//! Statics that carry a meaning: shared memory and launch bounds.

use crate::CudaBuilderError;
use std::borrow::Cow;
use std::collections::BTreeMap;

/// Section of `cuda_std::shared_array!`.
const SHARED_SECTION: &str = "section \".gpu.shared\"";

/// Section of `cuda_std::shared::dynamic_shared_mem`.
const DYNAMIC_SECTION: &str = "section \".gpu.shared.dynamic\"";

/// Section of `#[kernel(max_threads = N)]`.
const BOUND_SECTION: &str = "section \".gpu.max_threads\"";

/// Prefix of the latter's statics; the kernel's name follows.
const BOUND_PREFIX: &str = "__cuda_std_max_threads_";

/// Least alignment of a shared array: any vector access may use it.
const SHARED_ALIGN: u64 = 16;

/// What the module's statics say.
#[derive(Debug, Default)]
pub(super) struct Statics {
    /// Shared arrays: name with its `@` → definition in the shared address space.
    shared: BTreeMap<String, String>,
    /// Dynamic shared memory that no code uses: name with its `@`.
    unused: Vec<String>,
    /// Kernel → most threads per CTA.
    bounds: BTreeMap<String, u32>,
}

/// Reads the definitions.
pub(super) fn collect(module: &str) -> Result<Statics, CudaBuilderError> {
    let mut statics = Statics::default();
    for line in module.lines().filter(|line| line.starts_with('@')) {
        let Some((name, definition)) = line.split_once(" = ") else { continue };
        let fault = |fault: &str| CudaBuilderError::Ir {
            symbol: name.trim_start_matches('@').to_string(),
            fault: fault.to_string(),
        };
        if definition.contains(SHARED_SECTION) {
            let definition = shared_definition(name, definition)
                .ok_or_else(|| fault("shared memory starts uninitialised; declare it with `shared_array!`"))?;
            statics.shared.insert(name.to_string(), definition);
        } else if definition.contains(DYNAMIC_SECTION) {
            let uses = |line: &str| !line.starts_with('@') && replace_symbol(line, name, "") != line;
            if module.lines().any(uses) {
                let definition = format!("{name} = external addrspace(3) global [0 x i8], align {SHARED_ALIGN}");
                statics.shared.insert(name.to_string(), definition);
            } else {
                statics.unused.push(name.to_string());
            }
        } else if definition.contains(BOUND_SECTION) {
            let kernel = name.trim_start_matches('@').strip_prefix(BOUND_PREFIX);
            let kernel =
                kernel.ok_or_else(|| fault("only `#[kernel(max_threads = …)]` makes statics of this section"))?;
            let bound = little_endian(definition).ok_or_else(|| fault("the launch bound is not a u32 constant"))?;
            statics.bounds.insert(kernel.to_string(), bound);
        }
    }
    Ok(statics)
}

fn shared_definition(name: &str, definition: &str) -> Option<String> {
    let ty = definition.split_once("global ")?.1.split_once(" undef, section")?.0;
    let align = definition.rsplit_once("align ")?.1.parse::<u64>().ok()?.max(SHARED_ALIGN);
    Some(format!("{name} = internal addrspace(3) global {ty} undef, align {align}"))
}

/// Value of `[4 x i8] c"\00\04\00\00"`, or of `i32 1024`.
fn little_endian(definition: &str) -> Option<u32> {
    if let Some(number) = definition.split_once("constant i32 ") {
        return number.1.split(',').next()?.parse().ok();
    }
    let mut bytes = Vec::new();
    let mut text = definition.split_once("c\"")?.1.split_once('"')?.0.bytes();
    while let Some(byte) = text.next() {
        bytes.push(if byte == b'\\' {
            let digits = [text.next()?, text.next()?];
            u8::from_str_radix(str::from_utf8(&digits).ok()?, 16).ok()?
        } else {
            byte
        });
    }
    Some(u32::from_le_bytes(bytes.try_into().ok()?))
}

impl Statics {
    /// Whether a line has no place in NVVM IR: launch bounds, and lists of symbols to keep, of which none is left.
    pub(super) fn is_dropped(&self, line: &str) -> bool {
        let defined = line.split_once(" = ").map_or("", |(name, _)| name);
        line.starts_with('@') && line.contains(BOUND_SECTION)
            || self.unused.iter().any(|name| name == defined)
            || line.starts_with("@llvm.used = ")
            || line.starts_with("@llvm.compiler.used = ")
    }

    /// The line with shared arrays in their address space and kernels with their bounds.
    pub(super) fn rewrite<'a>(&self, line: &'a str) -> Cow<'a, str> {
        if let Some(name) = line.split_once(" = ").map(|(name, _)| name)
            && let Some(definition) = self.shared.get(name)
        {
            return definition.as_str().to_string().into();
        }
        let mut line = Cow::Borrowed(line);
        for name in self.shared.keys() {
            if line.contains(name.as_str()) {
                line = replace_symbol(&line, name, &format!("addrspacecast (ptr addrspace(3) {name} to ptr)")).into();
            }
        }
        if let Some(kernel) = line.strip_prefix("define ").and_then(defined_name)
            && let Some(bound) = self.bounds.get(kernel)
        {
            let body = line.trim_end_matches('{').trim_end();
            line = format!("{body} \"nvvm.maxntid\"=\"{bound}\" {{").into();
        }
        line
    }
}

/// `name` of `… @name(…`.
fn defined_name(definition: &str) -> Option<&str> {
    definition.split_once('@')?.1.split_once('(').map(|(name, _)| name)
}

/// Replaces whole occurrences of a symbol: one name may begin another.
fn replace_symbol(line: &str, symbol: &str, replacement: &str) -> String {
    let mut out = String::new();
    let mut rest = line;
    while let Some(start) = rest.find(symbol) {
        let end = start + symbol.len();
        let whole = !rest[end..].starts_with(|c: char| c.is_ascii_alphanumeric() || "_.$\"".contains(c));
        out += &rest[..start];
        out += if whole { replacement } else { symbol };
        rest = &rest[end..];
    }
    out + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    const MODULE: &str = r#"
@S = internal global [128 x i8] undef, section ".gpu.shared", align 4
@S2 = internal global [64 x i8] undef, section ".gpu.shared", align 32
@__cuda_std_max_threads_k = constant [4 x i8] c"\00\04\00\00", section ".gpu.max_threads", align 4
@llvm.used = appending global [2 x ptr] [ptr @S, ptr @__cuda_std_max_threads_k], section "llvm.metadata"
"#;

    #[test]
    fn shared_arrays_move_to_their_address_space() {
        let statics = collect(MODULE).unwrap();
        let definition = MODULE.lines().find(|l| l.starts_with("@S ")).unwrap();
        assert_eq!(statics.rewrite(definition), "@S = internal addrspace(3) global [128 x i8] undef, align 16");
        let definition = MODULE.lines().find(|l| l.starts_with("@S2 ")).unwrap();
        assert_eq!(statics.rewrite(definition), "@S2 = internal addrspace(3) global [64 x i8] undef, align 32");
        assert_eq!(
            statics.rewrite("  store float %1, ptr @S, align 4"),
            "  store float %1, ptr addrspacecast (ptr addrspace(3) @S to ptr), align 4"
        );
        assert_eq!(statics.rewrite("  %a = load i32, ptr @S3"), "  %a = load i32, ptr @S3");
    }

    #[test]
    fn bounds_go_to_their_kernels_and_lists_go_away() {
        let statics = collect(MODULE).unwrap();
        assert_eq!(
            statics.rewrite("define ptx_kernel void @k(ptr %x) unnamed_addr #0 {"),
            "define ptx_kernel void @k(ptr %x) unnamed_addr #0 \"nvvm.maxntid\"=\"1024\" {"
        );
        assert_eq!(statics.rewrite("define ptx_kernel void @k2() {"), "define ptx_kernel void @k2() {");
        let dropped: Vec<_> = MODULE.lines().filter(|line| statics.is_dropped(line)).collect();
        assert_eq!(dropped.len(), 2);
    }

    #[test]
    fn dynamic_shared_memory_has_no_size_and_goes_when_unused() {
        let definition = "@D = global <{}> zeroinitializer, section \".gpu.shared.dynamic\", align 16";
        let used = format!("{definition}\n  store float 0.0, ptr @D, align 4\n");
        assert_eq!(collect(&used).unwrap().rewrite(definition), "@D = external addrspace(3) global [0 x i8], align 16");
        let unused =
            format!("{definition}\n@llvm.used = appending global [1 x ptr] [ptr @D], section \"llvm.metadata\"\n");
        assert!(collect(&unused).unwrap().is_dropped(definition));
        assert!(!collect(&used).unwrap().is_dropped(definition));
    }

    #[test]
    fn initialised_shared_memory_is_refused() {
        let module = "@S = internal global [4 x i8] zeroinitializer, section \".gpu.shared\", align 4\n";
        assert!(matches!(collect(module), Err(CudaBuilderError::Ir { symbol, .. }) if symbol == "S"));
    }
}
