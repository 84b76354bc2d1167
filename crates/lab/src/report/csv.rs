//! The table of a study as CSV (RFC 4180): one line for each point, plain numbers, units in the columns' names.

use crate::analyse::{Kind, analyse};
use crate::results::{LabResults, Outcome};

const COLUMNS: [&str; 26] = [
    "work",
    "transport",
    "size_bytes",
    "in_flight",
    "connections_asked",
    "connections_established",
    "duration_ns",
    "operations",
    "calls",
    "errors",
    "rate_per_s",
    "payload_bytes_per_s",
    "share_of_socket",
    "latency_min_ns",
    "latency_mean_ns",
    "latency_p50_ns",
    "latency_p90_ns",
    "latency_p99_ns",
    "latency_p99_9_ns",
    "latency_p99_99_ns",
    "latency_max_ns",
    "client_cpu_user_ns_per_operation",
    "client_cpu_system_ns_per_operation",
    "started",
    "valid",
    "failure",
];

/// The whole study as CSV.
pub fn csv(results: &LabResults) -> String {
    let analysis = analyse(results);
    let mut text = line(COLUMNS.map(str::to_owned));
    for result in &results.points {
        let point = &result.point;
        let mut row: [String; COLUMNS.len()] = std::array::from_fn(|_| String::new());
        row[0] = point.work.to_string();
        row[1] = point.transport.to_string();
        row[2] = point.size_bytes.0.to_string();
        row[3] = point.in_flight.to_string();
        row[4] = point.connections.to_string();
        match &result.outcome {
            Outcome::Failed(reason) => {
                row[24] = false.to_string();
                row[25].clone_from(reason);
            }
            Outcome::Measured(measured) => {
                let kind = Kind { work: point.work, in_flight: point.in_flight };
                let share = analysis
                    .line(kind, point.transport)
                    .and_then(|line| line.at(point.size_bytes)?.share_of_socket);
                row[5] = measured.connections.established.map(|n| n.to_string()).unwrap_or_default();
                row[6] = measured.duration_ns.to_string();
                row[7] = measured.messages.to_string();
                row[8] = measured.calls.to_string();
                row[9] = measured.error_count().to_string();
                row[10] = format!("{:.3}", measured.rate_per_s);
                row[11] = format!("{:.0}", measured.rate_per_s * point.size_bytes.0 as f64);
                row[12] = share.map(|share| format!("{share:.5}")).unwrap_or_default();
                if let Some(latency) = measured.latency_ns {
                    row[13] = latency.min.to_string();
                    row[14] = format!("{:.1}", latency.mean);
                    let percentiles = [latency.p50, latency.p90, latency.p99, latency.p99_9, latency.p99_99];
                    for (cell, percentile) in row[15..20].iter_mut().zip(percentiles) {
                        *cell = percentile.to_string();
                    }
                    row[20] = latency.max.to_string();
                }
                if let Some(cpu) = measured.client_cpu_per_call {
                    row[21] = format!("{:.1}", cpu.user_ns);
                    row[22] = format!("{:.1}", cpu.system_ns);
                }
                row[23].clone_from(&measured.started);
                row[24] = measured.is_valid().to_string();
            }
        }
        text += &line(row);
    }
    text
}

fn line(cells: [String; COLUMNS.len()]) -> String {
    cells.map(|cell| quoted(&cell)).join(",") + "\r\n"
}

/// RFC 4180 §2: what holds a comma, a quote or a line break stands in quotes, quotes doubled.
fn quoted(cell: &str) -> String {
    if cell.contains([',', '"', '\r', '\n']) {
        format!("\"{}\"", cell.replace('"', "\"\""))
    } else {
        cell.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_would_break_a_line_is_quoted() {
        assert_eq!(quoted("unary"), "unary");
        assert_eq!(quoted("a,b"), "\"a,b\"");
        assert_eq!(quoted("say \"no\"\n"), "\"say \"\"no\"\"\n\"");
    }
}
