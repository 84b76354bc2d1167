//! What Prometheus' own parsers understood of an exposition.

use std::fmt::Write;

use serde_json::{Map, Value};

use super::expected::{Expected, Kind, METRICS, Metric, Point};
use crate::job::Failure;

/// gRFC A66's bounds, and infinity.
const BUCKETS: usize = 42;

/// How many calls have ended; `None` while any is under way, and before any has ended.
pub(super) fn ended(exposition: &Value) -> Option<f64> {
    let sum = |name: &str| {
        let start = format!("{{__name__=\"{name}\", ");
        let all = samples(exposition).filter(|(sample, _)| sample.starts_with(&start));
        all.filter_map(|(_, value)| value.as_f64()).sum::<f64>()
    };
    let calls = sum("thalweg_load_calls_total");
    (calls > 0.0 && sum("thalweg_load_in_flight") == 0.0).then_some(calls)
}

pub(super) fn check(exposition: &Value, expected: &Expected) -> Result<(), Failure> {
    let kind = exposition["content_type"].as_str().unwrap_or_default();
    let is_open = kind.starts_with("application/openmetrics-text");
    let in_format = |failure: Failure| Failure::failed(format!("{kind}: {failure}"));
    let families = exposition["kinds"].as_object().map_or(0, Map::len);
    if families != METRICS.len() {
        return Err(in_format(Failure::failed(format!("{families} families"))));
    }
    for metric in METRICS {
        is_described(metric, exposition, is_open).map_err(in_format)?;
    }
    let mut known = 0;
    for point in expected.points() {
        known += has(point, exposition).map_err(in_format)?;
    }
    let all = samples(exposition).count();
    if all == known { Ok(()) } else { Err(in_format(Failure::failed(format!("{all} samples, not {known}")))) }
}

fn is_described(metric: &Metric, exposition: &Value, is_open: bool) -> Result<(), Failure> {
    let (kind, suffix) = match metric.kind {
        Kind::Histogram => ("histogram", ""),
        // In OpenMetrics the family's name has no suffix.
        Kind::Counter if is_open => ("counter", ""),
        Kind::Counter => ("counter", "_total"),
        Kind::UpAndDown => ("gauge", ""),
    };
    let family = format!("{}{suffix}", metric.prometheus);
    let unit = exposition["units"][&family].as_str();
    let help = exposition["helps"][&family].as_str().unwrap_or_default();
    let is_unit = unit == metric.prometheus_unit.filter(|_| is_open);
    if exposition["kinds"][&family] == kind && is_unit && !help.is_empty() {
        return Ok(());
    }
    let kind = &exposition["kinds"][&family];
    Err(Failure::failed(format!("{family} is not as documented: {kind}, {unit:?}, {help:?}")))
}

/// How many samples the point is.
fn has(point: &Point, exposition: &Value) -> Result<usize, Failure> {
    let sample = |suffix: &str, extra: Option<(&str, &str)>| {
        let name = series(point, suffix, extra);
        exposition["samples"][&name].as_f64().ok_or_else(|| Failure::failed(format!("there is no {name}")))
    };
    match point.metric.kind {
        Kind::Counter => point.check(sample("_total", None)?, None)?,
        Kind::UpAndDown => point.check(sample("", None)?, None)?,
        Kind::Histogram => {
            point.check(sample("_count", None)?, Some(sample("_sum", None)?))?;
            point.check(sample("_bucket", Some(("le", "+Inf")))?, point.sum)?;
            return Ok(BUCKETS + 2);
        }
    }
    Ok(1)
}

/// As Prometheus writes a series: labels in the order of their names, the first of which is the metric's.
fn series(point: &Point, suffix: &str, extra: Option<(&str, &str)>) -> String {
    let mut labels: Vec<(String, &str)> =
        point.attributes.iter().map(|(name, value)| (name.replace('.', "_"), value.as_str())).collect();
    labels.extend(extra.map(|(name, value)| (name.to_owned(), value)));
    labels.sort();
    let mut series = format!("{{__name__=\"{}{suffix}\"", point.metric.prometheus);
    for (name, value) in labels {
        let _ = write!(series, ", {name}=\"{value}\"");
    }
    series + "}"
}

fn samples(exposition: &Value) -> impl Iterator<Item = (&String, &Value)> {
    exposition["samples"].as_object().into_iter().flatten()
}
