//! Per-token quantization: `x[rows, hidden]` to E4M3 codes `q[rows_out, hidden]` and scales `s[rows_out]`, plain and
//! [extended](ptq_spec::per_token_extended).

use crate::driver::Place;
use crate::launch::{Extension, Launch};
use crate::policy::Call;
use crate::quantizer::{Home, Quantizer};
use crate::{Backend, Error, GpuElement, Plan, driver};
use cust::memory::{DeviceBuffer, DeviceSlice};
use cust::stream::Stream;
use cust::sys::CUstream;
use ptq_spec::per_token::flags;
use ptq_spec::per_token_extended::Layout;
use ptq_spec::shape::{Span, check_spans};
use ptq_spec::{Element, Extended, Kernel, MathMode, Options, Shape, ShapeError, Target, artifact_stem};
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
    /// Whether its grids may start before the kernel before them in the stream is complete
    /// ([`Quantizer::with_programmatic_launch`]).
    pub programmatic: bool,
}

/// One call by addresses, for [`Quantizer::quantize_raw`].
#[derive(Debug, Clone, Copy)]
pub struct RawArgs {
    /// Element type of `x`.
    pub element: Element,
    /// Device address of `x[rows, hidden]`, rows [`Extended::x_stride`] apart, a multiple of the element's size.
    pub x: u64,
    /// Device address of `q[rows_out, hidden]`, one byte each, rows [`Extended::q_stride`] apart.
    pub q: u64,
    /// Device address of `s[rows_out]`, f32, a multiple of 4.
    pub s: u64,
    /// Shape of the three.
    pub shape: Shape,
    /// What becomes of zero rows.
    pub options: Options,
    /// Row strides and bounds on the scales. With all of it off, and no count of rows, the plain kernels run.
    pub extended: Extended,
    /// Device address of a u32, a multiple of 4, that counts the rows to quantize; 0: all of `shape`. Rows from it on
    /// are left alone. The kernel reads it, so that a captured graph serves as many tokens as it says by then. What
    /// becomes of zero rows follows the rows of `shape`, not the count: [`ptq_spec::ZeroRows::Guarded`] makes them
    /// independent of both.
    pub device_rows: u64,
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
        // SAFETY: the lengths are checked, the rest is what this function's caller promises.
        unsafe { self.prepare_checked(RawArgs { options, ..RawArgs::of_slices(x, q, s, shape) }) }
    }

    /// As [`Quantizer::prepare`], with strides and bounds ([`ptq_spec::per_token_extended`]).
    ///
    /// `x` and `q` have at least as many elements as shape and strides ask for, up to the last row's end. What lies
    /// between rows is not read, and keeps its bytes.
    ///
    /// # Errors
    /// As [`Quantizer::prepare`], and [`ShapeError::Stride`], [`ShapeError::StrideOverflow`], [`ShapeError::TooShort`],
    /// [`ShapeError::Bound`].
    pub fn prepare_extended<'a, T: GpuElement>(
        &self,
        x: &'a DeviceBuffer<T>,
        q: &'a mut DeviceBuffer<u8>,
        s: &'a mut DeviceBuffer<f32>,
        shape: Shape,
        options: Options,
        extended: Extended,
    ) -> Result<Prepared<'a>, Error> {
        // SAFETY: the buffers own their memory, and are borrowed for 'a, `q` and `s` exclusively.
        unsafe { self.prepare_extended_slices(**x, **q, **s, shape, options, extended) }
    }

    /// As [`Quantizer::prepare_extended`], on parts of buffers.
    ///
    /// # Safety
    /// As [`Quantizer::prepare_slices`].
    ///
    /// # Errors
    /// As [`Quantizer::prepare_extended`].
    pub unsafe fn prepare_extended_slices<'a, T: GpuElement>(
        &self,
        x: DeviceSlice<T>,
        q: DeviceSlice<u8>,
        s: DeviceSlice<f32>,
        shape: Shape,
        options: Options,
        extended: Extended,
    ) -> Result<Prepared<'a>, Error> {
        extended.layout(shape)?.check_lens(x.len() as u64, q.len() as u64, s.len() as u64)?;
        let args = RawArgs { options, extended, ..RawArgs::of_slices(x, q, s, shape) };
        // SAFETY: the lengths are checked, the rest is what this function's caller promises.
        unsafe { self.prepare_checked(args) }
    }

    /// Prepares a call by the addresses of slices.
    ///
    /// # Safety
    /// As [`Quantizer::prepare_slices`], with memory of the lengths that shape and strides ask for, and no count of
    /// rows.
    unsafe fn prepare_checked<'a>(&self, args: RawArgs) -> Result<Prepared<'a>, Error> {
        let layout = args.check()?;
        let work = if args.shape.rows() == 0 {
            None
        } else {
            self.home().check()?;
            for span in args.spans(layout) {
                self.check_place(span.operand, span.address)?;
            }
            Some(self.resolve(&args, layout)?)
        };
        Ok(Prepared { work, home: self.home().clone(), buffers: PhantomData })
    }

    /// Enqueues one call by addresses. Shape, alignment and overlap are checked, the buffers' place and size are not. The
    /// first call for an element type loads the module, which must not happen while `stream` is being captured: ask
    /// [`Quantizer::load`] before.
    ///
    /// # Safety
    /// - `x`, `q` and `s` are addresses of as many bytes as `shape` and the strides say in memory that the quantizer's
    ///   device reads and writes, until the kernel is done; so is `device_rows` of a u32, unless it is 0.
    /// - Until then nothing else writes `x` or the count, or reads or writes the first `rows` rows of `q` and `s`. The
    ///   gaps between rows are everybody's.
    /// - `stream` is null or a stream of the quantizer's context.
    ///
    /// # Errors
    /// As [`Quantizer::prepare_extended`], less those on the buffers' place and length. After [`Error::Driver`] some of
    /// the rows may be enqueued.
    pub unsafe fn quantize_raw(&self, args: RawArgs, stream: CUstream) -> Result<(), Error> {
        let layout = args.check()?;
        if args.shape.rows() == 0 {
            return Ok(());
        }
        self.home().check()?;
        let (launch, _) = self.resolve(&args, layout)?;
        // SAFETY: the context was checked above, the plan in `resolve`; the rest is what this function's caller promises.
        unsafe { launch.enqueue(stream) }
    }

    /// What a call by addresses would come to; `None`: there are no rows. Launches nothing and looks at no buffer, but
    /// loads the module.
    ///
    /// # Errors
    /// As [`Quantizer::quantize_raw`].
    pub fn choose(&self, args: &RawArgs) -> Result<Option<Choice>, Error> {
        let layout = args.check()?;
        if args.shape.rows() == 0 {
            return Ok(None);
        }
        self.home().check()?;
        let (_, choice) = self.resolve(args, layout)?;
        Ok(Some(choice))
    }

    /// Checks that an operand is memory of the quantizer's device that its context may access.
    pub(crate) fn check_place(&self, operand: &'static str, address: u64) -> Result<(), Error> {
        self.check_placed(operand, address, driver::memory_place(address)?)
    }

    /// As [`Quantizer::check_place`], of what the driver said; `None`: it is no device memory.
    pub(crate) fn check_placed(&self, operand: &'static str, address: u64, place: Option<Place>) -> Result<(), Error> {
        let expected = self.device().ordinal;
        match place {
            None => Err(Error::NotDeviceMemory { operand, address }),
            Some(Place { ordinal: actual, .. }) if actual != expected => {
                Err(Error::WrongDevice { operand, expected, actual })
            }
            Some(place) if !place.is_accessible_in(self.home().context()) => Err(Error::WrongContext { operand }),
            Some(_) => Ok(()),
        }
    }

    /// Finds kernel and plan for at least one row, in the quantizer's context, which is current.
    fn resolve(&self, args: &RawArgs, layout: Layout) -> Result<(Launch, Choice), Error> {
        let RawArgs { element, x, q, s, shape, options, device_rows, .. } = *args;
        let kernel = self.launched(args.kernel(layout));
        let module = self.module(kernel, element)?;
        let artifact = module.artifact();
        let (hidden, x_stride, q_stride) = (shape.hidden(), layout.x_stride(), layout.q_stride());
        let call = Call { kernel, element, rows: shape.rows(), hidden, x, q, x_stride, q_stride };
        let plan = self.plan_for(artifact.target, call)?;
        let extension = Extension { bounds: layout.bounds(), device_rows };
        let launch = Launch {
            function: module.function(plan.entry.name)?,
            x,
            q,
            s,
            rows: shape.rows(),
            hidden,
            element_bytes: element.bytes() as u64,
            flags: plan.caching.flag() | if options.guard(shape.rows(), self.sm_count()) { flags::GUARD } else { 0 },
            x_stride,
            q_stride,
            extension: (kernel == Kernel::PerTokenExtended).then_some(extension),
            threads: plan.threads,
            rows_per_cta: plan.rows_per_cta(),
            grid_limit: self.grid_limit(),
            programmatic: self.programmatic() && artifact.orders_grids(),
        };
        let choice = Choice {
            plan,
            ctas: launch.chunks().next().map_or(0, |first| first.ctas),
            grids: launch.grids(),
            target: artifact.target,
            math: artifact.math,
            backend: module.backend(),
            programmatic: launch.programmatic,
        };
        report(args, layout, &choice, self);
        Ok((launch, choice))
    }
}

