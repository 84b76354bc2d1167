//! What Prometheus' own parsers understood of an exposition.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::series::{Expected, Kind, METRICS, Metric, Point, Series, series};
use crate::failure::Result;
use crate::files::text;

/// gRFC A66's bounds, and infinity.
const BUCKETS: usize = 42;

/// How many calls have ended; `None` while any is under way, and before any has ended.
pub(super) fn ended(exposition: &Value) -> Option<f64> {
    let points = points(exposition).ok()?;
    let sum =
        |name: &str| points.iter().filter(|((of, _), _)| *of == name).map(|(_, it)| it.value).sum::<f64>();
    let calls = sum("thalweg.load.calls");
    (calls > 0.0 && sum("thalweg.load.in_flight") == 0.0).then_some(calls)
}

pub(super) fn check(exposition: &Value, expected: &Expected) -> Result<()> {
    let format = text(&exposition["content_type"]);
    let in_format = |why| failed!("{format}: {why}");
    let families = exposition["kinds"].as_object().map_or(0, Map::len);
    ensure!(families == METRICS.len(), "{format}: {families} families");
    let is_open = format.starts_with("application/openmetrics-text");
    METRICS.iter().try_for_each(|metric| is_described(metric, exposition, is_open)).map_err(in_format)?;
    points(exposition).and_then(|points| expected.check(&points)).map_err(in_format)
}

/// A metric's name for Prometheus, without `_total`, and the unit that OpenMetrics tells.
fn name_and_unit(metric: &Metric) -> (String, Option<&'static str>) {
    let unit = match metric.unit {
        "s" => Some("seconds"),
        "By" => Some("bytes"),
        _ => None,
    };
    let suffix = unit.map_or_else(String::new, |unit| format!("_{unit}"));
    (metric.name.replace('.', "_") + &suffix, unit)
}

fn is_described(metric: &Metric, exposition: &Value, is_open: bool) -> Result<()> {
    let (name, unit) = name_and_unit(metric);
    let (kind, suffix) = match metric.kind {
        Kind::Histogram => ("histogram", ""),
        // In OpenMetrics the family's name has no suffix.
        Kind::Counter if is_open => ("counter", ""),
        Kind::Counter => ("counter", "_total"),
        Kind::UpAndDown => ("gauge", ""),
    };
    let family = name + suffix;
    let of = |what: &str| exposition[what][&family].as_str();
    let is_described = of("kinds") == Some(kind)
        && of("units") == unit.filter(|_| is_open)
        && of("helps").is_some_and(|help| !help.is_empty());
    ensure!(
        is_described,
        "{family} is not as documented: {:?}, {:?}, {:?}",
        of("kinds"),
        of("units"),
        of("helps")
    );
    Ok(())
}

/// All samples, by the series that they belong to; those of a histogram are one point.
fn points(exposition: &Value) -> Result<BTreeMap<Series, Point>> {
    let mut points: BTreeMap<Series, Point> = BTreeMap::new();
    let mut buckets: BTreeMap<Series, (usize, f64)> = BTreeMap::new();
    for (sample, value) in exposition["samples"].as_object().into_iter().flatten() {
        let (sample_name, mut labels) =
            labels(sample).ok_or_else(|| failed!("a sample of no known form: {sample}"))?;
        let value = value.as_f64().ok_or_else(|| failed!("{sample} has no value"))?;
        let found = METRICS.iter().find_map(|metric| {
            let suffix = sample_name.strip_prefix(name_and_unit(metric).0.as_str())?;
            let suffixes: &[&str] = match metric.kind {
                Kind::Counter => &["_total"],
                Kind::UpAndDown => &[""],
                Kind::Histogram => &["_count", "_sum", "_bucket"],
            };
            suffixes.contains(&suffix).then_some((metric, suffix))
        });
        let (metric, suffix) = found.ok_or_else(|| failed!("a sample is not documented: {sample}"))?;
        let bound = labels.remove("le");
        let series = series(metric, labels);
        match suffix {
            "_sum" => points.entry(series).or_default().sum = Some(value),
            "_bucket" => {
                let (count, all) = buckets.entry(series).or_default();
                *count += 1;
                if bound.as_deref() == Some("+Inf") {
                    *all = value;
                }
            }
            _ => points.entry(series).or_default().value = value,
        }
    }
    for (series, point) in points.iter().filter(|(_, point)| point.sum.is_some()) {
        let found = buckets.remove(series);
        ensure!(found == Some((BUCKETS, point.value)), "buckets of {series:?} do not fit: {found:?}");
    }
    ensure!(buckets.is_empty(), "buckets without a sum: {buckets:?}");
    Ok(points)
}

/// The name and the labels of `{__name__="a", b="c"}`, as Prometheus writes a series.
fn labels(sample: &str) -> Option<(String, BTreeMap<String, String>)> {
    let inside = sample.strip_prefix('{')?.strip_suffix('}')?;
    let pair = |pair: &str| {
        let (name, value) = pair.split_once("=\"")?;
        Some((name.to_owned(), value.strip_suffix('"')?.to_owned()))
    };
    let mut labels = inside.split(", ").map(pair).collect::<Option<BTreeMap<_, _>>>()?;
    Some((labels.remove("__name__")?, labels))
}

#[cfg(test)]
mod tests {
    use super::labels;

    #[test]
    fn a_series_has_its_name_among_its_labels() {
        let (name, labels_of) =
            labels("{__name__=\"a_total\", grpc_target=\"127.0.0.1:1\", le=\"+Inf\"}").unwrap();
        assert_eq!((name.as_str(), labels_of["le"].as_str(), labels_of.len()), ("a_total", "+Inf", 2));
        assert!(labels("a_total 1").is_none());
    }
}
