//! An exposition as parsed by Prometheus.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Map, Value};

use super::series::{Expected, Kind, METRICS, Metric, Point, Series, series};
use crate::failure::Result;
use crate::files::{list, text};

/// The bounds of gRFC A66, and infinity.
const BUCKETS: usize = 42;

/// Number of ended calls; `None` while any is in flight, and before any has ended.
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

/// Returns a metric's Prometheus name without `_total`, and its OpenMetrics unit.
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

/// The labels include the sample's name.
#[derive(Deserialize)]
struct Sample {
    labels: BTreeMap<String, String>,
    value: f64,
}

/// All samples by series; those of a histogram form one point.
fn points(exposition: &Value) -> Result<BTreeMap<Series, Point>> {
    let mut points: BTreeMap<Series, Point> = BTreeMap::new();
    let mut buckets: BTreeMap<Series, (usize, f64)> = BTreeMap::new();
    for sample in list(&exposition["samples"]) {
        let Sample { mut labels, value } =
            Sample::deserialize(sample).map_err(|why| failed!("{sample}: {why}"))?;
        let sample_name = labels.remove("__name__").unwrap_or_default();
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
