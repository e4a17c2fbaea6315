//! How long the emulator takes for one CTA.

use crate::subject::Emulator;
use ptq_cpu::Params;
use ptq_spec::per_token::{Entry, Strategy};
use ptq_spec::{Element, MathMode};
use ptq_suite::{Implementation, Oracle, cases, check};
use std::time::{Duration, Instant};

/// A CTA of 256 threads, with its barriers and the number that they raise.
#[test]
#[cfg_attr(debug_assertions, ignore = "the bound is that of release builds")]
fn a_cta_of_256_threads_takes_at_most_a_millisecond() {
    const THREADS: u32 = 256;
    const BOUND: Duration = Duration::from_millis(1);
    const RUNS: usize = 200;
    for element in Element::ALL {
        let entry = Entry::find(Strategy::Cta, 8, 2).expect("the entry exists");
        let subject = Emulator::forced(entry, THREADS);
        let hidden = entry.max_hidden(THREADS).expect("it holds rows in registers");
        let case = cases::ordinary(element, 1, hidden as usize, Params::new(MathMode::Fast));
        check(&subject, Oracle::Scalar, &case).expect("the bits are right");
        let mut out = case.output();
        let once = |_| {
            let start = Instant::now();
            subject.quantize(&case, &mut out).expect("it ran before");
            start.elapsed()
        };
        // The shortest: what the machine does besides only makes it longer.
        let shortest = (0..RUNS).map(once).min().expect("there are runs");
        println!("{element}, {hidden} elements: {shortest:?}");
        assert!(shortest <= BOUND, "{element}: {shortest:?}");
    }
}
