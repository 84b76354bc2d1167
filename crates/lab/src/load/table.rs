//! Table of a study of calls, with one line for each window.

use thalweg_measure::cpu_time::CpuTime;
use thalweg_measure::distribution::Latency;
use thalweg_measure::page::table::Columns;
use thalweg_measure::usage::{ProcessUsage, Usage};

use super::results::PointResult;
use super::window_result::Outcome;
use crate::record::LoadResult;

pub(crate) type WindowColumns<'a> = Columns<'a, &'a PointResult>;

/// Returns the columns common to all studies of calls. `most`: rate of a bare socket with the same bytes.
pub(crate) fn windows<'a>(most: impl Fn(&PointResult) -> Option<f64> + 'a) -> WindowColumns<'a> {
    outcome(used(latencies(operations(request_columns(), most))))
}

/// Adds the columns of the request.
fn request_columns<'a>() -> WindowColumns<'a> {
    WindowColumns::default()
        .plain("work", |window| Some(window.point.work))
        .plain("transport", |window| Some(window.point.transport))
        .plain("size_bytes", |window| Some(window.point.size_bytes.0))
        .plain("in_flight", |window| Some(window.point.in_flight))
        .plain("client", |window| Some(window.pair.as_ref()?.client.to_string()))
        .plain("server", |window| Some(window.pair.as_ref()?.server.to_string()))
        .plain("round", |window| Some(window.round))
        .plain("connections_asked", |window| Some(window.point.connections))
}

fn operations<'a>(
    columns: WindowColumns<'a>,
    most: impl Fn(&PointResult) -> Option<f64> + 'a,
) -> WindowColumns<'a> {
    let share = move |window: &&PointResult| {
        let most = most(window).filter(|&most| most > 0.0)?;
        Some(format!("{:.5}", window.measured()?.rate_per_s / most))
    };
    columns
        .plain_figures::<&LoadResult>(
            |window| window.measured(),
            &[
                ("connections_established", |it| Some(it.connections.established?.to_string())),
                ("duration_ns", |it| Some(it.duration_ns.to_string())),
                ("operations", |it| Some(it.messages.to_string())),
                ("calls", |it| Some(it.calls.to_string())),
                ("errors", |it| Some(it.error_count().to_string())),
                ("rate_per_s", |it| Some(format!("{:.3}", it.rate_per_s))),
                ("payload_bytes_per_s", |it| {
                    Some(format!("{:.0}", it.rate_per_s * it.settings.size_bytes as f64))
                }),
            ],
        )
        .plain("share_of_socket", share)
}

fn latencies(columns: WindowColumns<'_>) -> WindowColumns<'_> {
    columns
        .plain_figures::<Latency>(
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
        )
        .plain("pace_mean_ns", |window| Some(format!("{:.1}", window.measured()?.pace_ns?.mean)))
        .plain("gap_max_ns", |window| Some(window.measured()?.pace_ns?.gap_max))
}

/// Adds the resources used by both processes, per operation and in total for the window.
fn used(columns: WindowColumns<'_>) -> WindowColumns<'_> {
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
    let mut columns = columns
        .plain_figures::<CpuTime>(
            |window| window.measured()?.client_cpu_per_call,
            &[
                ("client_cpu_user_ns_per_operation", |it| Some(format!("{:.1}", it.user_ns))),
                ("client_cpu_system_ns_per_operation", |it| Some(format!("{:.1}", it.system_ns))),
            ],
        )
        .plain("usage_window_ns", |window| Some(window.usage?.window_ns));
    for (side, of_side) in SIDES {
        for (figure, of_figure) in FIGURES {
            let total = move |window: &&PointResult| Some(of_figure(of_side(&window.usage?)));
            columns = columns.plain(format!("usage_{side}_{figure}"), total);
        }
    }
    columns
}

fn outcome(columns: WindowColumns<'_>) -> WindowColumns<'_> {
    columns
        .plain("started", |window| Some(window.measured()?.started.clone()))
        .plain("valid", |window| Some(window.validity().is_valid()))
        .plain("not_valid_because", |window| window.invalid_reason())
        .plain("failure", |window| match &window.outcome {
            Outcome::Failed(reason) => Some(reason.clone()),
            Outcome::Measured(_) => None,
        })
}
