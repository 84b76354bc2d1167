//! What is to be told of a run, by `docs/load.md` and the run's result.

use serde_json::Value;

use crate::job::Failure;

/// What is called.
pub(super) const METHOD: &str = "grpc.testing.TestService/UnaryCall";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Counter,
    UpAndDown,
    Histogram,
}

/// A metric, by its names.
#[derive(Debug)]
pub(super) struct Metric {
    pub(super) otlp: &'static str,
    pub(super) kind: Kind,
    pub(super) unit: &'static str,
    /// Without `_total`.
    pub(super) prometheus: &'static str,
    /// In OpenMetrics.
    pub(super) prometheus_unit: Option<&'static str>,
}

/// Those of a closed loop that is no scenario.
pub(super) const METRICS: &[Metric] = &[
    metric("thalweg.load.calls", Kind::Counter, "{call}", "thalweg_load_calls", None),
    metric("thalweg.load.latency", Kind::Histogram, "s", "thalweg_load_latency_seconds", Some("seconds")),
    metric(
        "grpc.client.call.duration",
        Kind::Histogram,
        "s",
        "grpc_client_call_duration_seconds",
        Some("seconds"),
    ),
    metric("thalweg.load.late", Kind::Counter, "{call}", "thalweg_load_late", None),
    metric("thalweg.load.dropped", Kind::Counter, "{call}", "thalweg_load_dropped", None),
    metric("thalweg.load.in_flight", Kind::UpAndDown, "{call}", "thalweg_load_in_flight", None),
    metric("thalweg.load.connections", Kind::UpAndDown, "{connection}", "thalweg_load_connections", None),
    metric("thalweg.load.messages", Kind::Counter, "{message}", "thalweg_load_messages", None),
    metric("thalweg.load.io", Kind::Counter, "By", "thalweg_load_io_bytes", Some("bytes")),
    metric("process.cpu.time", Kind::Counter, "s", "process_cpu_time_seconds", Some("seconds")),
];

const fn metric(
    otlp: &'static str,
    kind: Kind,
    unit: &'static str,
    prometheus: &'static str,
    prometheus_unit: Option<&'static str>,
) -> Metric {
    Metric { otlp, kind, unit, prometheus, prometheus_unit }
}

/// A value of a metric.
#[derive(Debug)]
pub(super) struct Point {
    pub(super) metric: &'static Metric,
    /// By name, in the order of names; of OTLP, with dots.
    pub(super) attributes: Vec<(&'static str, String)>,
    /// Of a histogram, how many are in it; `None`: it is only there.
    pub(super) value: Option<f64>,
    /// Of a histogram, the sum, s.
    pub(super) sum: Option<f64>,
}

#[derive(Debug)]
pub(super) struct Expected {
    points: Vec<Point>,
    calls: f64,
}

impl Expected {
    /// Of a run at this target of which some calls ended with OK and others with `NOT_FOUND`.
    pub(super) fn of(run: &Value, target: &str) -> Result<Self, Failure> {
        let number = |path: &str| {
            let value = run.pointer(path).and_then(Value::as_f64);
            value.ok_or_else(|| Failure::failed(format!("the result has no {path}")))
        };
        let mut points = Vec::new();
        let mut add = |name: &str, attributes: &[(&'static str, &str)], value: Option<f64>, sum| {
            let metric = METRICS.iter().find(|metric| metric.otlp == name).expect("it is one of them");
            let all = attributes.iter().copied().chain([("grpc.target", target)]);
            let mut attributes: Vec<_> = all.map(|(name, value)| (name, value.to_owned())).collect();
            attributes.sort();
            points.push(Point { metric, attributes, value, sum });
        };
        let method = ("grpc.method", METHOD);
        let of_latency = |name: &str| -> Result<(f64, f64), Failure> {
            let count = number(&format!("/{name}/count"))?;
            Ok((count, count * number(&format!("/{name}/mean"))? / 1e9))
        };
        let (ok, not_found) = (number("/ok")?, number("/errors/NOT_FOUND")?);
        if ok < 1.0 || not_found < 1.0 || number("/failed")? > not_found {
            return Err(Failure::failed(format!("{ok} calls went well, {not_found} ended with NOT_FOUND")));
        }
        add("thalweg.load.calls", &[method, ("grpc.status", "OK")], Some(ok), None);
        add("thalweg.load.calls", &[method, ("grpc.status", "NOT_FOUND")], Some(not_found), None);
        let ((count, sum), (failed, failed_sum)) = (of_latency("latency")?, of_latency("failed_latency")?);
        let outcome = |how| ("thalweg.load.outcome", how);
        add("thalweg.load.latency", &[method, outcome("ok")], Some(count), Some(sum));
        add("thalweg.load.latency", &[outcome("failed")], Some(failed), Some(failed_sum));
        // In a closed loop calls begin when they are to.
        add("grpc.client.call.duration", &[method, ("grpc.status", "OK")], Some(count), Some(sum));
        add("thalweg.load.late", &[], Some(number("/late")?), None);
        add("thalweg.load.dropped", &[], Some(number("/dropped")?), None);
        add("thalweg.load.in_flight", &[], Some(0.0), None);
        add("thalweg.load.connections", &[], Some(1.0), None);
        for (direction, end) in [("transmit", "sent"), ("receive", "received")] {
            let direction = [("network.io.direction", direction)];
            add("thalweg.load.messages", &direction, Some(number(&format!("/messages_{end}"))?), None);
            add("thalweg.load.io", &direction, Some(number(&format!("/bytes_{end}"))?), None);
        }
        for mode in ["user", "system"] {
            add("process.cpu.time", &[("cpu.mode", mode)], None, None);
        }
        Ok(Self { points, calls: ok + not_found })
    }

    pub(super) fn points(&self) -> &[Point] {
        &self.points
    }

    pub(super) fn calls(&self) -> f64 {
        self.calls
    }
}

impl Point {
    /// Whether a value is the expected one; of a sum of times, but for what histograms round.
    pub(super) fn check(&self, count: f64, sum: Option<f64>) -> Result<(), Failure> {
        const ROUNDED_MAX: f64 = 0.01;
        let is_sum = match (self.sum, sum) {
            (None, _) => true,
            (Some(expected), Some(sum)) => (sum - expected).abs() <= expected * ROUNDED_MAX,
            (Some(_), None) => false,
        };
        if self.value.is_none_or(|value| is_same(value, count)) && is_sum {
            return Ok(());
        }
        let Self { metric, attributes, value, sum: expected_sum } = self;
        Err(Failure::failed(format!(
            "{} {attributes:?} is {count}, sum {sum:?}; by the result {value:?}, {expected_sum:?}",
            metric.otlp
        )))
    }
}

/// Of whole numbers.
pub(super) fn is_same(one: f64, other: f64) -> bool {
    (one - other).abs() < 0.5
}
