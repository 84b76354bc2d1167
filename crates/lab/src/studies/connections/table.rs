//! The table of a connections study: what every study of calls has, and what is of connections.

use thalweg_measure::statistics::Ratio;
use thalweg_measure::usage::ServerMemory;

use super::analyse::{Cells, Server, load_of};
use crate::load::table::{Windows, measured, windows};
use crate::load::{PointResult, Strategy};

/// Ratios stand with every window of their cell.
pub(super) fn table(cells: &Cells) -> Windows<'_> {
    let mut table = windows(|_| None);
    table.column("strategy", |window| window.strategy.map(Strategy::name));
    table.column("tls", |window| Some(window.point.tls.to_string()));
    table.column("active", |window| window.point.active.map(|active| active.to_string()));
    table.column("in_flight_on_each", |window| load_of(window).map(|load| load.in_flight.to_string()));
    measured(&mut table, "jain", |it| Some(format!("{:.5}", it.fairness?.jain)));
    measured(&mut table, "calls_least", |it| Some(it.fairness?.least.to_string()));
    measured(&mut table, "calls_most", |it| Some(it.fairness?.most.to_string()));
    let mut memory = |name: &str, figure: fn(ServerMemory) -> u64| {
        table.column(name, move |window: &&PointResult| {
            Some(figure(window.usage?.server_memory?).to_string())
        });
    };
    memory("server_memory_first_bytes", |memory| memory.first);
    memory("server_memory_connected_bytes", |memory| memory.connected);
    memory("server_memory_measuring_bytes", |memory| memory.measuring);
    let mut ratio = |name: &str, of: fn(&Server) -> Option<Ratio>, figure: fn(Ratio) -> Option<f64>| {
        table.column(name, move |window: &&PointResult| {
            Some(format!("{:.4}", figure(of(cells.server(window)?)?)?))
        });
    };
    let floor: fn(&Server) -> Option<Ratio> = |server| server.over_floor;
    ratio("server_time_over_echo", floor, |ratio| Some(ratio.ratio));
    ratio("server_time_over_echo_low", floor, |ratio| Some(ratio.interval?.low));
    ratio("server_time_over_echo_high", floor, |ratio| Some(ratio.interval?.high));
    let ours: fn(&Server) -> Option<Ratio> = |server| server.ours_over?.ratio;
    ratio("our_server_time_over_its", ours, |ratio| Some(ratio.ratio));
    ratio("our_server_time_over_its_low", ours, |ratio| Some(ratio.interval?.low));
    ratio("our_server_time_over_its_high", ours, |ratio| Some(ratio.interval?.high));
    table
}
