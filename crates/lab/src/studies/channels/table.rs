//! The table of a channels study: what every study of calls has, and what was counted and watched apart.

use thalweg_measure::statistics::Ratio;

use super::analyse::{Cell, Channels};
use super::findings::Verdict;
use crate::load::table::{Windows, measured, windows};
use crate::load::{Strategy, Work};

/// What a channels study has besides: ratios of a load, and what was counted and watched apart, stand with every window
/// of their point.
pub(super) fn table<'a>(channels: &'a Channels, verdicts: &'a [Verdict]) -> Windows<'a> {
    // Bare sockets take no part: there is nothing to that a rate could stand beside.
    let mut table = windows(|_| None);
    table.column("strategy", |window| window.strategy.map(Strategy::name));
    table.column("round_trip_ns", |window| Some(window.point.round_trip.as_nanos().to_string()));
    measured(&mut table, "lanes_at_the_end", |it| Some(it.lanes.last()?.lanes.to_string()));
    let mut over_one = |name: &str, figure: fn(Ratio) -> Option<f64>| {
        table.column(name, move |window| {
            let (pair, strategy) = (window.pair.as_ref()?, window.strategy?);
            let Work::Call(call) = window.point.work else { return None };
            let at = (call, window.point.round_trip, window.point.in_flight);
            let several = verdicts.iter().find_map(|verdict| verdict.numbers.several(at, pair, strategy));
            Some(format!("{:.4}", figure(several?.over_one.ratio?)?))
        });
    };
    over_one("rate_over_one_connection", |ratio| Some(ratio.ratio));
    over_one("rate_over_one_connection_low", |ratio| Some(ratio.interval?.low));
    over_one("rate_over_one_connection_high", |ratio| Some(ratio.interval?.high));
    let mut of_cell = |name: &str, figure: fn(&Cell) -> Option<String>| {
        table.column(name, move |window| figure(channels.cell(window)?));
    };
    of_cell("system_calls_client_per_operation", |cell| {
        Some(format!("{:.4}", cell.system_calls?.client_per_operation))
    });
    of_cell("system_calls_server_per_operation", |cell| {
        Some(format!("{:.4}", cell.system_calls?.server_per_operation))
    });
    of_cell("wire_idle_share", |cell| Some(format!("{:.4}", cell.wire.as_ref()?.all.share)));
    of_cell("wire_gaps", |cell| Some(cell.wire.as_ref()?.all.gaps.to_string()));
    of_cell("wire_gap_p50_ns", |cell| Some(cell.wire.as_ref()?.all.p50_ns.to_string()));
    of_cell("wire_gap_p99_ns", |cell| Some(cell.wire.as_ref()?.all.p99_ns.to_string()));
    of_cell("wire_gap_max_ns", |cell| Some(cell.wire.as_ref()?.all.max_ns.to_string()));
    table
}
