//! Which artifact runs, through which backend.

use crate::environment::Environment;
use crate::{Artifact, Artifacts, Error, Image};
use ptq_spec::{ComputeCapability, Element, Kernel, MathMode, TARGETS, Target, artifact_stem};
use std::fmt;
use std::path::Path;
use std::str::FromStr;

/// Where kernels come from. The bits are the same.
///
/// A [`crate::Quantizer`] takes all but [`Backend::Cpu`], which is there for whoever chooses between the two
/// implementations by one value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Backend {
    /// [`Backend::Aot`] where a cubin loads, else [`Backend::Jit`]; where the caller has a CPU implementation beside the
    /// quantizer, that where there is no device.
    #[default]
    Auto,
    /// Machine code compiled ahead of time: a cubin of the newest target that the device runs.
    Aot,
    /// PTX that the driver compiles: of the newest target, not of one family only, that is not above the device.
    Jit,
    /// The CPU implementation, on host memory.
    Cpu,
}

/// What a choice depends on.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Request<'a> {
    pub artifacts: Artifacts,
    /// Folder that the artifacts were read from; `None`: embedded.
    pub dir: Option<&'a Path>,
    pub device: ComputeCapability,
    /// Forced target.
    pub target: Option<&'static Target>,
    pub math: MathMode,
    pub kernel: Kernel,
    pub element: Element,
}

/// An artifact and how it is loaded: [`Backend::Aot`] or [`Backend::Jit`].
#[derive(Debug, Clone, Copy)]
pub(crate) struct Candidate {
    pub backend: Backend,
    pub artifact: &'static Artifact,
}

impl Candidate {
    /// What is loaded.
    pub fn image(self) -> Image {
        if self.backend == Backend::Aot { self.artifact.cubin } else { self.artifact.ptx }
    }
}

impl Backend {
    /// Every backend.
    pub const ALL: [Self; 4] = [Self::Auto, Self::Aot, Self::Jit, Self::Cpu];

    /// Lower-case name, as command-line options spell it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Aot => "aot",
            Self::Jit => "jit",
            Self::Cpu => "cpu",
        }
    }

    /// What the environment variable `PTQ_BACKEND` says; `None`: it is unset or empty.
    ///
    /// # Errors
    /// [`Error::UnknownBackend`].
    pub fn of_environment() -> Result<Option<Self>, Error> {
        Environment::read().backend.map(|name| name.parse()).transpose()
    }

    /// Whether artifacts of `target` run on `device` through this backend.
    pub(crate) fn runs(self, target: &Target, device: ComputeCapability) -> bool {
        match self {
            Self::Aot => target.runs_cubin(device),
            Self::Jit => target.runs_ptx(device),
            Self::Auto => target.runs_cubin(device) || target.runs_ptx(device),
            Self::Cpu => false,
        }
    }
}

impl fmt::Display for Backend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Backend {
    type Err = Error;

    /// The backend of that [`Backend::name`].
    fn from_str(name: &str) -> Result<Self, Error> {
        let found = Self::ALL.into_iter().find(|backend| backend.name() == name);
        found.ok_or_else(|| Error::UnknownBackend { name: name.to_owned() })
    }
}