/// Says what a call came to, and what was asked for.
fn report(args: &RawArgs, layout: Layout, choice: &Choice, asked: &Quantizer) {
    let forced = asked.forced();
    tracing::debug!(
        artifact = %artifact_stem(asked.launched(args.kernel(layout)), args.element, choice.target, choice.math),
        backend = %choice.backend,
        backend_asked = %asked.backend(),
        target_forced = forced.target,
        math = %choice.math,
        math_of_device = %asked.device().math(),
        entry = choice.plan.entry.name,
        plan_forced = forced.plan,
        threads = choice.plan.threads,
        caching = %choice.plan.caching.name(),
        ctas = choice.ctas,
        grids = choice.grids,
        programmatic = choice.programmatic,
        programmatic_asked = asked.programmatic(),
        rows = args.shape.rows(),
        hidden = args.shape.hidden(),
        guard = args.options.guard(args.shape.rows(), asked.sm_count()),
        x_stride = layout.x_stride(),
        q_stride = layout.q_stride(),
        scale_upper_bound = args.extended.scale_upper_bound,
        min_scale = args.extended.min_scale,
        device_rows = args.device_rows != 0,
        "resolved a call"
    );
}

impl RawArgs {
    /// A call with the default options.
    pub fn new(element: Element, x: u64, q: u64, s: u64, shape: Shape) -> Self {
        let (options, extended) = (Options::default(), Extended::default());
        Self { element, x, q, s, shape, options, extended, device_rows: 0 }
    }

