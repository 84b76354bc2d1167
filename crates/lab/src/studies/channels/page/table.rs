//! All figures of a channels study.

use maud::{Markup, html};
use thalweg_measure::figures::{count, from_to, interval_figure, percent, ratio_figure, time};
use thalweg_measure::page::parts::{field, sorting_head, sure_field};
use thalweg_measure::statistics::Ratio;

use crate::studies::channels::analyse::{Cell, Channels, Line, Panel};
use crate::studies::channels::findings::Verdict;

const COLUMNS: [&str; 20] = [
    "Way",
    "Call",
    "Round trip",
    "In flight",
    "Rate",
    "÷ one",
    "p50",
    "p90",
    "p95",
    "p99",
    "p99.9",
    "max",
    "Connections",
    "Client CPU",
    "Server CPU",
    "Client busy",
    "Server busy",
    "Client calls",
    "Server calls",
    "Errors",
];

pub(super) fn table(channels: &Channels, verdicts: &[Verdict]) -> Markup {
    html! {
        table {
            thead {
                tr {
                    @for name in COLUMNS { (sorting_head(name, None)) }
                }
            }
            tbody {
                @for point in channels.points() { (row(point, over_one(verdicts, point))) }
            }
        }
    }
}

/// The rate of a way with several connections ÷ that over one.
fn over_one(verdicts: &[Verdict], (panel, line, cell): (&Panel, &Line, &Cell)) -> Option<Ratio> {
    let at = (panel.call, panel.round_trip, cell.in_flight);
    verdicts.iter().find_map(|verdict| verdict.numbers.several(at, &line.pair, line.strategy))?.over_one.ratio
}

fn row((panel, line, cell): (&Panel, &Line, &Cell), over_one: Option<Ratio>) -> Markup {
    let latency = cell.latency;
    let counted = cell.system_calls;
    let counted = [counted.map(|it| it.client_per_operation), counted.map(|it| it.server_per_operation)];
    let used = [cell.client, cell.server];
    let round_trip_ns = panel.round_trip.as_nanos() as f64;
    html! {
        tr {
            th scope="row" { (line.label()) }
            td.words { (panel.call) }
            (field(Some(round_trip_ns), |ns| if ns > 0.0 { time(ns) } else { "direct".to_owned() }))
            (field(Some(f64::from(cell.in_flight)), |in_flight| in_flight.to_string()))
            (sure_field(Some(cell.rate_per_s), |rate| format!("{}/s", count(rate)), from_to(cell.rate_interval, count)))
            (sure_field(
                over_one.map(|it| it.ratio),
                |ratio| format!("{} ×", ratio_figure(ratio)),
                over_one.and_then(interval_figure),
            ))
            (sure_field(Some(latency.p50 as f64), time, from_to(cell.p50_interval, time)))
            @for ns in [Some(latency.p90), latency.p95, Some(latency.p99), Some(latency.p99_9), Some(latency.max)] {
                (field(ns.map(|ns| ns as f64), time))
            }
            (field(cell.connections.map(f64::from), |connections| connections.to_string()))
            @for used in used { (field(used.map(|used| used.ns_per_operation), time)) }
            @for used in used { (field(used.map(|used| used.processors), percent)) }
            @for calls in counted { (field(calls, |calls| format!("{calls:.2}"))) }
            (field(Some(cell.errors as f64), count))
        }
    }
}
