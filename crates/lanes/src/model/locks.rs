//! The grid with contended locks: cores, calls in flight, and time that a call holds its lane's lock.

use std::fmt::Write;

use super::costs::OURS;
use super::gains;
use super::grid::{Point, on_all_cores};
use super::lock::LockCosts;
use super::run::check_table;
use super::*;

const IN_FLIGHT: [usize; 4] = [4, 16, 64, 256];
const CORES: [usize; 5] = [1, 2, 4, 8, 16];
/// Hold times: the shortest and the longest measured for an empty call, and one with large headers.
const CALL_NS: [u64; 3] = [150, 250, 1_000];
const PATH: &str = "src/model/locks.txt";

fn world(call_ns: u64, cores: usize, in_flight: usize) -> World {
    let lock =
        LockCosts { call_ns, event_ns: 65, handover_ns: 40, spin_ns_max: 2_000, sleep_ns: (5_000, 50_000) };
    World {
        client_cores: cores,
        server_cores: cores,
        round_trip: Duration::from_micros(50),
        // A caller's work outside the lock is constant.
        costs: Costs { lock, caller_ns: 300 + 2 * call_ns, ..OURS },
        load: Load::Closed { in_flight },
    }
}

#[test]
fn contended_locks_are_spread_over_lanes() {
    let rows = CALL_NS.iter().flat_map(|&call_ns| CORES.map(|cores| (call_ns, cores)));
    let rows: Vec<_> = rows.collect();
    let worlds: Vec<_> =
        rows.iter().flat_map(|&(held, cores)| IN_FLIGHT.map(|calls| world(held, cores, calls))).collect();
    let points = on_all_cores(&worlds, Point::of);

    let mut table = String::from(
        "Like grid.txt, but callers and drivers contend for their lane's lock; 50 µs, with as many cores on the \
         server.\nThe last figure in each cell is the best rate as a multiple of that of one lane.\n\n\
         lock held  cores",
    );
    gains::write_column_headers(&mut table, &IN_FLIGHT);
    for (&(call_ns, cores), points) in rows.iter().zip(points.chunks(IN_FLIGHT.len())) {
        write!(table, "{:>9} {cores:>6}", format!("{call_ns} ns"))
            .expect("writing to a String does not fail");
        gains::write_cells(&mut table, points);
    }
    let within_5 = gains::write_end(&mut table, &points);
    check_table(PATH, include_str!("locks.txt"), &table);

    for (world, point) in worlds.iter().zip(&points) {
        assert!(point.share >= 0.9, "{:.3} of the best rate: {world:?}", point.share);
    }
    assert!(within_5 * 100 >= points.len() * 95, "{within_5} of {} points are within 5 %", points.len());
}
