//! The quantizer: what a caller may choose, and the context it is bound to.

use crate::driver::{self, Context};
use crate::environment::Environment;
use crate::modules::{self, Module};
use crate::policy::{self, Call, Plan};
use crate::selection::Request;
use crate::{Artifacts, Backend, DeviceInfo, Error, device};
use ptq_spec::per_token::MAX_GRID;
use ptq_spec::{Element, Kernel, MathMode, Target};
use std::num::NonZeroU32;
use std::path::Path;
use std::sync::{Arc, OnceLock};

/// Quantizes buffers of one device.
///
/// Bound to the context that was current at [`Quantizer::new`]: later calls need it current on their thread, and say
/// [`Error::ContextMismatch`] otherwise. Cheap to clone and share; modules are loaded once per context whatever the
/// number of quantizers.
///
/// An engine that also uses the CUDA runtime API should work in the device's primary context, which is what
/// `cust::context::Context::new` and `cust::quick_init` retain, and keep that `Context` for as long as it quantizes.
#[derive(Debug, Clone)]
pub struct Quantizer {
    artifacts: Artifacts,
    /// Folder that the artifacts were read from; `None`: embedded.
    artifacts_dir: Option<Arc<Path>>,
    home: Home,
    backend: Backend,
    target: Option<&'static Target>,
    math: MathMode,
    sm_count: u32,
    plan: Option<Plan>,
    grid_limit: u32,
    programmatic: bool,
    /// Modules in use, by operation and element type: a short cut past the locks of the cache of all modules. Clones share it
    /// until they choose other modules.
    modules: Arc<[[OnceLock<&'static Module>; Element::ALL.len()]; Kernel::ALL.len()]>,
}

/// What a caller took out of the policy's hands.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Forced {
    pub plan: bool,
    pub target: bool,
}

/// A context and its device.
#[derive(Debug, Clone)]
pub(crate) struct Home {
    context: Context,
    device: Arc<DeviceInfo>,
}

impl Home {
    /// The context.
    pub fn context(&self) -> Context {
        self.context
    }

    /// Checks that the context is current on this thread.
    pub fn check(&self) -> Result<(), Error> {
        if driver::current_context()? == self.context { Ok(()) } else { Err(self.mismatch()) }
    }

    /// As [`Home::check`], by the handle alone: half of the driver's calls.
    ///
    /// True of a later context at the same address too, so that the caller has to know that this one exists.
    pub fn check_handle(&self) -> Result<(), Error> {
        if driver::current_handle()? == self.context.handle() { Ok(()) } else { Err(self.mismatch()) }
    }

    #[cold]
    fn mismatch(&self) -> Error {
        Error::ContextMismatch { device: Box::new(DeviceInfo::clone(&self.device)) }
    }
}

impl Quantizer {
    /// A quantizer on the current context's device, with the math mode and the SM count of that device.
    ///
    /// # Errors
    /// - [`Error::NoDriver`], [`Error::NoDevice`], [`Error::NoContext`], [`Error::Driver`].
    /// - [`Error::UnknownBackend`] for `PTQ_BACKEND`.
    /// - [`Error::UnknownTarget`] or [`Error::UnsupportedTarget`] for `PTQ_TARGET`.
    /// - [`Error::NoArtifactFiles`] or [`Error::ReadArtifact`] for `PTQ_ARTIFACTS`.
    pub fn new(artifacts: Artifacts) -> Result<Self, Error> {
        device::start_driver()?;
        let context = driver::current_context()?;
        let device = DeviceInfo::of(driver::context_device()?)?;
        Self::assemble(artifacts, device, context, Environment::read())
    }

    fn assemble(
        artifacts: Artifacts,
        device: DeviceInfo,
        context: Context,
        environment: Environment,
    ) -> Result<Self, Error> {
        let (artifacts, artifacts_dir) = match environment.artifacts {
            Some(dir) => {
                // SAFETY: whoever sets the variable vouches for the kernels in the folder, as for any code that a process
                // is told to load.
                let artifacts = unsafe { Artifacts::from_dir(&dir) }?;
                (artifacts, Some(dir.into()))
            }
            None => (artifacts, None),
        };
        let quantizer = Self {
            artifacts,
            artifacts_dir,
            backend: environment.backend.map(|name| name.parse()).transpose()?.unwrap_or_default(),
            target: None,
            math: device.math(),
            sm_count: device.sm_count,
            plan: None,
            grid_limit: MAX_GRID,
            programmatic: false,
            modules: Default::default(),
            home: Home { context, device: Arc::new(device) },
        };
        match environment.target {
            Some(name) => quantizer.with_target(&name),
            None => Ok(quantizer),
        }
    }

