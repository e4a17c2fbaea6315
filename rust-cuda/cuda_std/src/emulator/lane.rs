//! One thread of a CTA: a coroutine, and how the code in it finds the emulator.

use super::cta::Cta;
use super::{FaultKind, Request};
use core::cell::Cell;
use core::ptr;
use corosensei::Yielder;

/// What a collective gives a lane.
pub(crate) type Answer = u32;

/// A thread's half of the conversation with the scheduler.
#[derive(Debug)]
pub(crate) struct Lane {
    /// Index of the thread in its CTA.
    pub(crate) thread: u32,
    /// The coroutine's way to suspend itself; null before it has started.
    pub(crate) yielder: Cell<*const Yielder<(), Request>>,
    pub(crate) answer: Cell<Answer>,
}

/// Unwinding with this payload ends a thread whose fault is already noted.
pub(crate) struct Failed;

std::thread_local! {
    /// The CTA and the lane that run on this OS thread; null outside a launch.
    static CURRENT: Cell<(*const Cta<'static>, *const Lane)> = const { Cell::new((ptr::null(), ptr::null())) };
}

/// Makes a lane the current one while `resume` runs it.
pub(crate) fn enter<R>(cta: &Cta<'_>, lane: &Lane, resume: impl FnOnce() -> R) -> R {
    /// Restores also when the lane panics.
    struct Restore((*const Cta<'static>, *const Lane));
    impl Drop for Restore {
        fn drop(&mut self) {
            CURRENT.set(self.0);
        }
    }
    let _restore = Restore(CURRENT.replace((ptr::from_ref(cta).cast(), ptr::from_ref(lane))));
    resume()
}

/// Calls `f` with the CTA and the lane that run.
pub(crate) fn with<R>(f: impl FnOnce(&Cta<'_>, &Lane) -> R) -> R {
    let (cta, lane) = CURRENT.get();
    assert!(!cta.is_null(), "cuda_std: a device function was called outside a kernel launch of the emulator");
    // SAFETY: `enter` set it from a reference, and unsets it before that ends.
    let cta = unsafe { &*cta };
    // SAFETY: as above.
    let lane = unsafe { &*lane };
    f(cta, lane)
}

/// Suspends the lane until the scheduler has what it asks for.
///
/// In a destructor of a lane that a fault ends, returns at once: the launch has its result, nobody else comes, and to unwind
/// a lane that is suspended while it unwinds would abort the process.
pub(crate) fn wait(request: Request) -> Answer {
    if std::thread::panicking() {
        return 0;
    }
    let yielder = with(|_, lane| lane.yielder.get());
    // SAFETY: the coroutine set it when it started, and lives while its code runs.
    unsafe { &*yielder }.suspend(request);
    with(|_, lane| lane.answer.get())
}

/// Ends the lane, and with it the launch.
pub(crate) fn fail(kind: FaultKind) -> ! {
    with(|cta, lane| cta.note(lane.thread, kind));
    // No message: the fault is the launch's result.
    std::panic::resume_unwind(std::boxed::Box::new(Failed))
}
