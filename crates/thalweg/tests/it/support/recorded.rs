//! Metrics that an OpenTelemetry SDK would export.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use opentelemetry::KeyValue;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::metrics::data::{AggregatedMetrics, MetricData, ResourceMetrics};
use opentelemetry_sdk::metrics::exporter::PushMetricExporter;
use opentelemetry_sdk::metrics::{PeriodicReader, SdkMeterProvider, Temporality};
use thalweg::Metrics;

/// A provider whose exporter keeps everything.
pub(crate) struct Recorded {
    pub(crate) provider: SdkMeterProvider,
    finished: TestExporter,
}

/// All metrics by name, as last exported.
#[derive(Clone, Default)]
struct TestExporter(Arc<Mutex<BTreeMap<String, Metric>>>);

#[derive(Clone, Debug)]
pub(crate) struct Metric {
    pub(crate) scope: String,
    pub(crate) unit: String,
    pub(crate) points: BTreeMap<Labels, Point>,
}

pub(crate) type Labels = BTreeMap<String, String>;

#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Point {
    /// A counter's value, or a histogram's sum.
    pub(crate) sum: f64,
    /// A histogram's count.
    pub(crate) count: u64,
    pub(crate) bounds: Vec<f64>,
}

pub(crate) fn labels(pairs: &[(&str, &str)]) -> Labels {
    pairs.iter().map(|&(key, value)| (key.to_owned(), value.to_owned())).collect()
}

impl Recorded {
    pub(crate) fn new() -> Self {
        let finished = TestExporter::default();
        let reader =
            PeriodicReader::builder(finished.clone()).with_interval(Duration::from_secs(3600)).build();
        Self { provider: SdkMeterProvider::builder().with_reader(reader).build(), finished }
    }

    pub(crate) fn metrics(&self) -> Metrics {
        Metrics::new(&self.provider)
    }

    /// Returns everything recorded so far.
    pub(crate) fn all(&self) -> BTreeMap<String, Metric> {
        self.provider.force_flush().expect("it flushes");
        self.finished.0.lock().unwrap().clone()
    }

    /// Returns the point with exactly these labels.
    pub(crate) fn point(&self, name: &str, pairs: &[(&str, &str)]) -> Option<Point> {
        self.all().get(name).and_then(|metric| metric.points.get(&labels(pairs)).cloned())
    }

    /// Returns a counter's value; 0 if nothing was recorded.
    pub(crate) fn sum(&self, name: &str, pairs: &[(&str, &str)]) -> i64 {
        self.point(name, pairs).map_or(0, |point| point.sum as i64)
    }
}

impl PushMetricExporter for TestExporter {
    async fn export(&self, metrics: &ResourceMetrics) -> OTelSdkResult {
        let mut all = self.0.lock().unwrap();
        for scope in metrics.scope_metrics() {
            let named = format!("{} {}", scope.scope().name(), scope.scope().version().unwrap_or("?"));
            for metric in scope.metrics() {
                let points = points(metric.data());
                let (scope, unit) = (named.clone(), metric.unit().to_owned());
                all.insert(metric.name().to_owned(), Metric { scope, unit, points });
            }
        }
        Ok(())
    }

    fn force_flush(&self) -> OTelSdkResult {
        Ok(())
    }

    fn shutdown_with_timeout(&self, _: Duration) -> OTelSdkResult {
        Ok(())
    }

    fn temporality(&self) -> Temporality {
        Temporality::Cumulative
    }
}

fn points(data: &AggregatedMetrics) -> BTreeMap<Labels, Point> {
    match data {
        AggregatedMetrics::F64(data) => points_of(data, |value| value),
        AggregatedMetrics::U64(data) => points_of(data, |value| value as f64),
        AggregatedMetrics::I64(data) => points_of(data, |value| value as f64),
    }
}

fn points_of<T: Copy>(data: &MetricData<T>, number: impl Fn(T) -> f64) -> BTreeMap<Labels, Point> {
    let named = |labels: &mut dyn Iterator<Item = &KeyValue>| {
        labels.map(|label| (label.key.to_string(), label.value.to_string())).collect::<Labels>()
    };
    match data {
        MetricData::Sum(sum) => sum
            .data_points()
            .map(|point| {
                let sum = number(point.value());
                (named(&mut point.attributes()), Point { sum, ..Point::default() })
            })
            .collect(),
        MetricData::Histogram(histogram) => histogram
            .data_points()
            .map(|point| {
                let (sum, bounds) = (number(point.sum()), point.bounds().collect());
                (named(&mut point.attributes()), Point { sum, count: point.count(), bounds })
            })
            .collect(),
        MetricData::Gauge(_) | MetricData::ExponentialHistogram(_) => BTreeMap::new(),
    }
}
