//! Runs a simulation with many seeds, and prints how to replay a failed one.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Once;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::trace::Trace;

/// Message of deliberate panics in handlers and drivers.
pub const PLANNED_PANIC: &str = "a planned panic";

/// One seed in this many runs twice and must give the same trace.
const REPLAYED_ONE_IN: u64 = 16;

/// Runs `simulate` for `count` seeds starting at 0. Environment variables override this:
///
/// - `THALWEG_SIM_SEED=n` replays one seed and prints its trace;
/// - `THALWEG_SIM_SEEDS=n` replaces `count`;
/// - `THALWEG_SIM_FIRST=n` sets the first seed.
///
/// `test` is the name of the calling test, or of its module.
///
/// # Panics
///
/// If a seed fails or its second run differs. The seed and the command that replays it are printed.
pub fn check(test: &str, count: u64, simulate: impl Fn(u64, &mut Trace) + Sync) {
    keep_planned_panics_quiet();
    if let Some(seed) = from_environment("THALWEG_SIM_SEED") {
        let mut first = Trace::printed();
        simulate(seed, &mut first);
        eprintln!("seed {seed}: {} steps, hash {:016x}", first.steps(), first.hash());
        assert_replays(seed, first.hash(), &simulate);
        return;
    }
    let count = from_environment("THALWEG_SIM_SEEDS").unwrap_or(count);
    let first = from_environment("THALWEG_SIM_FIRST").unwrap_or(0);
    let (next, steps, failed) = (AtomicU64::new(0), AtomicU64::new(0), AtomicBool::new(false));
    let work = || {
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            let seed = first.wrapping_add(number);
            if number >= count || failed.load(Ordering::Relaxed) {
                return;
            }
            let run = || {
                let mut trace = Trace::quiet();
                simulate(seed, &mut trace);
                steps.fetch_add(trace.steps(), Ordering::Relaxed);
                if seed.is_multiple_of(REPLAYED_ONE_IN) {
                    assert_replays(seed, trace.hash(), &simulate);
                }
            };
            if let Err(panic) = catch_unwind(AssertUnwindSafe(run)) {
                failed.store(true, Ordering::Relaxed);
                eprintln!(
                    "seed {seed} failed; to replay it with its trace:\n    \
                     THALWEG_SIM_SEED={seed} cargo test -p thalweg-sim --test it {test}:: -- --nocapture"
                );
                resume_unwind(panic);
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(work);
        }
    });
    println!("{count} seeds from {first} on, {} steps", steps.into_inner());
}

fn assert_replays(seed: u64, expected: u64, simulate: impl Fn(u64, &mut Trace)) {
    let mut second_trace = Trace::quiet();
    simulate(seed, &mut second_trace);
    assert_eq!(second_trace.hash(), expected, "seed {seed} behaved differently the second time");
}

fn from_environment(name: &str) -> Option<u64> {
    let value = std::env::var(name).ok()?;
    Some(value.parse().unwrap_or_else(|_| panic!("invalid {name} `{value}`; use a number")))
}

/// Suppresses the messages of planned panics, which are in the trace.
fn keep_planned_panics_quiet() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let default_hook = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            if panic.payload().downcast_ref::<&str>() != Some(&PLANNED_PANIC) {
                default_hook(panic);
            }
        }));
    });
}
