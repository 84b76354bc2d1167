//! A steady load: the number of lanes does not fluctuate.

use super::costs::{GRPC_CPP, OURS};
use super::run::Adaptive;
use super::*;

/// Time until the search is over.
const SETTLED: Duration = Duration::from_secs(10);
const MINUTE: Duration = Duration::from_secs(60);

/// Runs three minutes. Lanes may be opened and closed at most twice in any minute.
fn check(name: &str, world: World, noise: f64, knows_round_trip: bool, lanes_max: usize) {
    let mut adaptive = Adaptive::new(world);
    adaptive.noise = noise;
    adaptive.knows_round_trip = knows_round_trip;
    // Enough of a tick to be realistic, and few enough to add noise.
    adaptive.tick_cycles = 6;
    adaptive.run_until(3 * MINUTE);
    let after: Vec<_> = adaptive.decisions.iter().filter(|(at, ..)| *at > SETTLED).collect();
    for (from, ..) in &after {
        let minute = || after.iter().filter(|(at, ..)| at >= from && *at < *from + MINUTE);
        let opened = minute().filter(|(_, count, _)| *count > 0).count();
        let closed = minute().filter(|(_, count, _)| *count < 0).count();
        assert!(
            opened <= 2 && closed <= 2,
            "{name}: {opened} opened and {closed} closed from {from:?} on: {after:#?}"
        );
    }
    let lanes = adaptive.model.ready_lanes();
    assert!(lanes <= lanes_max, "{name}: noise has led to {lanes} lanes: {:#?}", adaptive.decisions);
}

#[test]
fn lanes_are_stable_in_steady_load() {
    let world = |cores, round_trip_us, costs, in_flight| World {
        client_cores: cores,
        server_cores: cores,
        round_trip: Duration::from_micros(round_trip_us),
        costs,
        load: Load::Closed { in_flight },
    };
    for noise in [0.0, 0.3] {
        check("many cores", world(16, 50, GRPC_CPP, 64), noise, true, 16);
        check("four cores", world(4, 50, OURS, 64), noise, true, 9);
        check("one saturated core", world(1, 50, GRPC_CPP, 64), noise, true, 2);
        check("a far server", world(4, 5_000, OURS, 64), noise, true, 1);
        check("few calls, far", world(4, 200, OURS, 4), noise, true, 1);
        check("unknown round trip", world(4, 5_000, OURS, 64), noise, false, 2);
        let load = Load::Open { calls_per_s: 50_000 };
        check("calls at a fixed rate", World { load, ..world(4, 50, GRPC_CPP, 0) }, noise, true, 6);
    }
}
