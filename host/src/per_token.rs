//! Per-token quantization: `x[rows, hidden]` to E4M3 codes `q[rows_out, hidden]` and scales `s[rows_out]`.

use crate::driver::Place;
use crate::launch::Launch;
use crate::policy::Call;
use crate::quantizer::{Home, Quantizer};
use crate::{Backend, Error, GpuElement, Plan, driver};
use cust::memory::{DeviceBuffer, DeviceSlice};
use cust::stream::Stream;
use cust::sys::CUstream;
use ptq_spec::shape::check_spans;
use ptq_spec::{Element, Kernel, MathMode, Options, Shape, Target, artifact_stem};
use std::marker::PhantomData;
use std::ptr;

/// One call, checked: three buffers that it borrows, and the kernel for them.
///
/// Launching it allocates nothing, takes no lock and waits for nothing but, in [`Prepared::run`], the stream.
#[derive(Debug)]
#[must_use = "nothing runs before `run` or `launch`"]
pub struct Prepared<'a> {
    /// `None`: no rows.
    work: Option<(Launch, Choice)>,
    home: Home,
    buffers: PhantomData<&'a mut [u8]>,
}

/// What a call came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Choice {
    /// Kernel entry and threads per CTA.
    pub plan: Plan,
    /// Grids, which are launched one after the other.
    pub grids: u64,
    /// CTAs of the first grid, which has the most.
    pub ctas: u32,
    /// Target of the artifact.
    pub target: &'static Target,
    /// Math mode of the artifact.
    pub math: MathMode,
    /// Cubin ([`Backend::Aot`]) or PTX ([`Backend::Jit`]).
    pub backend: Backend,
}

/// One call by addresses, for [`Quantizer::quantize_raw`].
#[derive(Debug, Clone, Copy)]
pub struct RawArgs {
    /// Element type of `x`.
    pub element: Element,
    /// Device address of `x[rows, hidden]`, a multiple of the element's size.
    pub x: u64,
    /// Device address of `q[rows_out, hidden]`, one byte each.
    pub q: u64,
    /// Device address of `s[rows_out]`, f32, a multiple of 4.
    pub s: u64,
    /// Shape of the three.
    pub shape: Shape,
    /// What becomes of zero rows.
    pub options: Options,
}

