//! GPU targets that artifacts are built for.

use crate::MathMode;
use core::fmt;

/// Compute capability of a device, major and minor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ComputeCapability(pub u32, pub u32);

impl fmt::Display for ComputeCapability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.0, self.1)
    }
}

/// One target: what `ptxas -gpu-name` calls it, and what its artifacts may run on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Target {
    /// `sm_90`, `sm_100f`, ...
    pub name: &'static str,
    /// Lowest compute capability that runs its artifacts.
    pub capability: ComputeCapability,
    /// Whether its PTX uses instructions of one family only: it then runs on no later major version.
    pub family_specific: bool,
    /// Lowest PTX version, major and minor, that has the instructions and the target. Older drivers load lower versions.
    pub ptx_version: (u32, u32),
    /// Math modes its artifacts exist in.
    pub math: &'static [MathMode],
    /// Widest global access in bytes.
    pub vector_bytes: usize,
}

/// Every target, oldest first.
pub const TARGETS: &[Target] = &[
    Target {
        name: "sm_80",
        capability: ComputeCapability(8, 0),
        family_specific: false,
        ptx_version: (7, 0),
        math: &[MathMode::Precise],
        vector_bytes: 16,
    },
    Target {
        name: "sm_89",
        capability: ComputeCapability(8, 9),
        family_specific: false,
        ptx_version: (8, 1),
        math: &[MathMode::Precise],
        vector_bytes: 16,
    },
    Target {
        name: "sm_90",
        capability: ComputeCapability(9, 0),
        family_specific: false,
        ptx_version: (7, 8),
        math: &[MathMode::Fast, MathMode::Precise],
        vector_bytes: 16,
    },
    Target {
        name: "sm_100f",
        capability: ComputeCapability(10, 0),
        family_specific: true,
        ptx_version: (8, 8),
        math: &[MathMode::Precise],
        vector_bytes: 32,
    },
    Target {
        name: "sm_120",
        capability: ComputeCapability(12, 0),
        family_specific: false,
        ptx_version: (8, 7),
        math: &[MathMode::Precise],
        vector_bytes: 16,
    },
];

impl Target {
    /// The target of that name.
    pub fn by_name(name: &str) -> Option<&'static Self> {
        TARGETS.iter().find(|t| t.name == name)
    }

    /// Whether a device of `device` runs this target's cubin: same major version, minor not below.
    pub fn runs_cubin(&self, device: ComputeCapability) -> bool {
        device.0 == self.capability.0 && device.1 >= self.capability.1
    }

    /// Whether the driver of a device of `device` can compile this target's PTX for it.
    pub fn runs_ptx(&self, device: ComputeCapability) -> bool {
        if self.family_specific { self.runs_cubin(device) } else { device >= self.capability }
    }
}

impl MathMode {
    /// The one compute capability on which the reference is fast.
    pub const FAST_CAPABILITY: ComputeCapability = ComputeCapability(9, 0);

    /// The reference's policy: fast if and only if the compute capability is exactly 9.0.
    pub fn of_reference(device: ComputeCapability) -> Self {
        if device == Self::FAST_CAPABILITY { Self::Fast } else { Self::Precise }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A device, and whether it runs the cubin and the PTX of each target, in the order of [`TARGETS`].
    type Runs = (ComputeCapability, [bool; 5], [bool; 5]);

    const TABLE: [Runs; 10] = [
        // sm_80, sm_89, sm_90, sm_100f, sm_120
        (ComputeCapability(7, 5), [false, false, false, false, false], [false, false, false, false, false]),
        (ComputeCapability(8, 0), [true, false, false, false, false], [true, false, false, false, false]),
        (ComputeCapability(8, 6), [true, false, false, false, false], [true, false, false, false, false]),
        (ComputeCapability(8, 9), [true, true, false, false, false], [true, true, false, false, false]),
        (ComputeCapability(9, 0), [false, false, true, false, false], [true, true, true, false, false]),
        (ComputeCapability(10, 0), [false, false, false, true, false], [true, true, true, true, false]),
        (ComputeCapability(10, 3), [false, false, false, true, false], [true, true, true, true, false]),
        (ComputeCapability(11, 0), [false, false, false, false, false], [true, true, true, false, false]),
        (ComputeCapability(12, 0), [false, false, false, false, true], [true, true, true, false, true]),
        (ComputeCapability(12, 1), [false, false, false, false, true], [true, true, true, false, true]),
    ];

    #[test]
    fn what_runs_where() {
        for (device, cubin, ptx) in TABLE {
            for (target, (cubin, ptx)) in TARGETS.iter().zip(cubin.into_iter().zip(ptx)) {
                assert_eq!(target.runs_cubin(device), cubin, "cubin of {target} on {device}");
                assert_eq!(target.runs_ptx(device), ptx, "PTX of {target} on {device}");
            }
        }
    }

    #[test]
    fn targets_are_five_oldest_first_and_found_by_name() {
        assert_eq!(TARGETS.len(), 5);
        assert!(TARGETS.is_sorted_by(|a, b| a.capability < b.capability));
        for target in TARGETS {
            assert_eq!(Target::by_name(target.name), Some(target));
        }
        assert_eq!(Target::by_name("sm_70"), None);
    }

    #[test]
    fn fast_math_is_proved_for_9_0_alone() {
        for (device, ..) in TABLE {
            let expected = if device == ComputeCapability(9, 0) { MathMode::Fast } else { MathMode::Precise };
            assert_eq!(MathMode::of_reference(device), expected, "{device}");
        }
        for target in TARGETS {
            let fast = target.math.contains(&MathMode::Fast);
            assert_eq!(fast, target.capability == ComputeCapability(9, 0), "{target}");
            assert!(target.math.contains(&MathMode::Precise), "{target}");
        }
    }
}
