//! The expected metrics of a run, from `docs/load.md` and the run's result, for all exporters.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::failure::Result;

/// The called method.
pub(super) const METHOD: &str = "grpc.testing.TestService/UnaryCall";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Counter,
    UpAndDown,
    Histogram,
}

use Kind::{Counter, Histogram, UpAndDown};

/// A metric with its OTLP name and unit.
pub(super) struct Metric {
    pub(super) name: &'static str,
    pub(super) kind: Kind,
    pub(super) unit: &'static str,
}

/// The metrics of a closed loop that is not a scenario.
pub(super) const METRICS: &[Metric] = &[
    metric("thalweg.load.calls", Counter, "{call}"),
    metric("thalweg.load.latency", Histogram, "s"),
    metric("grpc.client.call.duration", Histogram, "s"),
    metric("thalweg.load.late", Counter, "{call}"),
    metric("thalweg.load.dropped", Counter, "{call}"),
    metric("thalweg.load.in_flight", UpAndDown, "{call}"),
    metric("thalweg.load.connections", UpAndDown, "{connection}"),
    metric("thalweg.load.messages", Counter, "{message}"),
    metric("thalweg.load.io", Counter, "By"),
    metric("process.cpu.time", Counter, "s"),
];

const fn metric(name: &'static str, kind: Kind, unit: &'static str) -> Metric {
    Metric { name, kind, unit }
}

/// A metric's name, and its attributes sorted by name, with underscores for dots.
pub(super) type Series = (&'static str, BTreeMap<String, String>);

pub(super) fn series(metric: &Metric, attributes: impl IntoIterator<Item = (String, String)>) -> Series {
    (metric.name, attributes.into_iter().map(|(name, value)| (name.replace('.', "_"), value)).collect())
}

#[derive(Clone, Debug, Default)]
pub(super) struct Point {
    /// The value; for a histogram, its count.
    pub(super) value: f64,
    /// The sum of a histogram in seconds.
    pub(super) sum: Option<f64>,
    /// Start time as reported by OTLP.
    pub(super) since: String,
}

/// The expected points; one without a value must only exist.
pub(super) struct Expected {
    points: BTreeMap<Series, (Option<f64>, Option<f64>)>,
    pub(super) calls: f64,
}

impl Expected {
    /// Expects the metrics of a run at this target, in which some calls ended with OK and others with `NOT_FOUND`.
    pub(super) fn of(run: &Value, target: &str) -> Result<Self> {
        let number = |path: &str| {
            run.pointer(path).and_then(Value::as_f64).ok_or_else(|| failed!("the result has no {path}"))
        };
        let mut points = BTreeMap::new();
        let mut add = |name: &str, attributes: &[(&str, &str)], value: Option<f64>, sum: Option<f64>| {
            let metric = METRICS.iter().find(|metric| metric.name == name).expect("a listed metric");
            let all = attributes.iter().copied().chain([("grpc.target", target)]);
            let series = series(metric, all.map(|(name, value)| (name.to_owned(), value.to_owned())));
            points.insert(series, (value, sum));
        };
        let method = ("grpc.method", METHOD);
        let of_latency = |name: &str| -> Result<[Option<f64>; 2]> {
            let count = number(&format!("/{name}/count"))?;
            Ok([Some(count), Some(count * number(&format!("/{name}/mean"))? / 1e9)])
        };
        let (ok, not_found) = (number("/ok")?, number("/errors/NOT_FOUND")?);
        ensure!(
            (ok >= 1.0 && not_found >= 1.0 && number("/failed")? <= not_found),
            "{ok} calls went well, {not_found} ended with NOT_FOUND"
        );
        add("thalweg.load.calls", &[method, ("grpc.status", "OK")], Some(ok), None);
        add("thalweg.load.calls", &[method, ("grpc.status", "NOT_FOUND")], Some(not_found), None);
        let ([count, sum], [failed, failed_sum]) = (of_latency("latency")?, of_latency("failed_latency")?);
        let outcome = |how| ("thalweg.load.outcome", how);
        add("thalweg.load.latency", &[method, outcome("ok")], count, sum);
        add("thalweg.load.latency", &[outcome("failed")], failed, failed_sum);
        // In a closed loop calls start on time.
        add("grpc.client.call.duration", &[method, ("grpc.status", "OK")], count, sum);
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

    /// Checks that exactly these series exist, with the expected values; sums of times may differ by the histograms'
    /// rounding.
    pub(super) fn check(&self, reported: &BTreeMap<Series, Point>) -> Result<()> {
        const ROUNDED_MAX: f64 = 0.01;
        if let Some(more) = reported.keys().find(|series| !self.points.contains_key(series)) {
            bail!("{more:?} was reported unexpectedly");
        }
        for (series, (value, sum)) in &self.points {
            let point = reported.get(series).ok_or_else(|| failed!("{series:?} is not reported"))?;
            let is_sum = sum.is_none_or(|expected| {
                point.sum.is_some_and(|sum| (sum - expected).abs() <= expected * ROUNDED_MAX)
            });
            ensure!(
                (is_sum && value.is_none_or(|value| is_same(value, point.value))),
                "{series:?} is {point:?}; by the result {value:?}, {sum:?}"
            );
        }
        Ok(())
    }
}

/// Compares whole numbers.
pub(super) fn is_same(one: f64, other: f64) -> bool {
    (one - other).abs() < 0.5
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::{Expected, METRICS, Point, series};

    #[test]
    fn series_and_values_match_expected() {
        let latency = || series(&METRICS[1], [("grpc.target".to_owned(), "x".to_owned())]);
        let expected =
            Expected { points: BTreeMap::from([(latency(), (Some(10.0), Some(2.0)))]), calls: 10.0 };
        let check = |value: f64, sum: Option<f64>| {
            let point = Point { value, sum, ..Point::default() };
            expected.check(&BTreeMap::from([(latency(), point)])).is_ok()
        };
        assert!(check(10.0, Some(2.01)));
        assert!(!check(11.0, Some(2.0)));
        assert!(!check(10.0, Some(2.1)));
        assert!(!check(10.0, None));
        assert!(expected.check(&BTreeMap::new()).is_err());
        let other = series(&METRICS[1], []);
        let both = BTreeMap::from(
            [latency(), other].map(|it| (it, Point { value: 10.0, sum: Some(2.0), ..Point::default() })),
        );
        assert!(expected.check(&both).is_err());
    }
}
