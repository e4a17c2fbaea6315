//! Counts `tracing` events.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tracing::field::{Field, Visit};
use tracing::{Event, Metadata, Subscriber, span, subscriber};

/// The message of a module that was loaded.
pub const LOADED: &str = "loaded a module";
/// The message of a call that was resolved.
pub const RESOLVED: &str = "resolved a call";

/// How many events with that message there were on any thread that ran something in [`Count::during`].
#[derive(Clone)]
pub struct Count {
    message: &'static str,
    events: Arc<AtomicUsize>,
}

impl Count {
    pub fn of(message: &'static str) -> Self {
        Self { message, events: Arc::default() }
    }

    /// Counts this thread's events while `run` runs.
    pub fn during<R>(&self, run: impl FnOnce() -> R) -> R {
        subscriber::with_default(self.clone(), run)
    }

    /// Events so far.
    pub fn get(&self) -> usize {
        self.events.load(Ordering::Relaxed)
    }
}

impl Subscriber for Count {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }

    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}

    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}

    fn event(&self, event: &Event<'_>) {
        struct Message(&'static str, bool);
        impl Visit for Message {
            fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
                self.1 |= field.name() == "message" && format!("{value:?}") == self.0;
            }
        }
        let mut message = Message(self.message, false);
        event.record(&mut message);
        self.events.fetch_add(usize::from(message.1), Ordering::Relaxed);
    }

    fn enter(&self, _: &span::Id) {}

    fn exit(&self, _: &span::Id) {}
}
