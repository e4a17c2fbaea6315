//! One CTA: its threads take turns on one OS thread, and its collectives are the points where they wait.

use super::collective::Collective;
use super::lane::{self, Failed, Lane};
use super::shared::Shared;
use super::{Fault, FaultKind, Launch, Memory, Request};
use crate::warp::WARP_SIZE;
use core::cell::{Cell, RefCell};
use core::ops::Range;
use core::panic::Location;
use core::ptr;
use corosensei::stack::DefaultStack;
use corosensei::{Coroutine, CoroutineResult, Yielder};
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::string::{String, ToString};
use std::vec::Vec;

/// Bytes of a thread's stack: unoptimised kernels keep their arrays there. Only touched pages cost memory.
const STACK_BYTES: usize = 256 << 10;

std::thread_local! {
    /// Stacks of earlier CTAs: making one is two system calls.
    static STACKS: RefCell<Vec<DefaultStack>> = const { RefCell::new(Vec::new()) };
}

/// A CTA while it runs.
#[derive(Debug)]
pub(crate) struct Cta<'a> {
    pub(crate) launch: &'a Launch,
    pub(crate) memory: &'a Memory<'a>,
    /// Index in the grid.
    pub(crate) index: u32,
    pub(crate) shared: RefCell<Shared>,
    /// Barriers of the CTA so far.
    pub(crate) epoch: Cell<u32>,
    /// `sync_warp` of each warp so far.
    pub(crate) warp_epochs: Vec<Cell<u32>>,
    fault: RefCell<Option<Fault>>,
}

type Thread = Coroutine<(), Request, (), DefaultStack>;

#[derive(Debug, Clone, Copy)]
enum State {
    Ready,
    Waiting(Request),
    Returned,
}

/// Runs one CTA to its end, or to its first fault.
pub(crate) fn run(launch: &Launch, memory: &Memory<'_>, index: u32, kernel: &(impl Fn() + Sync)) -> Result<(), Fault> {
    let warps = launch.threads.div_ceil(WARP_SIZE);
    let cta = Cta {
        launch,
        memory,
        index,
        shared: RefCell::default(),
        epoch: Cell::new(0),
        warp_epochs: (0..warps).map(|_| Cell::new(0)).collect(),
        fault: RefCell::new(None),
    };
    let lanes: Vec<Lane> = (0..launch.threads)
        .map(|thread| Lane { thread, yielder: Cell::new(ptr::null()), answer: Cell::new(0) })
        .collect();
    let mut stacks = STACKS.take();
    let mut threads: Vec<Thread> = lanes
        .iter()
        .map(|lane| {
            let stack = stacks.pop().unwrap_or_else(|| DefaultStack::new(STACK_BYTES).expect("no memory for a stack"));
            let body = move |yielder: &Yielder<(), Request>, ()| {
                lane.yielder.set(yielder);
                kernel();
            };
            // SAFETY: `threads` is dropped or emptied below, before the lanes and the kernel it borrows.
            unsafe { Coroutine::with_stack_unchecked(stack, body) }
        })
        .collect();

    let mut schedule = Schedule { cta: &cta, lanes: &lanes, states: std::vec![State::Ready; lanes.len()] };
    let done = schedule.run(&mut threads);
    // Threads that a fault left suspended are unwound here.
    stacks.extend(threads.into_iter().zip(&lanes).filter_map(|(mut thread, lane)| {
        if !thread.done() {
            lane::enter(&cta, lane, || thread.force_unwind());
        }
        thread.done().then(|| thread.into_stack())
    }));
    STACKS.replace(stacks);
    done
}

impl Cta<'_> {
    /// Notes the fault of a thread; the first stays.
    pub(crate) fn note(&self, thread: u32, kind: FaultKind) {
        let fault = Fault { block: self.index, warp: thread / WARP_SIZE, lane: thread % WARP_SIZE, kind };
        self.fault.borrow_mut().get_or_insert(fault);
    }

    fn fail(&self, thread: usize, kind: FaultKind) -> Result<(), Fault> {
        self.note(thread as u32, kind);
        self.noted()
    }

    fn noted(&self) -> Result<(), Fault> {
        self.fault.borrow().clone().map_or(Ok(()), Err)
    }
}

struct Schedule<'a> {
    cta: &'a Cta<'a>,
    lanes: &'a [Lane],
    states: Vec<State>,
}

