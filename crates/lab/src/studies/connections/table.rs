//! The table of a connections study: what every study of calls has, and what is of connections.

use thalweg_measure::usage::ServerMemory;

use super::analyse::{ConnectionsCells, load_of};
use crate::load::Strategy;
use crate::load::table::{RATIO, WindowsTable, measured, windows};

/// Ratios stand with every window of their cell.
pub(super) fn table<'a>(cells: &'a ConnectionsCells<'_>) -> WindowsTable<'a> {
    let mut table = windows(|_| None);
    table.column("strategy", |window| window.strategy.map(Strategy::name));
    table.column("tls", |window| Some(window.point.tls.to_string()));
    table.column("active", |window| window.point.active.map(|active| active.to_string()));
    table.column("in_flight_on_each", |window| load_of(&window.point).map(|load| load.in_flight.to_string()));
    measured(&mut table, "jain", |it| Some(format!("{:.5}", it.fairness?.jain)));
    measured(&mut table, "calls_least", |it| Some(it.fairness?.least.to_string()));
    measured(&mut table, "calls_most", |it| Some(it.fairness?.most.to_string()));
    table.figures::<ServerMemory>(
        |window| window.usage?.server_memory,
        &[
            ("server_memory_first_bytes", |memory| Some(memory.first.to_string())),
            ("server_memory_connected_bytes", |memory| Some(memory.connected.to_string())),
            ("server_memory_measuring_bytes", |memory| Some(memory.measuring.to_string())),
        ],
    );
    table.figures(
        |window| cells.server(window)?.over_floor,
        &[
            ("server_time_over_echo", RATIO[0]),
            ("server_time_over_echo_low", RATIO[1]),
            ("server_time_over_echo_high", RATIO[2]),
        ],
    );
    table.figures(
        |window| cells.server(window)?.ours_over?.ratio,
        &[
            ("our_server_time_over_its", RATIO[0]),
            ("our_server_time_over_its_low", RATIO[1]),
            ("our_server_time_over_its_high", RATIO[2]),
        ],
    );
    table
}