impl Request<'_> {
    /// What to load, and what to load instead if the driver does not understand the former.
    pub fn candidates(&self, backend: Backend) -> Result<(Candidate, Option<Candidate>), Error> {
        match backend {
            Backend::Aot | Backend::Jit => Ok((self.candidate(backend)?, None)),
            Backend::Auto => match (self.candidate(Backend::Aot), self.candidate(Backend::Jit)) {
                (Ok(aot), jit) => Ok((aot, jit.ok())),
                // Of two errors, Jit's tells more: it runs on more devices.
                (Err(_), jit) => Ok((jit?, None)),
            },
            Backend::Cpu => Err(Error::CpuBackend),
        }
    }

    fn candidate(&self, backend: Backend) -> Result<Candidate, Error> {
        let target = self.resolve_target(backend)?;
        if !target.math.contains(&self.math) {
            return Err(Error::TargetMath { target: target.name, expected: target.math, math: self.math });
        }
        let found = self.artifacts.find(self.kernel, self.element, target, self.math);
        match found.map(|artifact| Candidate { backend, artifact }).filter(|found| !found.image().is_empty()) {
            Some(found) => Ok(found),
            None => Err(Error::NoArtifact {
                stem: artifact_stem(self.kernel, self.element, target, self.math).to_string(),
                backend,
                dir: self.dir.map(Path::to_owned),
            }),
        }
    }

    /// The forced target, else the newest that fits. Which artifacts are at hand plays no part: a missing file must not
    /// quietly bring back an older kernel.
    fn resolve_target(&self, backend: Backend) -> Result<&'static Target, Error> {
        if let Some(target) = self.target {
            return if backend.runs(target, self.device) {
                Ok(target)
            } else {
                Err(Error::UnsupportedTarget {
                    backend,
                    target: target.name,
                    expected: target.capability,
                    actual: self.device,
                })
            };
        }
        let fits = |t: &&Target| {
            backend.runs(t, self.device)
                && t.math.contains(&self.math)
                && (backend == Backend::Aot || !t.family_specific)
        };
        TARGETS.iter().rev().find(fits).ok_or(Error::UnsupportedDevice {
            backend,
            expected: TARGETS[0].capability,
            actual: self.device,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Artifact, Image};
    use ptq_spec::every_artifact;

    /// A table with every artifact of every target.
    pub(crate) fn full_table() -> Artifacts {
        let table = every_artifact().map(|(kernel, target, math, element)| Artifact {
            kernel,
            target,
            math,
            element,
            ptx: Image::Plain(b"ptx"),
            cubin: Image::Plain(b"cubin"),
        });
        Artifacts(table.collect::<Vec<_>>().leak())
    }

    fn request(device: (u32, u32)) -> Request<'static> {
        let device = ComputeCapability(device.0, device.1);
        Request {
            artifacts: full_table(),
            dir: None,
            device,
            target: None,
            math: MathMode::of_reference(device),
            kernel: Kernel::PerToken,
            element: Element::Bf16,
        }
    }

    fn names(chosen: (Candidate, Option<Candidate>)) -> (&'static str, Option<&'static str>) {
        (chosen.0.artifact.target.name, chosen.1.map(|c| c.artifact.target.name))
    }

    #[test]
    fn auto_takes_the_cubin_and_keeps_ptx_in_reserve() {
        for (device, aot, jit) in [
            ((8, 0), "sm_80", "sm_80"),
            ((8, 6), "sm_80", "sm_80"),
            ((8, 9), "sm_89", "sm_89"),
            ((9, 0), "sm_90", "sm_90"),
            ((10, 0), "sm_100f", "sm_90"),
            ((10, 3), "sm_100f", "sm_90"),
            ((12, 0), "sm_120", "sm_120"),
            ((12, 1), "sm_120", "sm_120"),
        ] {
            let request = request(device);
            let chosen = request.candidates(Backend::Auto).unwrap();
            assert_eq!(names(chosen), (aot, Some(jit)), "{device:?}");
            assert_eq!(chosen.0.backend, Backend::Aot);
            assert_eq!(chosen.1.unwrap().backend, Backend::Jit);
            assert_eq!(names(request.candidates(Backend::Aot).unwrap()), (aot, None), "{device:?}");
            assert_eq!(names(request.candidates(Backend::Jit).unwrap()), (jit, None), "{device:?}");
        }
    }

    #[test]
    fn device_without_a_cubin_compiles_ptx() {
        let request = request((11, 0));
        assert_eq!(names(request.candidates(Backend::Auto).unwrap()), ("sm_90", None));
        let error = request.candidates(Backend::Aot).unwrap_err();
        assert!(matches!(error, Error::UnsupportedDevice { backend: Backend::Aot, .. }), "{error}");
    }

    #[test]
    fn device_below_every_target_is_an_error() {
        for backend in [Backend::Auto, Backend::Aot, Backend::Jit] {
            let error = request((7, 5)).candidates(backend).unwrap_err();
            assert!(
                matches!(
                    error,
                    Error::UnsupportedDevice { expected: ComputeCapability(8, 0), actual: ComputeCapability(7, 5), .. }
                ),
                "{error}"
            );
        }
    }

    #[test]
    fn backends_have_names_of_their_own() {
        for backend in Backend::ALL {
            assert_eq!(backend.name().parse(), Ok(backend));
        }
        for name in ["", "AOT", "gpu", "jit "] {
            let error = name.parse::<Backend>().unwrap_err();
            assert_eq!(error, Error::UnknownBackend { name: name.to_owned() });
            assert!(error.to_string().contains("auto, aot, jit, cpu"), "{error}");
        }
    }

    #[test]
    fn cpu_has_no_artifact() {
        assert_eq!(request((9, 0)).candidates(Backend::Cpu).unwrap_err(), Error::CpuBackend);
    }

    #[test]
    fn forced_target_is_compiled_where_its_cubin_cannot_run() {
        let mut request = request((9, 0));
        request.math = MathMode::Precise;
        request.target = Target::by_name("sm_89");
        let chosen = request.candidates(Backend::Auto).unwrap();
        assert_eq!((names(chosen), chosen.0.backend), (("sm_89", None), Backend::Jit));
        let error = request.candidates(Backend::Aot).unwrap_err();
        assert!(matches!(error, Error::UnsupportedTarget { backend: Backend::Aot, target: "sm_89", .. }), "{error}");
        request.target = Target::by_name("sm_90");
        assert_eq!(names(request.candidates(Backend::Auto).unwrap()), ("sm_90", Some("sm_90")));
    }

    #[test]
    fn forced_target_above_the_device_is_an_error() {
        let mut request = request((8, 9));
        for name in ["sm_90", "sm_100f", "sm_120"] {
            request.target = Target::by_name(name);
            let error = request.candidates(Backend::Auto).unwrap_err();
            assert!(matches!(error, Error::UnsupportedTarget { .. }), "{error}");
        }
    }

    #[test]
    fn forced_target_without_the_math_mode_is_an_error_that_names_the_remedy() {
        let mut request = request((9, 0));
        request.target = Target::by_name("sm_89");
        let error = request.candidates(Backend::Auto).unwrap_err();
        assert!(matches!(error, Error::TargetMath { target: "sm_89", math: MathMode::Fast, .. }), "{error}");
        assert!(error.to_string().contains("with_math"), "{error}");
    }

    #[test]
    fn missing_artifact_is_an_error_and_never_an_older_target() {
        let mut request = request((9, 0));
        let older: Vec<_> = full_table().0.iter().filter(|a| a.target.name != "sm_90").copied().collect();
        request.artifacts = Artifacts(older.leak());
        let error = request.candidates(Backend::Auto).unwrap_err();
        let expected =
            Error::NoArtifact { stem: "per_token.bf16.sm_90.fast".to_owned(), backend: Backend::Jit, dir: None };
        assert_eq!(error, expected);
    }

    #[test]
    fn half_an_artifact_serves_one_backend() {
        let mut request = request((9, 0));
        let ptx_only: Vec<_> = full_table().0.iter().map(|a| Artifact { cubin: Image::NONE, ..*a }).collect();
        request.artifacts = Artifacts(ptx_only.leak());
        assert_eq!(request.candidates(Backend::Auto).unwrap().0.backend, Backend::Jit);
        let error = request.candidates(Backend::Aot).unwrap_err();
        assert!(matches!(error, Error::NoArtifact { backend: Backend::Aot, .. }), "{error}");
    }
}
