//! Two [`thalweg_http2::Connection`]s connected to each other, with a random driver on each side.
//!
//! - `World` has the clock: it picks at random which of the possible events happens next.
//! - `Peer` is a driver that follows the connection's contract and otherwise acts randomly.
//! - `Ledger` records what each side sent, and checks what the other receives.
//! - `Monitor` checks the bytes on the wire.
//! - [`Pair`] is for directed tests: two connections on a link, driven by the test.
//!
//! A world is *quiet* when no bytes are in transit, no side wants to write, no driver has work left and no deadline is
//! pending. A quiet world with a live link and unfinished streams has stalled.

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

pub use pair::{Endpoint, Pair, ReceivedEvent};
pub(crate) use plan::{push_fields as random_fields, random_config};
pub use side::Side;

/// Runs one world to completion.
///
/// # Panics
///
/// If an invariant is violated.
pub fn simulate(seed: u64, trace: &mut Trace) {
    play(Random::new(seed), trace);
}

/// Runs the world determined by `random`.
pub(crate) fn play(random: Random, trace: &mut Trace) {
    World::new(random).run(trace);
}

/// Returns the bytes written by both sides of a world.
pub(crate) fn record(seed: u64) -> [(Side, Vec<u8>); 2] {
    let mut world = World::new(Random::new(seed));
    world.monitor.record();
    let Both([client, server]) = world.run(&mut Trace::quiet()).into_recording();
    [(Side::Client, client), (Side::Server, server)]
}
