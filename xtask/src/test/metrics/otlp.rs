//! Data received by an OpenTelemetry Collector, as written by its file exporter: one push per line, in OTLP's JSON.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::Value;

use super::series::{Expected, Kind, METRICS, Point, Series, is_same, series};
use crate::failure::Result;
use crate::files::{list, text};

/// Fewer would not show that data is pushed during the run.
const PUSHES_MIN: usize = 4;
const CUMULATIVE: u64 = 2;

/// The collector's settings. Its own metrics are off, as their port could be taken.
pub(super) fn settings(port: u16, received: &Path) -> String {
    format!(
        "receivers:\n  otlp:\n    protocols:\n      grpc:\n        endpoint: 127.0.0.1:{port}\n\
         exporters:\n  file:\n    path: {}\n\
         service:\n  telemetry:\n    metrics:\n      level: none\n  \
         pipelines:\n    metrics:\n      receivers: [otlp]\n      exporters: [file]\n",
        received.display()
    )
}

/// Returns the number of pushes. The last one must have the expected data, and counters must not decrease.
pub(super) fn check(received: &str, expected: &Expected) -> Result<usize> {
    let mut pushes = received.lines().map(push).collect::<Result<Vec<Push>>>()?;
    // The last push cancels a running one, which the collector may still have received and may write later.
    pushes.sort_by(|one, other| one.time.cmp(&other.time));
    let Some(last) = pushes.last().filter(|_| pushes.len() >= PUSHES_MIN) else {
        bail!("{} pushes", pushes.len());
    };
    ensure!(last.service == "thalweg-load", "the resource is {:?}", last.service);
    expected.check(&last.points)?;
    for series in last.points.keys() {
        // Early pushes may lack a point, and measuring restarts later.
        let values = pushes.iter().filter_map(|push| push.points.get(series));
        let values: Vec<_> = values.map(|point| (&point.since, point.value)).collect();
        let may_go_back = METRICS.iter().any(|it| it.name == series.0 && it.kind == Kind::UpAndDown);
        ensure!(may_go_back || values.is_sorted(), "{series:?} decreases: {values:?}");
    }
    Ok(pushes.len())
}

struct Push {
    /// Time of the push: ns since 1970, as text of equal length.
    time: String,
    service: String,
    points: BTreeMap<Series, Point>,
}

/// Reads a push and checks that its metrics are documented.
fn push(line: &str) -> Result<Push> {
    let push: Value = serde_json::from_str(line).map_err(|why| failed!("{why}"))?;
    let resource = &push["resourceMetrics"][0];
    let service = attributes(&resource["resource"]["attributes"]).find(|(name, _)| name == "service.name");
    let service = service.map(|(_, service)| service).unwrap_or_default();
    let (mut time, mut points) = (String::new(), BTreeMap::new());
    for metric_json in list(&resource["scopeMetrics"][0]["metrics"]) {
        let metric = METRICS.iter().find(|metric| metric_json["name"] == metric.name);
        let metric = metric.ok_or_else(|| failed!("a metric is not documented: {metric_json}"))?;
        let (part, is_monotonic) = match metric.kind {
            Kind::Histogram => ("histogram", false),
            Kind::Counter => ("sum", true),
            Kind::UpAndDown => ("sum", false),
        };
        let values = &metric_json[part];
        let is_described = metric_json["unit"] == metric.unit
            && !text(&metric_json["description"]).is_empty()
            && values["aggregationTemporality"] == CUMULATIVE
            && values["isMonotonic"].as_bool().unwrap_or_default() == is_monotonic;
        ensure!(is_described, "it is not as documented: {metric_json}");
        for point in list(&values["dataPoints"]) {
            text(&point["timeUnixNano"]).clone_into(&mut time);
            points.insert(series(metric, attributes(&point["attributes"])), value(point, metric.kind)?);
        }
    }
    Ok(Push { time, service, points })
}

/// The value of a sum; or count and sum of a histogram, whose buckets must add up to the count.
fn value(metric_json: &Value, kind: Kind) -> Result<Point> {
    let since = text(&metric_json["startTimeUnixNano"]).to_owned();
    if kind != Kind::Histogram {
        let value = number(&metric_json["asInt"]).or_else(|| number(&metric_json["asDouble"]));
        return Ok(Point {
            value: value.ok_or_else(|| failed!("it has no value: {metric_json}"))?,
            sum: None,
            since,
        });
    }
    let value = number(&metric_json["count"]).unwrap_or_default();
    let buckets = list(&metric_json["bucketCounts"]);
    let in_buckets: f64 = buckets.iter().filter_map(number).sum();
    let fits = is_same(in_buckets, value) && buckets.len() == list(&metric_json["explicitBounds"]).len() + 1;
    ensure!(fits, "buckets do not fit: {metric_json}");
    Ok(Point { value, sum: number(&metric_json["sum"]), since })
}

fn attributes(list_value: &Value) -> impl Iterator<Item = (String, String)> {
    list(list_value)
        .iter()
        .map(|it| (text(&it["key"]).to_owned(), text(&it["value"]["stringValue"]).to_owned()))
}

/// OTLP's JSON encodes 64-bit integers as strings.
fn number(value: &Value) -> Option<f64> {
    value.as_f64().or_else(|| value.as_str()?.parse().ok())
}
