//! The table of a study: a row for each window.

use super::window::{WindowLength, WindowResult};
use crate::report::table::Table;

pub(super) fn table<'a>() -> Table<'a, &'a WindowResult> {
    let mut table: Table<'a, &'a WindowResult> = Table::new();
    table.column("server", |it| Some(it.window.way.stack.to_string()));
    table.column("protocol", |it| Some(it.window.way.protocol.to_string()));
    table.column("message", |it| Some(it.window.case.shape.to_string()));
    table.column("round_trip_ns", |it| Some(it.window.case.round_trip_ns.to_string()));
    table.column("network_bit_per_s", |it| it.window.case.rate_bit_per_s.map(|rate| rate.to_string()));
    table.column("connection", |it| Some(if it.window.case.afresh { "new" } else { "kept" }.to_owned()));
    table.column("compression", |it| it.window.case.gzip.then(|| "gzip".to_owned()));
    table.column("measured_for", |it| {
        serde_json::to_value(it.window.purpose).ok()?.as_str().map(str::to_owned)
    });
    table.column("round", |it| Some(it.window.round.to_string()));
    table.column("beside_itself", |it| match (it.window.again, it.window.for_noise) {
        (true, _) => Some("yes".to_owned()),
        (_, true) => Some("compared".to_owned()),
        (false, false) => None,
    });
    table.column("in_flight", |it| Some(it.window.in_flight.to_string()));
    table.column("asked_calls", |it| match it.window.length {
        WindowLength::Calls(calls) => Some(calls.to_string()),
        WindowLength::Ns(_) => None,
    });
    table.column("valid", |it| Some(it.validity().is_valid().to_string()));
    table.column("left_out_because", |it| it.validity().why_not());
    table.column("duration_ns", |it| Some(it.measured()?.duration_ns.to_string()));
    table.column("calls", |it| Some(it.measured()?.messages.to_string()));
    table.column("errors", |it| Some(it.measured()?.error_count().to_string()));
    table.column("rate_per_s", |it| Some(format!("{:.1}", it.measured()?.rate_per_s)));
    let mut latency = |name: &str, figure: fn(&thalweg_measure::distribution::Latency) -> Option<f64>| {
        table.column(name, move |it| Some(format!("{:.0}", figure(&it.measured()?.latency_ns?)?)));
    };
    latency("latency_mean_ns", |it| Some(it.mean));
    latency("latency_p50_ns", |it| Some(it.p50 as f64));
    latency("latency_p90_ns", |it| Some(it.p90 as f64));
    latency("latency_p95_ns", |it| Some(it.p95? as f64));
    latency("latency_p99_ns", |it| Some(it.p99 as f64));
    latency("latency_p99_9_ns", |it| Some(it.p99_9 as f64));
    latency("latency_max_ns", |it| Some(it.max as f64));
    table.column("first_call_ns", |it| it.measured()?.first_call_ns.map(|ns| ns.to_string()));
    for stage in crate::echo::STAGES {
        table.column(format!("{}_mean_ns", stage.replace('-', "_")), move |it: &&WindowResult| {
            let load = it.measured()?;
            let stage = load.stages.iter().find(|it| it.name == stage)?;
            Some(format!("{:.0}", stage.latency_ns.mean))
        });
    }
    let mut per_call = |name: &str, figure: fn(&WindowResult) -> Option<u64>| {
        table.column(name, move |it| {
            let calls = it.measured()?.messages;
            (calls > 0).then_some(())?;
            Some(format!("{:.0}", figure(it)? as f64 / calls as f64))
        });
    };
    per_call("sent_bytes_per_call", |it| Some(it.measured()?.bytes_sent));
    per_call("received_bytes_per_call", |it| Some(it.measured()?.bytes_received));
    per_call("client_cpu_ns_per_call", |it| Some(it.usage?.client.cpu_ns()));
    per_call("server_cpu_ns_per_call", |it| Some(it.usage?.server.cpu_ns()));
    table
}
