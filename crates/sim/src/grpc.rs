//! A [`thalweg::Channel`] and [`thalweg::Server`]s on seeded links, on a runtime whose clock is paused while any task
//! can run.
//!
//! Each call's seed determines for both ends the messages and how the call ends. The caller checks the outcome, and the
//! handler checks what it receives. After all calls, no call is in flight, no handler is left, stopped servers have
//! stopped in time, and unused connections are closed.
//!
//! A stalled world only waits for its last timeout: the paused clock jumps there at once, and the world fails.

mod call;
mod duplex;
mod messages;
mod plan;
mod run;
mod service;
mod world;

use std::sync::Arc;

use crate::random::Random;
use crate::trace::Trace;
use world::World;

/// Runs one world to completion.
///
/// # Panics
///
/// If an invariant is violated.
pub fn simulate(seed: u64, trace: &mut Trace) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .expect("a runtime without I/O needs nothing");
    let world = runtime.block_on(async {
        let world = Arc::new(World::new(Random::new(seed), std::mem::take(trace)));
        run::run(&world).await;
        world
    });
    drop(runtime);
    *trace = world.take_trace();
}
