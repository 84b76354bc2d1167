//! CSV export of a run over time.

use std::fmt::Write;

use thalweg_measure::distribution::Latency;

use crate::run::{Flows, LoadRun};

/// Column names, with units as suffixes: `s` seconds, `ns` nanoseconds.
const COLUMNS: &str = "at_s,length_s,scheduled,ok,failed,late,in_flight,mean_ns,p50_ns,p90_ns,p95_ns,p99_ns,\
                       p99.9_ns,max_ns,bytes_sent,bytes_received,messages_sent,messages_received,reply_mean_ns,\
                       reply_p50_ns,reply_p90_ns,reply_p95_ns,reply_p99_ns,reply_p99.9_ns,reply_max_ns";
/// Additional columns of a scenario, where the schedule counts flows.
const OF_FLOWS: &str = ",flows_begun,flows_ok,flows_failed";

/// Returns a row for each interval. Latencies are empty if no call ended with OK. Reply times are empty if no request
/// of a bidi stream got a response. The last row is the shorter rest after the last whole interval.
pub fn csv(run: &LoadRun) -> String {
    let mut text = COLUMNS.to_owned();
    if run.flows.is_some() {
        text.push_str(OF_FLOWS);
    }
    text.push('\n');
    let ends = run.intervals.iter().skip(1).map(|next| next.at_ns).chain([run.duration_ns]);
    for (interval, end_ns) in run.intervals.iter().zip(ends) {
        let [latency, reply] = [interval.latency_ns, interval.reply_ns].map(|ns| {
            ns.map_or_else(
                || ",,,,,,".to_owned(),
                |ns| {
                    let p95 = ns.p95.map_or(String::new(), |ns| ns.to_string());
                    let Latency { mean, p50, p90, p99, p99_9, max, .. } = ns;
                    format!("{mean:.0},{p50},{p90},{p95},{p99},{p99_9},{max}")
                },
            )
        });
        let length_ns = end_ns.saturating_sub(interval.at_ns);
        // Writing to a String does not fail.
        let _ = write!(
            text,
            "{:.3},{:.3},{:.1},{},{},{},{},{latency},{},{},{},{},{reply}",
            interval.at_ns as f64 / 1e9,
            length_ns as f64 / 1e9,
            interval.scheduled,
            interval.ok,
            interval.failed,
            interval.late,
            interval.in_flight,
            interval.bytes_sent,
            interval.bytes_received,
            interval.messages_sent,
            interval.messages_received
        );
        if run.flows.is_some() {
            let Flows { started, ok, failed } = interval.starts();
            let _ = write!(text, ",{started},{ok},{failed}");
        }
        text.push('\n');
    }
    text
}