    /// With another backend than `PTQ_BACKEND` says, or [`Backend::Auto`]. Whether it has an artifact for the device shows
    /// at [`Quantizer::load`] and [`Quantizer::prepare`].
    #[must_use]
    pub fn with_backend(self, backend: Backend) -> Self {
        Self { backend, modules: Default::default(), ..self }
    }

    /// With the artifacts of one target, say `"sm_89"`, so that what older devices run is tested on a newer one. The math
    /// mode stays as it is: a target that lacks it is an error at [`Quantizer::prepare`].
    ///
    /// # Errors
    /// [`Error::UnknownTarget`]; [`Error::UnsupportedTarget`] if the device runs neither the target's cubin nor its PTX.
    pub fn with_target(self, name: &str) -> Result<Self, Error> {
        let target = Target::by_name(name).ok_or_else(|| Error::UnknownTarget { name: name.to_owned() })?;
        let actual = self.home.device.capability;
        if !Backend::Auto.runs(target, actual) {
            let expected = target.capability;
            return Err(Error::UnsupportedTarget { backend: Backend::Auto, target: target.name, expected, actual });
        }
        Ok(Self { target: Some(target), modules: Default::default(), ..self })
    }

    /// With another math mode than the reference's on this device.
    ///
    /// # Errors
    /// [`Error::UnsupportedMath`] for fast mode on another compute capability than 9.0, for which it is not proved.
    pub fn with_math(self, math: MathMode) -> Result<Self, Error> {
        let actual = self.home.device.capability;
        if math == MathMode::Fast && MathMode::of_reference(actual) != MathMode::Fast {
            return Err(Error::UnsupportedMath { math, expected: MathMode::FAST_CAPABILITY, actual });
        }
        Ok(Self { math, modules: Default::default(), ..self })
    }

    /// With another multiprocessor count for the threshold that legacy zero rows follow
    /// ([`ptq_spec::Options::guard`]). The launch geometry keeps to the device.
    #[must_use]
    pub fn with_sm_count(self, sm_count: u32) -> Self {
        Self { sm_count, ..self }
    }

    /// With one plan for every per-token call, instead of the policy's choice: to measure and to test. A call that it does not
    /// fit is [`Error::Plan`], at [`Quantizer::prepare`], [`Quantizer::quantize_raw`] and [`Quantizer::choose`]; so is an
    /// extended call whose plan names no entry of `Kernel::PerTokenExtended.row_entries()`. Per-tensor calls ignore it.
    ///
    /// ```no_run
    /// use ptq_host::{Error, Plan, Quantizer};
    /// use ptq_spec::per_token::{Caching, Entry, Strategy};
    ///
    /// # fn forced(quantizer: Quantizer) -> Result<Quantizer, Error> {
    /// let entry = Entry::find(Strategy::Cta, 8, 2).expect("there is such an entry");
    /// let plan = Plan { caching: Caching::NoAllocate, ..Plan::new(entry, 256) };
    /// let quantizer = quantizer.with_plan(plan)?;
    /// # Ok(quantizer)
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`crate::PlanError::UnknownEntry`], [`crate::PlanError::Threads`].
    pub fn with_plan(self, plan: Plan) -> Result<Self, Error> {
        plan.check_entry()?;
        Ok(Self { plan: Some(plan), ..self })
    }

    /// With at most `ctas` CTAs per grid instead of [`MAX_GRID`], so that a test can split a call into several grids without
    /// as many rows. A larger limit counts as [`MAX_GRID`].
    #[must_use]
    pub fn with_grid_limit(self, ctas: NonZeroU32) -> Self {
        Self { grid_limit: ctas.get().min(MAX_GRID), ..self }
    }

    /// With kernels that may start before the kernel before them in the stream is complete ("programmatic dependent launch"),
    /// which hides the time between two short kernels; by default they do not. The order of the stream holds whatever is
    /// before. What comes after: see the crate's "Programmatic dependent launch".
    ///
    /// Where the artifact has no kernels for it (targets below `sm_90`) calls are launched as without it;
    /// [`crate::Choice::programmatic`] says what became of it.
    #[must_use]
    pub fn with_programmatic_launch(self, programmatic: bool) -> Self {
        Self { programmatic, ..self }
    }

    /// The math mode.
    pub fn math(&self) -> MathMode {
        self.math
    }

    /// The multiprocessor count that legacy zero rows follow.
    pub fn sm_count(&self) -> u32 {
        self.sm_count
    }