impl Schedule<'_> {
    fn run(&mut self, threads: &mut [Thread]) -> Result<(), Fault> {
        loop {
            for first in (0..self.lanes.len()).step_by(WARP_SIZE as usize) {
                let warp = first..self.lanes.len().min(first + WARP_SIZE as usize);
                self.run_warp(warp, threads)?;
            }
            if self.states.iter().all(|state| matches!(state, State::Returned)) {
                return Ok(());
            }
            self.release_barrier()?;
        }
    }

    /// Runs a warp until each of its lanes stands at a barrier of the CTA or has returned.
    fn run_warp(&mut self, warp: Range<usize>, threads: &mut [Thread]) -> Result<(), Fault> {
        loop {
            for index in warp.clone() {
                if matches!(self.states[index], State::Ready) {
                    self.resume(index, &mut threads[index])?;
                }
            }
            let waiting =
                warp.clone().find(|&index| matches!(self.states[index], State::Waiting(Request::Warp { .. })));
            let Some(index) = waiting else { return Ok(()) };
            self.perform(index, warp.clone())?;
        }
    }

    fn resume(&mut self, index: usize, thread: &mut Thread) -> Result<(), Fault> {
        let lane = &self.lanes[index];
        let result = catch_unwind(AssertUnwindSafe(|| lane::enter(self.cta, lane, || thread.resume(()))));
        self.states[index] = match result {
            Ok(CoroutineResult::Yield(request)) => State::Waiting(request),
            Ok(CoroutineResult::Return(())) => State::Returned,
            Err(payload) if payload.is::<Failed>() => return self.cta.noted(),
            Err(payload) => return self.cta.fail(index, FaultKind::Panicked { message: message(&*payload) }),
        };
        // The kernel may have caught what should have ended the thread.
        self.cta.noted()
    }

    /// Performs the warp operation that thread `index` waits in.
    fn perform(&mut self, index: usize, warp: Range<usize>) -> Result<(), Fault> {
        let State::Waiting(Request::Warp { collective, mask, at, .. }) = self.states[index] else {
            unreachable!("the caller found the thread waiting in a warp operation");
        };
        if mask >> (index - warp.start) & 1 == 0 {
            return self.cta.fail(index, FaultKind::NotInMask { at, mask });
        }
        let mut values = [0; WARP_SIZE as usize];
        let mut present = 0;
        for (lane, state) in self.states[warp.clone()].iter().enumerate() {
            if let State::Waiting(Request::Warp { collective: c, mask: m, value, at: a }) = state
                && (*m, *a) == (mask, at)
                && c.joins(collective)
            {
                values[lane] = *value;
                present |= 1 << lane;
            }
        }
        let missing = mask & !present;
        if missing != 0 {
            return self.cta.fail(index, FaultKind::MissingLanes { at, mask, missing });
        }
        for lane in (0..warp.len()).filter(|lane| mask >> lane & 1 == 1) {
            let thread = warp.start + lane;
            // Each lane's own operation: a shuffle's operand may differ.
            let State::Waiting(Request::Warp { collective, .. }) = self.states[thread] else { continue };
            match collective.answer(at, lane as u32, mask, &values) {
                Ok(answer) => self.lanes[thread].answer.set(answer),
                Err(kind) => return self.cta.fail(thread, kind),
            }
            self.states[thread] = State::Ready;
        }
        if collective == Collective::Sync {
            let epoch = &self.cta.warp_epochs[warp.start / WARP_SIZE as usize];
            epoch.set(epoch.get() + 1);
        }
        Ok(())
    }

    /// Lets the CTA pass the barrier that every thread waits at.
    fn release_barrier(&mut self) -> Result<(), Fault> {
        let barrier = |state: &State| match state {
            State::Waiting(Request::Barrier { at }) => Some(*at),
            _ => None,
        };
        let waiting: Vec<(usize, &'static Location<'static>)> =
            self.states.iter().enumerate().filter_map(|(index, state)| Some((index, barrier(state)?))).collect();
        let (first, at) = waiting[0];
        let together = waiting.iter().filter(|(_, other)| *other == at).count();
        if together != self.states.len() {
            let (waiting, threads) = (together as u32, self.states.len() as u32);
            return self.cta.fail(first, FaultKind::DivergentBarrier { at, waiting, threads });
        }
        self.cta.epoch.set(self.cta.epoch.get() + 1);
        self.states.fill(State::Ready);
        Ok(())
    }
}

fn message(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<&str>().map(ToString::to_string);
    text.or_else(|| payload.downcast_ref::<String>().cloned()).unwrap_or_else(|| "no message".to_string())
}
