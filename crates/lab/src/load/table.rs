//! The table of a study of calls: one line for each window.

use thalweg_measure::distribution::Latency;
use thalweg_measure::statistics::Ratio;
use thalweg_measure::usage::{ProcessUsage, Usage};

use super::results::PointResult;
use super::window_result::Outcome;
use crate::record::LoadResult;
use crate::report::table::Table;

pub(crate) type WindowsTable<'a> = Table<'a, &'a PointResult>;

/// What all studies of calls have. `most`: the rate of a bare socket with the same bytes.
pub(crate) fn windows<'a>(most: impl Fn(&PointResult) -> Option<f64> + 'a) -> WindowsTable<'a> {
    let mut table = Table::new();
    asked(&mut table);
    operations(&mut table, most);
    latencies(&mut table);
    used(&mut table);
    outcome(&mut table);
    table
}

/// What was asked.
fn asked(table: &mut WindowsTable<'_>) {
    table.column("work", |window| Some(window.point.work.to_string()));
    table.column("transport", |window| Some(window.point.transport.to_string()));
    table.column("size_bytes", |window| Some(window.point.size_bytes.0.to_string()));
    table.column("in_flight", |window| Some(window.point.in_flight.to_string()));
    table.column("client", |window| Some(window.pair.as_ref()?.client.to_string()));
    table.column("server", |window| Some(window.pair.as_ref()?.server.to_string()));
    table.column("round", |window| Some(window.round.to_string()));
    table.column("connections_asked", |window| Some(window.point.connections.to_string()));
}

fn operations<'a>(table: &mut WindowsTable<'a>, most: impl Fn(&PointResult) -> Option<f64> + 'a) {
    measured(table, "connections_established", |it| it.connections.established.map(|n| n.to_string()));
    measured(table, "duration_ns", |it| Some(it.duration_ns.to_string()));
    measured(table, "operations", |it| Some(it.messages.to_string()));
    measured(table, "calls", |it| Some(it.calls.to_string()));
    measured(table, "errors", |it| Some(it.error_count().to_string()));
    measured(table, "rate_per_s", |it| Some(format!("{:.3}", it.rate_per_s)));
    measured(table, "payload_bytes_per_s", |it| {
        Some(format!("{:.0}", it.rate_per_s * it.settings.size_bytes as f64))
    });
    table.column("share_of_socket", move |window| {
        let most = most(window).filter(|&most| most > 0.0)?;
        Some(format!("{:.5}", window.measured()?.rate_per_s / most))
    });
}

fn latencies(table: &mut WindowsTable<'_>) {
    table.figures::<Latency>(
        |window| window.measured()?.latency_ns,
        &[
            ("latency_min_ns", |it| Some(it.min.to_string())),
            ("latency_mean_ns", |it| Some(format!("{:.1}", it.mean))),
            ("latency_p50_ns", |it| Some(it.p50.to_string())),
            ("latency_p90_ns", |it| Some(it.p90.to_string())),
            ("latency_p95_ns", |it| it.p95.map(|ns| ns.to_string())),
            ("latency_p99_ns", |it| Some(it.p99.to_string())),
            ("latency_p99_9_ns", |it| Some(it.p99_9.to_string())),
            ("latency_p99_99_ns", |it| Some(it.p99_99.to_string())),
            ("latency_max_ns", |it| Some(it.max.to_string())),
        ],
    );
    measured(table, "pace_mean_ns", |it| Some(format!("{:.1}", it.pace_ns?.mean)));
    measured(table, "gap_max_ns", |it| Some(it.pace_ns?.gap_max.to_string()));
}

/// What both processes used: of an operation, and totals of the window.
fn used(table: &mut WindowsTable<'_>) {
    type Side = (&'static str, fn(&Usage) -> &ProcessUsage);
    type Figure = (&'static str, fn(&ProcessUsage) -> u64);
    const SIDES: [Side; 2] = [("client", |usage| &usage.client), ("server", |usage| &usage.server)];
    const FIGURES: [Figure; 8] = [
        ("user_ns", |used| used.user_ns),
        ("system_ns", |used| used.system_ns),
        ("voluntary_switches", |used| used.voluntary_switches),
        ("involuntary_switches", |used| used.involuntary_switches),
        ("waited_ns", |used| used.waited_ns),
        ("others_ns", |used| used.others_ns),
        ("stolen_ns", |used| used.stolen_ns),
        ("throttled_ns", |used| used.throttled_ns),
    ];
    measured(table, "client_cpu_user_ns_per_operation", |it| {
        Some(format!("{:.1}", it.client_cpu_per_call?.user_ns))
    });
    measured(table, "client_cpu_system_ns_per_operation", |it| {
        Some(format!("{:.1}", it.client_cpu_per_call?.system_ns))
    });
    table.column("usage_window_ns", |window| Some(window.usage?.window_ns.to_string()));
    for (side, of_side) in SIDES {
        for (figure, of_figure) in FIGURES {
            table.column(format!("usage_{side}_{figure}"), move |window| {
                Some(of_figure(of_side(&window.usage?)).to_string())
            });
        }
    }
}

fn outcome(table: &mut WindowsTable<'_>) {
    measured(table, "started", |it| Some(it.started.clone()));
    table.column("valid", |window| Some(window.validity().is_valid().to_string()));
    table.column("not_valid_because", |window| window.why_not());
    table.column("failure", |window| match &window.outcome {
        Outcome::Failed(reason) => Some(reason.clone()),
        Outcome::Measured(_) => None,
    });
}

/// A column that is empty for windows that failed.
pub(crate) fn measured(table: &mut WindowsTable<'_>, name: &str, cell: fn(&LoadResult) -> Option<String>) {
    table.column(name, move |window| cell(window.measured()?));
}

/// Ratios, and the ends of their intervals.
pub(crate) const RATIO: [fn(&Ratio) -> Option<String>; 3] = [
    |ratio| Some(format!("{:.4}", ratio.ratio)),
    |ratio| Some(format!("{:.4}", ratio.interval?.low)),
    |ratio| Some(format!("{:.4}", ratio.interval?.high)),
];