    /// Loads the kernels of an operation for an element type, as the first call would: before a stream is captured, and to have the time
    /// that it takes, of compiling PTX above all, when an engine starts. Afterwards neither this quantizer nor its clones
    /// load anything for that operation and element type, unless `with_backend`, `with_target` or `with_math` choose other kernels.
    ///
    /// # Errors
    /// Those of [`Quantizer::prepare`] on contexts and artifacts. The next call tries again.
    pub fn load(&self, kernel: Kernel, element: Element) -> Result<(), Error> {
        self.home.check()?;
        let kernel = self.launched(kernel);
        let module = self.module(kernel, element)?;
        // With lazy loading, which is the driver's default, a kernel is loaded when it is first asked for.
        kernel.entries().iter().try_for_each(|entry| module.function(entry).map(|_| ()))
    }

    /// The backend as chosen, which may be [`Backend::Auto`]; [`crate::Prepared::plan`] says what it came to.
    pub fn backend(&self) -> Backend {
        self.backend
    }

    /// The device.
    pub fn device(&self) -> &DeviceInfo {
        &self.home.device
    }

    pub(crate) fn grid_limit(&self) -> u32 {
        self.grid_limit
    }

    pub(crate) fn programmatic(&self) -> bool {
        self.programmatic
    }

    /// Which kernels stand for an operation: those that order their grids, where that is asked for and the target has them.
    pub(crate) fn launched(&self, kernel: Kernel) -> Kernel {
        let capability = self.target.map_or(self.home.device.capability, |target| target.capability);
        let programmatic = self.programmatic && capability >= Kernel::PROGRAMMATIC_CAPABILITY;
        if kernel == Kernel::PerToken && programmatic { Kernel::PerTokenProgrammatic } else { kernel }
    }

    pub(crate) fn home(&self) -> &Home {
        &self.home
    }

