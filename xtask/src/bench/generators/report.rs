use serde_json::Value;

use crate::files::list;

/// Counts of calls, and times in nanoseconds. h2load reports no percentiles.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Report {
    /// Calls that finished.
    pub(super) calls: u64,
    /// Finished calls that failed.
    pub(super) failed: u64,
    pub(super) per_s: f64,
    pub(super) mean_ns: f64,
    /// p50, p90 and p99.
    pub(super) percentiles_ns: [Option<f64>; 3],
    /// The run over time; empty if the generator does not report it.
    pub(super) intervals: Vec<Interval>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Interval {
    /// Calls scheduled to start in it.
    pub(super) scheduled: f64,
    /// Calls started in it.
    pub(super) started: u64,
}

impl Report {
    /// Reads the schema `thalweg.load-run/2`.
    pub(super) fn of_thalweg(text: &str) -> Option<Self> {
        let value: Value = serde_json::from_str(text).ok()?;
        let latency = &value["latency"];
        let (ok, failed) = (value["ok"].as_u64()?, value["failed"].as_u64()?);
        Some(Self {
            calls: ok + failed,
            failed,
            per_s: value["rate_per_s"].as_f64()?,
            mean_ns: latency["mean"].as_f64()?,
            percentiles_ns: ["p50", "p90", "p99"].map(|name| latency[name].as_f64()),
            intervals: intervals(&value["intervals"])?,
        })
    }

    /// Reads ghz's summary.
    pub(super) fn of_ghz(text: &str) -> Option<Self> {
        let of = |name: &str| text.lines().find_map(|line| line.trim().strip_prefix(name)).map(str::trim);
        let calls = of("Count:")?.parse().ok()?;
        let ok: u64 = of("[OK]")?.split_whitespace().next()?.parse().ok()?;
        Some(Self {
            calls,
            failed: calls.saturating_sub(ok),
            per_s: of("Requests/sec:")?.parse().ok()?,
            mean_ns: time(of("Average:")?)?,
            percentiles_ns: ["50 % in", "90 % in", "99 % in"].map(|name| of(name).and_then(time)),
            intervals: Vec::new(),
        })
    }

    /// Reads h2load's summary, which knows HTTP statuses only.
    pub(super) fn of_h2load(text: &str) -> Option<Self> {
        let of = |name: &str| text.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
        let counts = of("requests:")?;
        let count = |name: &str| -> Option<u64> {
            counts.split(", ").find_map(|part| part.strip_suffix(name))?.trim().parse().ok()
        };
        let calls = count(" done")?;
        Some(Self {
            calls,
            failed: calls.saturating_sub(count(" succeeded")?),
            per_s: of("finished in")?.split_whitespace().nth(1)?.parse().ok()?,
            // min, max, mean, sd
            mean_ns: time(of("time for request:")?.split_whitespace().nth(2)?)?,
            ..Self::default()
        })
    }
}

/// Calls are reported by the interval in which they ended. Calls started = calls ended + calls in flight at the end −
/// calls in flight at the start.
fn intervals(report: &Value) -> Option<Vec<Interval>> {
    let mut under_way = 0;
    let interval = |interval: &Value| {
        let count = |name: &str| interval[name].as_u64();
        let (ended, left) = (count("ok")? + count("failed")?, count("in_flight")?);
        // A closed loop does not count the calls cut off at its end.
        let started = (ended + left).saturating_sub(std::mem::replace(&mut under_way, left));
        Some(Interval { scheduled: interval["scheduled"].as_f64()?, started })
    };
    list(report).iter().map(interval).collect()
}

/// Reads `5.01 ms` or `367us` as nanoseconds.
fn time(text: &str) -> Option<f64> {
    let text = text.trim();
    let (number, unit) = text.split_at(text.find(|it: char| !it.is_ascii_digit() && it != '.')?);
    let units = [("ns", 1.0), ("us", 1e3), ("µs", 1e3), ("ms", 1e6), ("s", 1e9)];
    let (_, factor) = units.into_iter().find(|(name, _)| *name == unit.trim())?;
    Some(number.parse::<f64>().ok()? * factor)
}

#[cfg(test)]
mod tests {
    use super::{Interval, Report};

    #[test]
    fn ghz_summary_is_parsed() {
        let text = "\nSummary:\n  Count:\t3000\n  Total:\t850.05 ms\n  Slowest:\t46.87 ms\n  Average:\t16.5 ms\n  \
                    Requests/sec:\t3529.20\n\nLatency distribution:\n  10 % in 901.00 us \n  50 % in 15.07 ms \n  \
                    90 % in 27.27 ms \n  99 % in 1.5 s \n\nStatus code distribution:\n  [OK]   2998 responses   \n  \
                    [Unavailable]   2 responses\n";
        let expected = Report {
            calls: 3000,
            failed: 2,
            per_s: 3529.2,
            mean_ns: 16.5e6,
            percentiles_ns: [Some(15.07e6), Some(27.27e6), Some(1.5e9)],
            intervals: Vec::new(),
        };
        assert_eq!(Report::of_ghz(text), Some(expected));
    }

    #[test]
    fn h2load_report_is_parsed() {
        let text = "finished in 2.00s, 996.00 req/s, 35.07KB/s\nrequests: 1992 total, 2002 started, 1992 done, 1991 \
                    succeeded, 1 failed, 0 errored, 0 timeout\ntime for request:      152us     11.15ms      1.67ms\n";
        let expected = Report { calls: 1992, failed: 1, per_s: 996.0, mean_ns: 1.67e6, ..Report::default() };
        assert_eq!(Report::of_h2load(text), Some(expected));
    }

    #[test]
    fn thalweg_report_is_parsed() {
        let text = r#"{"ok": 9, "failed": 1, "rate_per_s": 4.5,
                       "latency": {"mean": 2.5, "p50": 2, "p90": 3, "p99": 4},
                       "intervals": [{"scheduled": 5.5, "ok": 3, "failed": 0, "in_flight": 2},
                                     {"scheduled": 4.5, "ok": 6, "failed": 1, "in_flight": 0}]}"#;
        let expected = Report {
            calls: 10,
            failed: 1,
            per_s: 4.5,
            mean_ns: 2.5,
            percentiles_ns: [Some(2.0), Some(3.0), Some(4.0)],
            intervals: vec![Interval { scheduled: 5.5, started: 5 }, Interval { scheduled: 4.5, started: 5 }],
        };
        assert_eq!(Report::of_thalweg(text), Some(expected));
    }
}
