//! Table of a JSON study, with a row per window.

use thalweg_measure::distribution::Latency;
use thalweg_measure::page::table::Columns;

use super::window::{WindowLength, WindowResult};
use crate::echo::STAGES;

type WindowColumns<'a> = Columns<'a, &'a WindowResult>;

type FigureOf = fn(&WindowResult) -> Option<u64>;

/// Columns with per-call figures of a window.
const PER_CALL: [(&str, FigureOf); 4] = [
    ("sent_bytes_per_call", |it| Some(it.measured()?.bytes_sent)),
    ("received_bytes_per_call", |it| Some(it.measured()?.bytes_received)),
    ("client_cpu_ns_per_call", |it| Some(it.usage?.client.cpu_ns())),
    ("server_cpu_ns_per_call", |it| Some(it.usage?.server.cpu_ns())),
];

pub(super) fn csv(windows: &[WindowResult]) -> String {
    let columns = STAGES.into_iter().fold(measured(request_columns()), |columns, stage| {
        columns.plain(format!("{}_mean_ns", stage.replace('-', "_")), move |it| {
            let stage = it.measured()?.stages.iter().find(|it| it.name == stage)?;
            Some(format!("{:.0}", stage.latency_ns.mean))
        })
    });
    let columns = PER_CALL.into_iter().fold(columns, |columns, (name, figure)| {
        columns.plain(name, move |it| {
            let calls = Some(it.measured()?.messages).filter(|&calls| calls > 0)?;
            Some(format!("{:.0}", figure(it)? as f64 / calls as f64))
        })
    });
    columns.table(windows).csv()
}

fn request_columns<'a>() -> WindowColumns<'a> {
    WindowColumns::default()
        .plain("server", |it| Some(it.window.endpoint.stack.to_string()))
        .plain("protocol", |it| Some(it.window.endpoint.protocol))
        .plain("message", |it| Some(it.window.case.shape))
        .plain("round_trip_ns", |it| Some(it.window.case.round_trip_ns))
        .plain("network_bit_per_s", |it| it.window.case.rate_bit_per_s)
        .plain("connection", |it| Some(if it.window.case.new_connection { "new" } else { "kept" }))
        .plain("compression", |it| it.window.case.gzip.then_some("gzip"))
        .plain("measured_for", |it| Some(serde_json::to_value(it.window.purpose).ok()?.as_str()?.to_owned()))
        .plain("round", |it| Some(it.window.round))
        .plain("beside_itself", |it| match (it.window.is_duplicate, it.window.is_noise_baseline) {
            (true, _) => Some("yes"),
            (_, true) => Some("compared"),
            (false, false) => None,
        })
        .plain("in_flight", |it| Some(it.window.in_flight))
        .plain("asked_calls", |it| match it.window.length {
            WindowLength::Calls(calls) => Some(calls),
            WindowLength::Ns(_) => None,
        })
}

fn measured(columns: WindowColumns<'_>) -> WindowColumns<'_> {
    columns
        .plain("valid", |it| Some(it.validity().is_valid()))
        .plain("left_out_because", |it| it.validity().invalid_reason())
        .plain("duration_ns", |it| Some(it.measured()?.duration_ns))
        .plain("calls", |it| Some(it.measured()?.messages))
        .plain("errors", |it| Some(it.measured()?.error_count()))
        .plain("rate_per_s", |it| Some(format!("{:.1}", it.measured()?.rate_per_s)))
        .plain_figures::<Latency>(
            |it| it.measured()?.latency_ns,
            &[
                ("latency_mean_ns", |it| Some(format!("{:.0}", it.mean))),
                ("latency_p50_ns", |it| Some(it.p50.to_string())),
                ("latency_p90_ns", |it| Some(it.p90.to_string())),
                ("latency_p95_ns", |it| Some(it.p95?.to_string())),
                ("latency_p99_ns", |it| Some(it.p99.to_string())),
                ("latency_p99_9_ns", |it| Some(it.p99_9.to_string())),
                ("latency_max_ns", |it| Some(it.max.to_string())),
            ],
        )
        .plain("first_call_ns", |it| it.measured()?.first_call_ns)
}
