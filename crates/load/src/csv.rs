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
/// of a bidi stream got a response. Each server has two more columns if there are several. The last row is the shorter
/// rest after the last whole interval.
pub fn csv(run: &LoadRun) -> String {
    let mut text = COLUMNS.to_owned();
    if run.flows.is_some() {
        text.push_str(OF_FLOWS);
    }
    let servers: Vec<&str> = run.balanced().map(|(server, ..)| server.server.as_str()).collect();
    for server in &servers {
        let _ = write!(text, ",calls:{0},failed:{0}", column_name(server));
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
        for server in &servers {
            let its = interval.servers.iter().find(|its| its.server == *server);
            let (calls, failed) = its.map_or((0, 0), |its| (its.calls, its.failed));
            let _ = write!(text, ",{calls},{failed}");
        }
        text.push('\n');
    }
    text
}

/// Returns the server's name without characters that need quotes in CSV, or escapes in a page.
fn column_name(server: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || ".:-_[]%/@".contains(c);
    server.chars().map(|c| if is_plain(c) { c } else { '_' }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::{ServerInterval, ServerRun};

    #[test]
    fn each_server_has_columns_and_its_name_needs_no_quotes() {
        let server = |server: &str| -> ServerRun {
            serde_json::from_value(serde_json::json!({"server": server, "calls": 1, "failed": 0})).unwrap()
        };
        let interval = serde_json::json!({
            "at_ns": 0, "scheduled": 0.0, "ok": 7, "failed": 2, "late": 0, "in_flight": 1, "latency_ns": null,
            "bytes_sent": 0, "bytes_received": 0
        });
        let mut interval: crate::run::Interval = serde_json::from_value(interval).unwrap();
        interval.servers = vec![ServerInterval { server: "[::1]:7".to_owned(), calls: 9, failed: 2 }];
        let servers = vec![server("[::1]:7"), server("a,\"</script>\n:1")];
        let run = LoadRun { servers, intervals: vec![interval], ..LoadRun::of_tests() };
        let text = csv(&run);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 2, "{text}");
        let names = ",calls:[::1]:7,failed:[::1]:7,calls:a___/script__:1,failed:a___/script__:1";
        assert!(lines[0].ends_with(names), "{text}");
        assert!(lines[1].ends_with(",9,2,0,0"), "{text}");
        assert_eq!(lines[0].split(',').count(), lines[1].split(',').count());
        let one = LoadRun { servers: vec![server("a:1")], ..run };
        assert!(!csv(&one).contains("calls:"), "one server needs no columns");
    }
}
