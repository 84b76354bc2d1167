//! Table of a connections study: the common columns and its own.

use thalweg_measure::usage::ServerMemory;

use super::analyse::{ConnectionsCells, load_of};
use crate::load::Strategy;
use crate::load::table::{WindowColumns, windows};
use crate::record::Fairness;

/// Returns the table. Ratios are repeated for each window of their cell.
pub(super) fn table<'a>(cells: &'a ConnectionsCells<'_>) -> WindowColumns<'a> {
    windows(|_| None)
        .plain("strategy", |window| window.strategy.map(Strategy::name))
        .plain("tls", |window| Some(window.point.tls))
        .plain("active", |window| window.point.active)
        .plain("in_flight_on_each", |window| Some(load_of(&window.point)?.in_flight))
        .plain_figures::<Fairness>(
            |window| window.measured()?.fairness,
            &[
                ("jain", |it| Some(format!("{:.5}", it.jain))),
                ("calls_least", |it| Some(it.least.to_string())),
                ("calls_most", |it| Some(it.most.to_string())),
            ],
        )
        .plain_figures::<ServerMemory>(
            |window| window.usage?.server_memory,
            &[
                ("server_memory_first_bytes", |memory| Some(memory.first.to_string())),
                ("server_memory_connected_bytes", |memory| Some(memory.connected.to_string())),
                ("server_memory_measuring_bytes", |memory| Some(memory.measuring.to_string())),
            ],
        )
        .plain_ratio("server_time_over_echo", |window| cells.server(window)?.over_floor)
        .plain_ratio("our_server_time_over_its", |window| cells.server(window)?.ours_over?.ratio)
}
