//! The target of a build.

/// A GPU target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Arch {
    /// What `ptxas -arch` and PTX's `.target` call it: `sm_90`, `sm_100f`, ...
    pub name: &'static str,
    /// PTX version of the result, major and minor: the lowest one with the code's instructions loads on most drivers.
    pub ptx_version: (u32, u32),
}

/// Lowest target of libNVVM's dialect of current LLVM; older ones want the IR of LLVM 7, which rustc no longer writes.
const FIRST_MODERN: u32 = 100;

impl Arch {
    /// The number in the name: 90 of `sm_90`, 100 of `sm_100f`.
    pub(crate) fn number(self) -> u32 {
        let digits: String = self.name.chars().filter(char::is_ascii_digit).collect();
        digits.parse().unwrap_or(0)
    }

    /// Whether libNVVM compiles for a newer target, and the PTX is lowered to this one.
    pub(crate) fn is_lowered(self) -> bool {
        self.number() < FIRST_MODERN
    }

    /// What libNVVM's `-arch` gets.
    pub(crate) fn nvvm_arch(self) -> String {
        if self.is_lowered() { format!("compute_{FIRST_MODERN}") } else { self.name.replacen("sm_", "compute_", 1) }
    }
}
