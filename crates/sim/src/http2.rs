//! Two [`thalweg_http2::Connection`]s shovelled against each other, with a random owner on both sides.
//!
//! - `World` has the clock: it picks, at random, what happens next of all that could.
//! - `Peer` is an owner as the contract of the connection wants it, that does what comes to its mind.
//! - `Ledger` knows what each side said, and judges what the other hears.
//! - `Monitor` reads along on the wire.
//! - [`Pair`] is for directed tests: two connections on a link whose owners are the test.
//!
//! A world is *quiet* when nothing is on its way, nobody wants to write, no owner has anything left to do and no
//! deadline is pending. A quiet world whose link lives and whose streams have not all ended is stalled.

mod ledger;
mod monitor;
mod pair;
mod peer;
mod plan;
mod side;
mod world;

use crate::random::Random;
use crate::trace::Trace;
use side::Both;
use world::World;

pub use pair::{End, Heard, Pair};
pub(crate) use plan::{push_fields as random_fields, random_config};
pub use side::Side;

/// Runs one world to its end.
///
/// # Panics
///
/// When an invariant breaks.
pub fn simulate(seed: u64, trace: &mut Trace) {
    play(Random::new(seed), trace);
}

/// Runs the world that follows from `random`.
pub(crate) fn play(random: Random, trace: &mut Trace) {
    World::new(random).run(trace);
}

/// What both sides of a world write.
pub(crate) fn record(seed: u64) -> [(Side, Vec<u8>); 2] {
    let mut world = World::new(Random::new(seed));
    world.monitor.record();
    let Both([client, server]) = world.run(&mut Trace::quiet()).into_recording();
    [(Side::Client, client), (Side::Server, server)]
}