    fn of_slices<T: GpuElement>(x: DeviceSlice<T>, q: DeviceSlice<u8>, s: DeviceSlice<f32>, shape: Shape) -> Self {
        let (x, q, s) = (x.as_device_ptr(), q.as_device_ptr(), s.as_device_ptr());
        Self::new(T::ELEMENT, x.as_raw(), q.as_raw(), s.as_raw(), shape)
    }

    /// Checks everything that shows without looking at memory: strides, bounds, alignment and overlap, gaps between
    /// rows being parts of their operand.
    ///
    /// # Errors
    /// [`ShapeError`].
    pub fn check(&self) -> Result<Layout, ShapeError> {
        let layout = self.extended.layout(self.shape)?;
        let [x, q, s] = self.spans(layout);
        check_spans(&[x, q, s])?;
        if self.device_rows != 0 {
            let bytes = size_of::<u32>() as u64;
            // `x` is read too, and may hold it.
            check_spans(&[q, s, Span { operand: "device_rows", address: self.device_rows, bytes, align: bytes }])?;
        }
        Ok(layout)
    }

    /// Which kernels it takes.
    fn kernel(&self, layout: Layout) -> Kernel {
        if layout.is_plain() && self.device_rows == 0 { Kernel::PerToken } else { Kernel::PerTokenExtended }
    }

