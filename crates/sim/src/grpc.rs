//! A [`thalweg::Channel`] and [`thalweg::Server`]s on seeded links, on a runtime whose clock stands still while anybody
//! has something to do.
//!
//! Each call's seed says to both ends what there is to say and how the call ends; the caller judges its outcome, the
//! handler what it hears. When all calls are over no call is in flight, no handler is left, servers that were told to
//! stop have stopped in time, and connections that nobody needs are closed.
//!
//! A world that stalls has nothing to wait for but its last timeout: the paused clock jumps there at once, and it
//! fails.

mod call;
mod duplex;
mod messages;
mod plan;
mod run;
mod service;
mod who;
mod world;

use std::sync::Arc;

use crate::random::Random;
use crate::trace::Trace;
use world::World;

/// Runs one world to its end.
///
/// # Panics
///
/// When an invariant breaks.
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
