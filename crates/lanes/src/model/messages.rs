//! The grid with long messages: size, server window, round trip and calls in flight.

use std::fmt::Write;

use super::costs::OURS;
use super::gains;
use super::grid::{Point, on_all_cores};
use super::run::check_table;
use super::*;

const IN_FLIGHT: [usize; 4] = [4, 16, 64, 256];
/// Number of columns for long messages: 256 of them are like 64.
const FEW: usize = 3;
const MESSAGE_KIB: [u64; 3] = [1, 64, 1_024];
/// The window of many peers, and our own.
const WINDOW_KIB: [u64; 2] = [64, 4_096];
const ROUND_TRIP_US: [u64; 4] = [50, 500, 5_000, 50_000];
const PATH: &str = "src/model/messages.txt";

fn world((message_kib, window_kib, round_trip_us): (u64, u64, u64), in_flight: usize) -> World {
    let costs = Costs {
        call_bytes: message_kib << 10,
        window_bytes: window_kib << 10,
        // 10 Gbit/s.
        link_byte_ps: 800,
        ..OURS
    };
    World {
        client_cores: 4,
        server_cores: 4,
        round_trip: Duration::from_micros(round_trip_us),
        costs,
        load: Load::Closed { in_flight },
    }
}

#[test]
fn full_windows_get_more_lanes() {
    let windows = MESSAGE_KIB.iter().flat_map(|&message| WINDOW_KIB.map(|window| (message, window)));
    let rows = windows.flat_map(|(message, window)| ROUND_TRIP_US.map(|us| (message, window, us)));
    let rows: Vec<_> = rows.collect();
    let columns = |message_kib: u64| &IN_FLIGHT[..if message_kib == 1 { IN_FLIGHT.len() } else { FEW }];
    let worlds_of = |&row: &(u64, u64, u64)| columns(row.0).iter().map(move |&calls| world(row, calls));
    let worlds: Vec<_> = rows.iter().flat_map(worlds_of).collect();
    let points = on_all_cores(&worlds, Point::of);

    let mut table = String::from(
        "Like grid.txt, but with long requests, a connection window at the server and a 10 Gbit/s link; 4 cores per \
         side.\nThe last figure in each cell is the best rate as a multiple of that of one lane.\n\n\
         message    window  round trip",
    );
    gains::write_column_headers(&mut table, &IN_FLIGHT);
    let mut left = points.iter();
    for &(message, window, us) in &rows {
        let round_trip = format!("{:?}", Duration::from_micros(us));
        write!(table, "{message:>4} KiB {window:>5} KiB {round_trip:>11}")
            .expect("writing to a String does not fail");
        gains::write_cells(&mut table, left.by_ref().take(columns(message).len()));
    }
    let within_5 = gains::write_end(&mut table, &points);
    check_table(PATH, include_str!("messages.txt"), &table);

    for (world, point) in worlds.iter().zip(&points) {
        let latency_s = world.load.calls() as f64 / point.best.one_lane_calls_per_s;
        // Calls that take longer than the time for which the policy observes a number of lanes.
        let is_too_slow = latency_s > 10.0;
        // With as many lanes as calls, two calls on one lane leave another idle.
        assert!(point.share >= 0.89 || is_too_slow, "{:.3} of the best rate: {world:?}", point.share);
    }
    assert!(within_5 * 100 >= points.len() * 80, "{within_5} of {} points are within 5 %", points.len());
}