    fn spans(&self, layout: Layout) -> [Span; 3] {
        layout.spans(self.element, self.x, self.q, self.s)
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
        // SAFETY: the context exists, being current; the buffers are borrowed, `q` and `s` exclusively, until this function
        // returns, and the stream is done by then.
        let launched = self.home.check().and_then(|()| unsafe { self.launch(stream) });
        // Also after an error: a part may be in flight.
        // SAFETY: the stream exists while it is borrowed.
        let done = unsafe { driver::synchronize(stream.as_inner()) };
        launched.and(done)
    }

    /// Launches the kernel in `stream` and does not wait: one call to the driver beside the launch, to see which context is
    /// current.
    ///
    /// # Safety
    /// The quantizer's context exists: it was not destroyed since [`Quantizer::prepare`].
    ///
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
        self.home.check_handle()?;
        // SAFETY: the context was checked above, by its handle because it exists, shape, place and plan by `prepare`, and a
        // stream of another context is refused by the driver; the rest is what this function's caller promises.
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
    use std::sync::{Arc, Mutex, PoisonError};
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
        reported_with(level, asked, Extended::default())
    }

    /// The same with strides and bounds.
    fn reported_with(level: Level, asked: &Quantizer, extended: Extended) -> Vec<Fields> {
        let plan = Plan::new(Entry::find(Strategy::CtaTwoPass, 8, 1).unwrap(), 256);
        let choice = Choice {
            plan,
            grids: 1,
            ctas: 7,
            target: Target::by_name("sm_90").unwrap(),
            math: MathMode::Fast,
            backend: Backend::Aot,
            programmatic: true,
        };
        let shape = Shape::new(7, 4096).unwrap();
        let args = RawArgs { extended, ..RawArgs::new(Element::Bf16, 0, 0, 0, shape) };
        let layout = extended.layout(shape).unwrap();
        let events = Arc::new(Mutex::new(Vec::new()));
        let recorder = Recorder { level, events: events.clone() };
        // One at a time: who records while another thread meets the event for the first time may be missed for good.
        static ALONE: Mutex<()> = Mutex::new(());
        let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        tracing::subscriber::with_default(recorder, || report(&args, layout, &choice, asked));
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
            ("caching", "ordinary"),
            ("ctas", "7"),
            ("grids", "1"),
            ("programmatic", "true"),
            ("programmatic_asked", "false"),
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
        let plan = Plan::new(Entry::find(Strategy::CtaTwoPass, 8, 1).unwrap(), 256);
        let forced = h200().with_backend(Backend::Jit).with_target("sm_90").unwrap().with_plan(plan).unwrap();
        let [event] = &reported(Level::DEBUG, &forced)[..] else { panic!("one event") };
        assert_eq!(
            (&*event["backend_asked"], &*event["target_forced"], &*event["plan_forced"]),
            ("jit", "true", "true")
        );
    }

    #[test]
    fn event_says_what_is_extended() {
        let extended = Extended { x_stride: 5000, min_scale: Some(0.5), ..Extended::default() };
        let [event] = &reported_with(Level::DEBUG, &h200(), extended)[..] else { panic!("one event") };
        let field = |name| event.get(name).map(String::as_str);
        for (name, value) in [
            ("artifact", Some("per_token_extended.bf16.sm_90.fast")),
            ("x_stride", Some("5000")),
            ("q_stride", Some("4096")),
            ("scale_upper_bound", None),
            ("min_scale", Some("0.5")),
            ("device_rows", Some("false")),
        ] {
            assert_eq!(field(name), value, "{name}");
        }
    }

    #[test]
    fn kernels_are_extended_where_that_is_asked_for_alone() {
        let plain = RawArgs::new(Element::Bf16, 0x1000, 0x8000, 0xF000, Shape::new(2, 8).unwrap());
        let kernel = |args: RawArgs| args.check().map(|layout| args.kernel(layout));
        assert_eq!(kernel(plain), Ok(Kernel::PerToken));
        let extended = Extended { x_stride: 8, q_stride: 8, ..Extended::default() };
        assert_eq!(kernel(RawArgs { extended, ..plain }), Ok(Kernel::PerToken), "strides of rows without gaps");
        assert_eq!(kernel(RawArgs { device_rows: 0xF100, ..plain }), Ok(Kernel::PerTokenExtended));
        for extended in [
            Extended { x_stride: 9, ..Extended::default() },
            Extended { q_stride: 9, ..Extended::default() },
            Extended { scale_upper_bound: Some(1.0), ..Extended::default() },
            Extended { min_scale: Some(1.0), ..Extended::default() },
        ] {
            assert_eq!(kernel(RawArgs { extended, ..plain }), Ok(Kernel::PerTokenExtended), "{extended:?}");
        }
    }

    #[test]
    fn count_of_rows_is_aligned_and_apart_from_the_outputs() {
        // x: 32 bytes, q: 16, s: 8.
        let args = RawArgs::new(Element::Bf16, 0x1000, 0x8000, 0xF000, Shape::new(2, 8).unwrap());
        let check = |device_rows| RawArgs { device_rows, ..args }.check().map(|_| ());
        let kernel = ptq_spec::per_token::KERNEL;
        let misaligned = |actual| Err(ShapeError::Misaligned { kernel, operand: "device_rows", expected: 4, actual });
        let overlap = |operand| Err(ShapeError::Overlap { kernel, operand, other: "device_rows" });
        for fits in [0x1000, 0x1020, 0x7FFC, 0x8010, 0xEFFC, 0xF008] {
            assert_eq!(check(fits), Ok(()), "{fits:#x}");
        }
        assert_eq!(check(0x2001), misaligned(0x2001));
        assert_eq!(check(0x2002), misaligned(0x2002));
        assert_eq!(check(0x800C), overlap("q"));
        assert_eq!(check(0xF004), overlap("s"));
    }

    #[test]
    fn gaps_between_rows_count_for_overlap() {
        let extended = Extended { x_stride: 100, q_stride: 200, ..Extended::default() };
        let args = RawArgs::new(Element::Bf16, 0x1000, 0x8000, 0xF000, Shape::new(2, 8).unwrap());
        let args = RawArgs { extended, ..args };
        // x: 216 bytes, q: 208.
        assert!(args.check().is_ok());
        let kernel = ptq_spec::per_token::KERNEL;
        let overlap = |operand, other| Err(ShapeError::Overlap { kernel, operand, other });
        let check = |args: RawArgs| args.check().map(|_| ());
        assert_eq!(check(RawArgs { q: 0x1000 + 215, ..args }), overlap("x", "q"));
        assert_eq!(check(RawArgs { q: 0x1000 + 216, ..args }), Ok(()));
        assert_eq!(check(RawArgs { s: 0x8000 + 204, ..args }), overlap("q", "s"));
        assert_eq!(check(RawArgs { s: 0x8000 + 208, ..args }), Ok(()));
    }

    #[test]
    fn event_is_at_debug_level() {
        assert_eq!(reported(Level::INFO, &h200()), []);
    }
}
