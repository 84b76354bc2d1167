//! What an OpenTelemetry Collector was told, as its exporter of files writes it: a push a line, in OTLP's JSON.

use std::path::Path;

use serde_json::Value;

use super::expected::{Expected, Kind, METRICS, Metric, Point, is_same};
use crate::job::Failure;

/// Fewer would not show that figures are pushed while the run goes on.
const PUSHES_MIN: usize = 4;
const CUMULATIVE: u64 = 2;

/// The collector's settings. It has no metrics of its own, whose port could be taken.
pub(super) fn settings(port: u16, received: &Path) -> String {
    format!(
        "receivers:\n  otlp:\n    protocols:\n      grpc:\n        endpoint: 127.0.0.1:{port}\n\
         exporters:\n  file:\n    path: {}\n\
         service:\n  telemetry:\n    metrics:\n      level: none\n  \
         pipelines:\n    metrics:\n      receivers: [otlp]\n      exporters: [file]\n",
        received.display()
    )
}

/// How many pushes there were, of which the last one has what is expected, and none has more than the next.
pub(super) fn check(received: &str, expected: &Expected) -> Result<usize, Failure> {
    let mut pushes: Vec<Value> = received
        .lines()
        .map(serde_json::from_str)
        .collect::<Result<_, _>>()
        .map_err(|error| failed(&error))?;
    // The last push gives up one that is under way, which the collector may have taken all the same, and write later.
    pushes.sort_by(|one, other| time(one).cmp(time(other)));
    let Some(last) = pushes.last().filter(|_| pushes.len() >= PUSHES_MIN) else {
        return Err(Failure::failed(format!("{} pushes", pushes.len())));
    };
    let service = last.pointer("/resourceMetrics/0/resource/attributes").map(attributes).unwrap_or_default();
    if !service.contains(&("service.name".to_owned(), "thalweg-load".to_owned())) {
        return Err(Failure::failed(format!("the resource is {service:?}")));
    }
    let told = metrics(last);
    if told.len() != METRICS.len() {
        return Err(Failure::failed(format!("{} metrics, not {}", told.len(), METRICS.len())));
    }
    for metric in METRICS {
        is_described(metric, last)?;
        let points = points(last, metric).len();
        let wanted = expected.points().iter().filter(|point| point.metric.otlp == metric.otlp).count();
        if points != wanted {
            return Err(Failure::failed(format!("{}: {points} points, not {wanted}", metric.otlp)));
        }
    }
    for point in expected.points() {
        let (count, sum) = value(last, point)?;
        point.check(count, sum)?;
        let values: Vec<(&str, f64)> = pushes.iter().filter_map(|push| since(push, point)).collect();
        if point.metric.kind != Kind::UpAndDown && !values.is_sorted() {
            return Err(Failure::failed(format!("{} goes back: {values:?}", point.metric.otlp)));
        }
    }
    Ok(pushes.len())
}

fn is_described(metric: &Metric, push: &Value) -> Result<(), Failure> {
    let told = find(push, metric).ok_or_else(|| failed(&format!("there is no {}", metric.otlp)))?;
    let (part, is_monotonic) = match metric.kind {
        Kind::Histogram => ("histogram", false),
        Kind::Counter => ("sum", true),
        Kind::UpAndDown => ("sum", false),
    };
    let is_so = told["unit"] == metric.unit
        && told["description"].as_str().is_some_and(|text| !text.is_empty())
        && told[part]["aggregationTemporality"] == CUMULATIVE
        && told[part]["isMonotonic"].as_bool().unwrap_or_default() == is_monotonic;
    if is_so { Ok(()) } else { Err(failed(&format!("it is not as documented: {told}"))) }
}

/// From when on it was counted, which is later when measuring begins, and how many there were. In the first pushes a
/// point may be missing.
fn since<'p>(push: &'p Value, point: &Point) -> Option<(&'p str, f64)> {
    let start = find_point(push, point)?["startTimeUnixNano"].as_str()?;
    Some((start, value(push, point).ok()?.0))
}

/// The value of a sum, or count and sum of a histogram, whose buckets have them all.
fn value(push: &Value, point: &Point) -> Result<(f64, Option<f64>), Failure> {
    let told = find_point(push, point);
    let told = told.ok_or_else(|| failed(&format!("{} has no {:?}", point.metric.otlp, point.attributes)))?;
    if point.metric.kind != Kind::Histogram {
        let value = number(&told["asInt"]).or_else(|| number(&told["asDouble"]));
        return Ok((value.ok_or_else(|| failed(&format!("it has no value: {told}")))?, None));
    }
    let count = number(&told["count"]).unwrap_or_default();
    let buckets = list(&told["bucketCounts"]);
    let in_buckets: f64 = buckets.iter().filter_map(number).sum();
    if !is_same(in_buckets, count) || buckets.len() != list(&told["explicitBounds"]).len() + 1 {
        return Err(failed(&format!("buckets of {} do not fit: {told}", point.metric.otlp)));
    }
    Ok((count, number(&told["sum"])))
}

fn metrics(push: &Value) -> &[Value] {
    push.pointer("/resourceMetrics/0/scopeMetrics/0/metrics").map(list).unwrap_or_default()
}

fn find<'v>(push: &'v Value, metric: &Metric) -> Option<&'v Value> {
    metrics(push).iter().find(|told| told["name"] == metric.otlp)
}

fn points<'v>(push: &'v Value, metric: &Metric) -> &'v [Value] {
    let part = if metric.kind == Kind::Histogram { "histogram" } else { "sum" };
    find(push, metric).map(|told| list(&told[part]["dataPoints"])).unwrap_or_default()
}

/// When it was told: ns since 1970, as text of equal length.
fn time(push: &Value) -> &str {
    let told = METRICS.iter().find_map(|metric| points(push, metric).first());
    told.and_then(|point| point["timeUnixNano"].as_str()).unwrap_or_default()
}

fn find_point<'v>(push: &'v Value, point: &Point) -> Option<&'v Value> {
    let wanted = point.attributes.iter().map(|(name, value)| ((*name).to_owned(), value.clone()));
    let wanted: Vec<_> = wanted.collect();
    points(push, point.metric).iter().find(|told| attributes(&told["attributes"]) == wanted)
}

/// In the order of names.
fn attributes(told: &Value) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let pair = |told: &Value| (text(&told["key"]), text(&told["value"]["stringValue"]));
    let mut all: Vec<_> = list(told).iter().map(pair).collect();
    all.sort();
    all
}

/// In OTLP's JSON whole numbers of 64 bits are strings.
fn number(value: &Value) -> Option<f64> {
    value.as_f64().or_else(|| value.as_str()?.parse().ok())
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

fn failed(why: &impl ToString) -> Failure {
    Failure::failed(why.to_string())
}
