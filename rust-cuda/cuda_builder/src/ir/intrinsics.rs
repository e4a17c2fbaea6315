//! Intrinsics: the names that libNVVM wants, and who calls those that it refuses.

/// LLVM's name, libNVVM's name.
const RENAMED: [(&str, &str); 2] =
    [("@llvm.fabs.f32(", "@llvm.nvvm.fabs.f("), ("@llvm.fabs.f64(", "@llvm.nvvm.fabs.d(")];

/// The line with libNVVM's names.
pub(super) fn rename(line: &str) -> String {
    RENAMED.iter().fold(line.to_string(), |line, (from, to)| line.replace(from, to))
}

/// The kernels or functions of `module` that call an intrinsic which `log`, libNVVM's complaint, names.
pub(crate) fn users(module: &str, log: &str) -> Vec<(String, String)> {
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '.' || c == '_';
    let refused: Vec<&str> = log
        .match_indices("llvm.")
        .map(|(start, _)| {
            let text = &log[start..];
            text[..text.find(|c| !is_name(c)).unwrap_or(text.len())].trim_end_matches('.')
        })
        .collect();
    let mut function = String::new();
    let mut users = Vec::new();
    for line in module.lines() {
        if let Some(definition) = line.strip_prefix("define ") {
            function =
                definition.split_once('@').and_then(|(_, d)| d.split_once('(')).map_or("", |(n, _)| n).to_string();
        } else if line.contains("call ") {
            for name in &refused {
                let user = (function.clone(), name.to_string());
                if line.contains(&format!("@{name}(")) && !users.contains(&user) {
                    users.push(user);
                }
            }
        }
    }
    users
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn absolute_values_are_renamed() {
        assert_eq!(rename("%0 = call float @llvm.fabs.f32(float %x)"), "%0 = call float @llvm.nvvm.fabs.f(float %x)");
        assert_eq!(rename("%0 = call float @llvm.maxnum.f32(float %x)"), "%0 = call float @llvm.maxnum.f32(float %x)");
    }

    #[test]
    fn a_refused_intrinsic_names_its_kernel() {
        let module = "define ptx_kernel void @k() {\n  %1 = call float @llvm.exp.f32(float 1.0)\n}\n\
                      define ptx_kernel void @l() {\n  ret void\n}\n";
        let log = "error: unsupported intrinsic llvm.exp.f32.";
        assert_eq!(users(module, log), [("k".to_string(), "llvm.exp.f32".to_string())]);
    }
}
