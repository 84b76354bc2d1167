//! Changes of load and network: how the channel reacts within seconds.

use std::fmt::Write;

use super::costs::{GRPC_CPP, OURS};
use super::run::{Adaptive, best_fixed, check_table};
use super::*;

const PATH: &str = "src/model/changes.txt";
const CHANGE_AT: Duration = Duration::from_secs(20);
/// Time limit for following a change.
const FOLLOWED: Duration = Duration::from_millis(2_500);

struct Change {
    name: &'static str,
    before: World,
    after: World,
}

#[test]
fn load_changes_are_followed_quickly() {
    let mut table = String::from(
        "Reaction to a change in the model: lanes at times after it, rate from 2 s to 3 s after it as a share of the \
         best\nfixed number of lanes, and that number.\n\n\
         change                                       before   0.5 s  1 s  2 s  3 s    share  best\n",
    );
    let mut followed = Vec::new();
    for Change { name, before, after } in changes() {
        let mut adaptive = Adaptive::new(before);
        adaptive.run_until(CHANGE_AT);
        let lanes_before = adaptive.model.ready_lanes();
        adaptive.model.set_round_trip(after.round_trip);
        adaptive.model.set_load(after.load);
        let lanes = [500, 1_000, 2_000, 3_000].map(|ms| {
            adaptive.run_until(CHANGE_AT + Duration::from_millis(ms));
            adaptive.model.ready_lanes()
        });
        let best = best_fixed(after);
        let share = adaptive.rate_of_last(Duration::from_secs(1)) / best.calls_per_s;
        let [half, one, two, three] = lanes;
        let numbers = format!("{half:>5} {one:>4} {two:>4} {three:>4}    {share:.3}  {:>4}", best.lanes);
        writeln!(table, "{name:<44} {lanes_before:>6}  {numbers}")
            .expect("writing to a String does not fail");
        let took = adaptive.last_change().saturating_sub(CHANGE_AT);
        followed.push((name, share, three, best.lanes, took, matches!(after.load, Load::Open { .. })));
    }
    check_table(PATH, include_str!("changes.txt"), &table);
    for (name, share, lanes, best, took, is_open) in followed {
        assert!(share >= 0.95, "{name}: {share:.3} of the best rate");
        // Open-loop calls pile up first, so the search ends only after the backlog is gone.
        let extra_allowed = if is_open { 2 } else { 1 };
        // Lanes opened one after the other may do better than lanes opened together.
        let is_earned = share > 1.02;
        assert!(lanes <= best + extra_allowed || is_earned, "{name}: {lanes} lanes where {best} do");
        assert!(is_open || took <= FOLLOWED, "{name}: {took:?} until the last change");
    }
}

fn changes() -> Vec<Change> {
    let world = |costs, in_flight, round_trip_us| World {
        client_cores: 16,
        server_cores: 16,
        round_trip: Duration::from_micros(round_trip_us),
        costs,
        load: Load::Closed { in_flight },
    };
    let open = |calls_per_s| World { load: Load::Open { calls_per_s }, ..world(GRPC_CPP, 0, 50) };
    let change = |name, before, after| Change { name, before, after };
    vec![
        change("4 to 256 in flight", world(OURS, 4, 50), world(OURS, 256, 50)),
        change("256 to 4 in flight", world(OURS, 256, 50), world(OURS, 4, 50)),
        change("1 to 64 in flight, gRPC C++", world(GRPC_CPP, 1, 50), world(GRPC_CPP, 64, 50)),
        change("64 to 1 in flight, gRPC C++", world(GRPC_CPP, 64, 50), world(GRPC_CPP, 1, 50)),
        change("round trip 5 ms to 50 µs", world(GRPC_CPP, 64, 5_000), world(GRPC_CPP, 64, 50)),
        change("round trip 50 µs to 5 ms", world(GRPC_CPP, 64, 50), world(GRPC_CPP, 64, 5_000)),
        change("20,000 to 300,000 calls/s, gRPC C++", open(20_000), open(300_000)),
        change("300,000 to 20,000 calls/s, gRPC C++", open(300_000), open(20_000)),
    ]
}
