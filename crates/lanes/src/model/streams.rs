//! A server that allows few streams per connection: lanes are opened for waiting calls, and closed when these are gone.

use super::costs::OURS;
use super::run::Adaptive;
use super::*;

/// Checks the number of lanes for this many callers and allowed streams.
fn check(in_flight: usize, stream_limit: usize, lanes: usize) {
    let load = Load::Closed { in_flight };
    let round_trip = Duration::from_millis(5);
    let world = World { client_cores: 4, server_cores: 4, round_trip, costs: OURS, load };
    let name = format!("{in_flight} in flight, {stream_limit} streams a connection");
    let mut adaptive = Adaptive::new(world);
    adaptive.model.set_stream_limit(stream_limit);
    adaptive.run_until(Duration::from_secs(2));
    assert_eq!(adaptive.model.ready_lanes(), lanes, "{name}: {:#?}", adaptive.decisions);
    // One round trip per call, with some tolerance.
    let ideal = in_flight.min(lanes * stream_limit) as f64 / round_trip.as_secs_f64();
    let share = adaptive.rate_of_last(Duration::from_secs(1)) / ideal;
    assert!(share > 0.9, "{name}: {share:.3} of the rate without a limit");

    adaptive.run_until(Duration::from_secs(60));
    assert_eq!(adaptive.model.ready_lanes(), lanes, "{name}, a minute later: {:#?}", adaptive.decisions);

    adaptive.model.set_load(Load::Closed { in_flight: 1 });
    adaptive.run_until(Duration::from_secs(62));
    assert_eq!(adaptive.model.ready_lanes(), 1, "{name}, then one: {:#?}", adaptive.decisions);
}

#[test]
fn waiting_calls_get_the_lanes_they_need() {
    check(8, 2, 4);
    check(1024, 100, 11);
    // The cap.
    check(64, 1, 16);
}