impl Quantizer {
    /// Checks a call and prepares its launch; the first call for an element type loads the module.
    ///
    /// `x`: `[rows, hidden]` elements · `q`: `[rows_out, hidden]` E4M3 codes · `s`: `[rows_out]` scales. Rows of `q` and
    /// `s` from `rows` on keep their bytes. No rows: nothing to do, and nothing is asked of the device.
    ///
    /// # Errors
    /// - [`Error::Shape`]: lengths, alignment, overlap.
    /// - [`Error::NoContext`], [`Error::ContextMismatch`].
    /// - [`Error::NotDeviceMemory`], [`Error::WrongDevice`], [`Error::WrongContext`].
    /// - [`Error::CpuBackend`]: the backend is [`Backend::Cpu`].
    /// - [`Error::UnsupportedTarget`], [`Error::UnsupportedDevice`], [`Error::TargetMath`], [`Error::NoArtifact`]: there
    ///   is no artifact for what the quantizer was told.
    /// - [`Error::MalformedArtifact`], [`Error::Load`], [`Error::NoEntry`]: there is one and it does not load. The next
    ///   call tries again.
    /// - [`Error::Plan`]: a plan forced by [`Quantizer::with_plan`] does not fit.
    /// - [`Error::Driver`].
    pub fn prepare<'a, T: GpuElement>(
        &self,
        x: &'a DeviceBuffer<T>,
        q: &'a mut DeviceBuffer<u8>,
        s: &'a mut DeviceBuffer<f32>,
        shape: Shape,
        options: Options,
    ) -> Result<Prepared<'a>, Error> {
        // SAFETY: the buffers own their memory, and are borrowed for 'a, `q` and `s` exclusively.
        unsafe { self.prepare_slices(**x, **q, **s, shape, options) }
    }

    /// As [`Quantizer::prepare`], on parts of buffers: a `DeviceSlice` is a copyable address that borrows nothing.
    ///
    /// # Safety
    /// Until the end of `'a`, which the caller chooses:
    /// - the memory of the slices exists;
    /// - nothing else writes `x`, or reads or writes the first `rows` rows of `q` and `s`.
    ///
    /// # Errors
    /// As [`Quantizer::prepare`].
    pub unsafe fn prepare_slices<'a, T: GpuElement>(
        &self,
        x: DeviceSlice<T>,
        q: DeviceSlice<u8>,
        s: DeviceSlice<f32>,
        shape: Shape,
        options: Options,
    ) -> Result<Prepared<'a>, Error> {
        shape.check_lens(x.len() as u64, q.len() as u64, s.len() as u64)?;
        let args = RawArgs {
            element: T::ELEMENT,
            x: x.as_device_ptr().as_raw(),
            q: q.as_device_ptr().as_raw(),
            s: s.as_device_ptr().as_raw(),
            shape,
            options,
        };
        check_spans(&args.spans())?;
        let work = if shape.rows() == 0 {
            None
        } else {
            self.home().check()?;
            for span in args.spans() {
                self.check_place(span.operand, span.address)?;
            }
            Some(self.resolve(&args)?)
        };
        Ok(Prepared { work, home: self.home().clone(), buffers: PhantomData })
    }

    /// Enqueues one call by addresses. Shape, alignment and overlap are checked, the buffers' place and size are not. The
    /// first call for an element type loads the module, which must not happen while `stream` is being captured: ask
    /// [`Quantizer::load`] before.
    ///
    /// # Safety
    /// - `x`, `q` and `s` are addresses of as many bytes as `shape` says in memory that the quantizer's device reads and
    ///   writes, until the kernel is done.
    /// - Until then nothing else writes `x`, or reads or writes the first `rows` rows of `q` and `s`.
    /// - `stream` is null or a stream of the quantizer's context.
    ///
    /// # Errors
    /// As [`Quantizer::prepare`], less those on the buffers' place and length. After [`Error::Driver`] some of the rows
    /// may be enqueued.
    pub unsafe fn quantize_raw(&self, args: RawArgs, stream: CUstream) -> Result<(), Error> {
        check_spans(&args.spans())?;
        if args.shape.rows() == 0 {
            return Ok(());
        }
        self.home().check()?;
        let (launch, _) = self.resolve(&args)?;
        // SAFETY: the context was checked above, the plan in `resolve`; the rest is what this function's caller promises.
        unsafe { launch.enqueue(stream) }
    }

    /// What a call by addresses would come to; `None`: there are no rows. Launches nothing and looks at no buffer, but
    /// loads the module.
    ///
    /// # Errors
    /// As [`Quantizer::quantize_raw`].
    pub fn choose(&self, args: &RawArgs) -> Result<Option<Choice>, Error> {
        check_spans(&args.spans())?;
        if args.shape.rows() == 0 {
            return Ok(None);
        }
        self.home().check()?;
        let (_, choice) = self.resolve(args)?;
        Ok(Some(choice))
    }

    /// Checks that an operand is memory of the quantizer's device that its context may access.
    pub(crate) fn check_place(&self, operand: &'static str, address: u64) -> Result<(), Error> {
        let expected = self.device().ordinal;
        match driver::memory_place(address)? {
            None => Err(Error::NotDeviceMemory { operand, address }),
            Some(Place { ordinal: actual, .. }) if actual != expected => {
                Err(Error::WrongDevice { operand, expected, actual })
            }
            Some(place) if !place.is_accessible_in(self.home().context()) => Err(Error::WrongContext { operand }),
            Some(_) => Ok(()),
        }
    }

    /// Finds kernel and plan for at least one row, in the quantizer's context, which is current.
    fn resolve(&self, args: &RawArgs) -> Result<(Launch, Choice), Error> {
        let RawArgs { element, x, q, s, shape, options } = *args;
        let module = self.module(Kernel::PerToken, element)?;
        let artifact = module.artifact();
        let call = Call { element, hidden: shape.hidden(), x, q };
        let plan = self.plan_for(artifact.target, call)?;
        let launch = Launch {
            function: module.function(plan.entry.name)?,
            x,
            q,
            s,
            rows: shape.rows(),
            hidden: shape.hidden(),
            element_bytes: element.bytes() as u64,
            guard: options.guard(shape.rows(), self.sm_count()),
            threads: plan.threads,
            rows_per_cta: plan.rows_per_cta(),
            grid_limit: self.grid_limit(),
        };
        let mut grids = launch.chunks();
        let choice = Choice {
            plan,
            ctas: grids.next().map_or(0, |first| first.ctas),
            grids: 1 + grids.count() as u64,
            target: artifact.target,
            math: artifact.math,
            backend: module.backend(),
        };
        report(args, &choice, self);
        Ok((launch, choice))
    }
}