    /// The module of an operation for an element type. The quantizer's context is current.
    pub(crate) fn module(&self, kernel: Kernel, element: Element) -> Result<&'static Module, Error> {
        let known = &self.modules[kernel as usize][element as usize];
        if let Some(module) = known.get() {
            return Ok(module);
        }
        let request = Request {
            artifacts: self.artifacts,
            dir: self.artifacts_dir.as_deref(),
            device: self.home.device.capability,
            target: self.target,
            math: self.math,
            kernel,
            element,
        };
        let (first, second) = request.candidates(self.backend)?;
        let module = modules::load(self.home.context, first, second)?;
        Ok(known.get_or_init(|| module))
    }

    /// Whether [`Quantizer::with_plan`] or [`Quantizer::with_target`] forced what they can.
    pub(crate) fn forced(&self) -> Forced {
        Forced { plan: self.plan.is_some(), target: self.target.is_some() }
    }

    /// The plan for a call: the forced one, which has to fit it; without one, the policy's.
    pub(crate) fn plan_for(&self, target: &Target, call: Call) -> Result<Plan, Error> {
        match self.plan {
            Some(plan) => {
                plan.check_call(target, call)?;
                Ok(plan)
            }
            None => Ok(policy::plan(target, call)),
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use ptq_spec::ComputeCapability;
    use ptq_spec::per_token::{Entry, Strategy};
    use std::path::PathBuf;

    const EMPTY: Artifacts = Artifacts(&[]);

    fn quantizer(major: u32, minor: u32, environment: Environment) -> Result<Quantizer, Error> {
        let capability = ComputeCapability(major, minor);
        let device = DeviceInfo { ordinal: 0, name: "none".to_owned(), capability, sm_count: 132 };
        Quantizer::assemble(EMPTY, device, Context::NONE, environment)
    }

    /// Without artifacts, in no context.
    pub(crate) fn h200() -> Quantizer {
        quantizer(9, 0, Environment::default()).unwrap()
    }

    #[test]
    fn new_without_driver_device_or_context_is_a_typed_error() {
        // No test of this program creates a context.
        let error = Quantizer::new(EMPTY).unwrap_err();
        assert!(matches!(error, Error::NoDriver { .. } | Error::NoDevice { .. } | Error::NoContext), "{error}");
    }

    #[test]
    fn quantizers_and_prepared_calls_cross_threads() {
        fn crosses<T: Send + Sync>() {}
        crosses::<Quantizer>();
        crosses::<crate::Prepared<'static>>();
    }

    #[test]
    fn math_and_sm_count_default_to_the_device() {
        assert_eq!((h200().math(), h200().sm_count()), (MathMode::Fast, 132));
        assert_eq!(quantizer(8, 9, Environment::default()).unwrap().math(), MathMode::Precise);
        assert_eq!(h200().with_sm_count(7).sm_count(), 7);
        assert_eq!(h200().backend(), Backend::Auto);
    }

    #[test]
    fn fast_math_is_refused_where_it_is_not_proved() {
        assert_eq!(h200().with_math(MathMode::Precise).unwrap().math(), MathMode::Precise);
        for (major, minor) in [(8, 0), (8, 9), (10, 0), (12, 0)] {
            let error = quantizer(major, minor, Environment::default()).unwrap().with_math(MathMode::Fast).unwrap_err();
            let expected = Error::UnsupportedMath {
                math: MathMode::Fast,
                expected: ComputeCapability(9, 0),
                actual: ComputeCapability(major, minor),
            };
            assert_eq!(error, expected);
        }
    }

    #[test]
    fn target_is_checked_when_it_is_named() {
        assert_eq!(h200().with_target("sm_90").unwrap().target.unwrap().name, "sm_90");
        assert_eq!(h200().with_target("sm_9").unwrap_err(), Error::UnknownTarget { name: "sm_9".to_owned() });
        let error = h200().with_target("sm_120").unwrap_err();
        assert!(matches!(error, Error::UnsupportedTarget { target: "sm_120", .. }), "{error}");
    }

    #[test]
    fn environment_forces_target_and_artifacts() {
        let with_target = |name: &str| Environment { target: Some(name.to_owned()), ..Environment::default() };
        assert_eq!(quantizer(9, 0, with_target("sm_89")).unwrap().target.unwrap().name, "sm_89");
        assert!(matches!(quantizer(9, 0, with_target("nope")).unwrap_err(), Error::UnknownTarget { .. }));
        let dir = PathBuf::from("/nowhere/at/all");
        let environment = Environment { artifacts: Some(dir.clone()), ..Environment::default() };
        assert_eq!(quantizer(9, 0, environment).unwrap_err(), Error::NoArtifactFiles { dir });
    }

    #[test]
    fn environment_chooses_the_backend_and_with_backend_overrides_it() {
        let with_backend = |name: &str| Environment { backend: Some(name.to_owned()), ..Environment::default() };
        for backend in Backend::ALL {
            let quantizer = quantizer(9, 0, with_backend(backend.name())).unwrap();
            assert_eq!(quantizer.backend(), backend);
            assert_eq!(quantizer.with_backend(Backend::Jit).backend(), Backend::Jit);
        }
        let error = quantizer(9, 0, with_backend("gpu")).unwrap_err();
        assert_eq!(error, Error::UnknownBackend { name: "gpu".to_owned() });
        let on_cpu = quantizer(9, 0, with_backend("cpu")).unwrap();
        assert_eq!(on_cpu.module(Kernel::PerToken, Element::F32).unwrap_err(), Error::CpuBackend);
    }

    #[test]
    fn missing_artifact_and_math_of_a_target_are_errors_of_their_own() {
        let error = h200().module(Kernel::PerToken, Element::F16).unwrap_err();
        assert!(matches!(error, Error::NoArtifact { dir: None, .. }), "{error}");
        let error = h200().with_target("sm_89").unwrap().module(Kernel::PerToken, Element::F16).unwrap_err();
        assert!(matches!(error, Error::TargetMath { target: "sm_89", math: MathMode::Fast, .. }), "{error}");
    }

    #[test]
    fn programmatic_launch_is_asked_for() {
        assert!(!h200().programmatic());
        assert!(h200().with_programmatic_launch(true).programmatic());
        assert!(!h200().with_programmatic_launch(true).with_programmatic_launch(false).programmatic());
        let launched = |quantizer: Quantizer| Kernel::ALL.map(|kernel| quantizer.launched(kernel));
        assert_eq!(launched(h200()), Kernel::ALL);
        let asked = h200().with_programmatic_launch(true);
        let own = |kernel| if kernel == Kernel::PerToken { Kernel::PerTokenProgrammatic } else { kernel };
        assert_eq!(launched(asked.clone()), Kernel::ALL.map(own));
        assert_eq!(launched(asked.with_target("sm_89").unwrap()), Kernel::ALL, "its kernels cannot wait");
        let older = quantizer(8, 9, Environment::default()).unwrap().with_programmatic_launch(true);
        assert_eq!(launched(older), Kernel::ALL);
    }

    #[test]
    fn forced_plan_replaces_the_policy_and_is_checked() {
        let entry = Entry::find(Strategy::CtaTwoPass, 1, 1).unwrap();
        let plan = Plan::new(entry, 64);
        let (kernel, element) = (Kernel::PerToken, Element::F32);
        let call = Call { kernel, element, rows: 1, hidden: 4, x: 0, q: 0, x_stride: 4, q_stride: 4 };
        let target = Target::by_name("sm_90").unwrap();
        assert_eq!(h200().with_plan(plan).unwrap().plan_for(target, call).unwrap(), plan);
        assert!(matches!(h200().with_plan(Plan { threads: 1, ..plan }).unwrap_err(), Error::Plan(_)));
        let narrow = Plan::new(Entry::find(Strategy::Warp, 8, 1).unwrap(), 32);
        assert!(matches!(h200().with_plan(narrow).unwrap().plan_for(target, call).unwrap_err(), Error::Plan(_)));
    }
}
