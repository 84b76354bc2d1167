//! Text results: lines of a name and a value.

use std::collections::BTreeMap;
use std::fmt::Write;

use thalweg_measure::cpu_time::CpuTime;
use thalweg_measure::distribution::Latency;
use thalweg_measure::figures::time;
use thalweg_protobuf::printable;

/// A title and lines of a name and a value.
pub(crate) struct Rows {
    pub(crate) text: String,
}

impl Rows {
    pub(crate) fn new(title: &str) -> Self {
        Self { text: format!("{}\n\n", printable::line(title)) }
    }

    pub(crate) fn row(&mut self, name: &str, value: impl AsRef<str>) {
        // Writing to a String does not fail.
        let _ = writeln!(self.text, "{:<14}{}", printable::line(name), printable::line(value.as_ref()));
    }

    pub(crate) fn measured(&mut self, duration_ns: u64, warmup_ns: u64) {
        let warm_up = if warmup_ns == 0 { "no".to_owned() } else { time(warmup_ns as f64) };
        self.row("measured", format!("{} after {warm_up} warm-up", time(duration_ns as f64)));
    }

    pub(crate) fn errors(&mut self, errors: &BTreeMap<String, u64>) {
        if errors.is_empty() {
            self.row("errors", "none");
        }
        for (code, count) in errors {
            self.row("errors", format!("{count} {code}"));
        }
    }

    pub(crate) fn client_cpu(&mut self, cpu: Option<&CpuTime>, per: &str) {
        if let Some(CpuTime { user_ns, system_ns }) = cpu {
            let (user, system) = (time(*user_ns), time(*system_ns));
            self.row("client CPU", format!("{user} user + {system} system {per}"));
        }
    }

    pub(crate) fn connections(&mut self, requested: &str, established: Option<u32>) {
        let established = established.map_or(String::new(), |number| format!(", {number} established"));
        self.row("connections", format!("{requested}{established}"));
    }
}

/// Formats quantiles: `mean 51.7 ms, p50 50.5 ms, p90 56.4 ms, …; from the start`.
pub(crate) fn quantiles(ns: &Latency, p95: Option<u64>, note: &str) -> String {
    let p95 = p95.map(|p95| ("p95", p95));
    let quantiles = [Some(("p50", ns.p50)), Some(("p90", ns.p90)), p95, Some(("p99", ns.p99))];
    let quantiles = quantiles.into_iter().flatten().chain([("p99.9", ns.p99_9), ("max", ns.max)]);
    let quantiles: Vec<String> = quantiles.map(|(name, ns)| format!("{name} {}", time(ns as f64))).collect();
    let note = if note.is_empty() { String::new() } else { format!("; {note}") };
    format!("mean {}, {}{note}", time(ns.mean), quantiles.join(", "))
}