/// Says what a call came to, and what was asked for.
fn report(args: &RawArgs, choice: &Choice, asked: &Quantizer) {
    let forced = asked.forced();
    tracing::debug!(
        artifact = %artifact_stem(Kernel::PerToken, args.element, choice.target, choice.math),
        backend = %choice.backend,
        backend_asked = %asked.backend(),
        target_forced = forced.target,
        math = %choice.math,
        math_of_device = %asked.device().math(),
        entry = choice.plan.entry.name,
        plan_forced = forced.plan,
        threads = choice.plan.threads,
        ctas = choice.ctas,
        grids = choice.grids,
        rows = args.shape.rows(),
        hidden = args.shape.hidden(),
        guard = args.options.guard(args.shape.rows(), asked.sm_count()),
        "resolved a call"
    );
}

impl RawArgs {
    fn spans(&self) -> [ptq_spec::shape::Span; 3] {
        self.shape.spans(self.element, self.x, self.q, self.s)
    }
}

impl Prepared<'_> {
    /// Launches the kernel in `stream` and waits until the stream is done; before, for what the default stream holds.
    ///
    /// # Errors
    /// [`Error::NoContext`], [`Error::ContextMismatch`], [`Error::Driver`].
    pub fn run(&mut self, stream: &Stream) -> Result<(), Error> {
        // `cust` fills and copies buffers in the default stream and may return before that is done; a non-blocking stream
        // would not wait for it.
        // SAFETY: the null stream always exists.
        unsafe { driver::synchronize(ptr::null_mut()) }?;
        // SAFETY: the buffers are borrowed, `q` and `s` exclusively, until this function returns, and the stream is done
        // by then.
        let launched = unsafe { self.launch(stream) };
        // Also after an error: a part may be in flight.
        // SAFETY: the stream exists while it is borrowed.
        let done = unsafe { driver::synchronize(stream.as_inner()) };
        launched.and(done)
    }

    /// Launches the kernel in `stream` and does not wait.
    ///
    /// # Safety
    /// Until the stream has passed the kernel, even after this `Prepared` is gone:
    /// - the three buffers exist;
    /// - nothing else writes `x`, or reads or writes the first `rows` rows of `q` and `s`, launches of this `Prepared` in
    ///   other streams included.
    ///
    /// # Errors
    /// [`Error::NoContext`], [`Error::ContextMismatch`], [`Error::Driver`]. After the last some of the rows may be
    /// enqueued.
    pub unsafe fn launch(&self, stream: &Stream) -> Result<(), Error> {
        let Some((launch, _)) = &self.work else { return Ok(()) };
        self.home.check()?;
        // SAFETY: the context was checked above, shape, place and plan by `prepare`, and a stream of another context is
        // refused by the driver; the rest is what this function's caller promises.
        unsafe { launch.enqueue(stream.as_inner()) }
    }

    /// What the call came to; `None`: there are no rows.
    pub fn plan(&self) -> Option<Choice> {
        self.work.map(|(_, choice)| choice)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::quantizer::tests::h200;
    use ptq_spec::per_token::{Entry, Strategy};
    use std::collections::BTreeMap;
    use std::fmt;
    use std::sync::{Arc, Mutex};
    use tracing::field::{Field, Visit};
    use tracing::{Event, Level, Metadata, Subscriber, span};

    /// The fields of one event.
    type Fields = BTreeMap<&'static str, String>;

    /// Keeps the fields of every event up to a level.
    struct Recorder {
        level: Level,
        events: Arc<Mutex<Vec<Fields>>>,
    }

    impl Subscriber for Recorder {
        fn enabled(&self, metadata: &Metadata<'_>) -> bool {
            *metadata.level() <= self.level
        }

        fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
            span::Id::from_u64(1)
        }

        fn record(&self, _: &span::Id, _: &span::Record<'_>) {}

        fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}

        fn event(&self, event: &Event<'_>) {
            struct Visitor(Fields);
            impl Visit for Visitor {
                fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
                    self.0.insert(field.name(), format!("{value:?}"));
                }
            }
            let mut visitor = Visitor(Fields::new());
            event.record(&mut visitor);
            self.events.lock().unwrap().push(visitor.0);
        }

        fn enter(&self, _: &span::Id) {}

        fn exit(&self, _: &span::Id) {}
    }

    /// The events of one reported call.
    fn reported(level: Level, asked: &Quantizer) -> Vec<Fields> {
        let plan = Plan { entry: Entry::find(Strategy::CtaTwoPass, 8, 1).unwrap(), threads: 256 };
        let choice = Choice {
            plan,
            grids: 1,
            ctas: 7,
            target: Target::by_name("sm_90").unwrap(),
            math: MathMode::Fast,
            backend: Backend::Aot,
        };
        let shape = Shape::new(7, 4096).unwrap();
        let args = RawArgs { element: Element::Bf16, x: 0, q: 0, s: 0, shape, options: Options::default() };
        let events = Arc::new(Mutex::new(Vec::new()));
        let recorder = Recorder { level, events: events.clone() };
        tracing::subscriber::with_default(recorder, || report(&args, &choice, asked));
        // Not `Arc::into_inner`: whoever rebuilds tracing's cache of interests in another thread may hold the recorder too.
        let mut events = events.lock().unwrap();
        std::mem::take(&mut *events)
    }

    #[test]
    fn event_says_what_runs_and_why() {
        let [event] = &reported(Level::DEBUG, &h200())[..] else { panic!("one event") };
        let field = |name| event.get(name).map(String::as_str);
        for (name, value) in [
            ("message", "resolved a call"),
            ("artifact", "per_token.bf16.sm_90.fast"),
            ("backend", "aot"),
            ("backend_asked", "auto"),
            ("target_forced", "false"),
            ("math", "fast"),
            ("math_of_device", "fast"),
            ("plan_forced", "false"),
            ("threads", "256"),
            ("ctas", "7"),
            ("grids", "1"),
            ("rows", "7"),
            ("hidden", "4096"),
            ("guard", "false"),
        ] {
            assert_eq!(field(name), Some(value), "{name}");
        }
        assert!(field("entry").unwrap().contains("two_pass"), "{event:?}");
    }

    #[test]
    fn event_says_what_was_forced() {
        let plan = Plan { entry: Entry::find(Strategy::CtaTwoPass, 8, 1).unwrap(), threads: 256 };
        let forced = h200().with_backend(Backend::Jit).with_target("sm_90").unwrap().with_plan(plan).unwrap();
        let [event] = &reported(Level::DEBUG, &forced)[..] else { panic!("one event") };
        assert_eq!(
            (&*event["backend_asked"], &*event["target_forced"], &*event["plan_forced"]),
            ("jit", "true", "true")
        );
    }

    #[test]
    fn event_is_at_debug_level() {
        assert_eq!(reported(Level::INFO, &h200()), []);
    }
}
