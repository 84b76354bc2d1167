//! OTLP metrics pushed to a collector over gRPC, with the library's own client.

use std::pin::pin;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use thalweg::metadata::MetadataMap;
use thalweg::{Channel, Request, Status};
use tokio::sync::oneshot;
use tokio::time::MissedTickBehavior;

use super::families::{BOUNDS_S, Buckets, Family, Point, Points, families};
use super::pb::opentelemetry::proto::collector::metrics::v1::ExportMetricsServiceRequest;
use super::pb::opentelemetry::proto::collector::metrics::v1::metrics_service_client::MetricsServiceClient;
use super::pb::opentelemetry::proto::common::v1::{AnyValue, InstrumentationScope, KeyValue, any_value};
use super::pb::opentelemetry::proto::metrics::v1::{
    AggregationTemporality, Histogram, HistogramDataPoint, Metric, NumberDataPoint, ResourceMetrics,
    ScopeMetrics, Sum, metric, number_data_point,
};
use super::pb::opentelemetry::proto::resource::v1::Resource;
use super::snapshot::{Latest, Snapshot};

/// Service name in the pushed resource.
const SERVICE: &str = "thalweg-load";
const PUSH_TIMEOUT: Duration = Duration::from_secs(5);
/// Timeout after the run's end, for a push in flight and for the last one.
const LAST_TIMEOUT: Duration = Duration::from_secs(2);

/// Push configuration.
pub struct Push {
    /// Channel to the collector.
    pub channel: Channel,
    /// The collector's address as given by the user.
    pub target: String,
    /// Metadata of each push.
    pub headers: MetadataMap,
    /// Interval between pushes.
    pub every: Duration,
}

pub(super) struct Pusher {
    pub(super) push: Push,
    pub(super) latest: Latest,
    /// Called with the first failure.
    pub(super) say: Box<dyn Fn(&str) + Send + Sync>,
}

impl Pusher {
    /// Pushes until `ends` resolves, and once more then.
    pub(super) async fn until(self, mut ends: oneshot::Receiver<()>) {
        let client = MetricsServiceClient::new(self.push.channel.clone()).timeout(PUSH_TIMEOUT);
        let mut ticks =
            tokio::time::interval_at(tokio::time::Instant::now() + self.push.every, self.push.every);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut has_failed = false;
        loop {
            tokio::select! {
                _ = ticks.tick() => {}
                _ = &mut ends => break,
            }
            let mut push = pin!(self.push(&client));
            let (pushed, has_ended) = tokio::select! {
                pushed = &mut push => (pushed, false),
                // Wait for the push in flight: a collector might store an abandoned push after the last one.
                _ = &mut ends => (push_within(push).await, true),
            };
            self.report_first_failure(pushed, &mut has_failed);
            if has_ended {
                break;
            }
        }
        self.push.channel.reset_connect_backoff();
        self.report_first_failure(push_within(self.push(&client)).await, &mut has_failed);
    }

    async fn push(&self, client: &MetricsServiceClient<Channel>) -> Result<(), Status> {
        let Some(snapshot) = self.latest.snapshot() else { return Ok(()) };
        let mut request = Request::new(export(&snapshot));
        *request.metadata_mut() = self.push.headers.clone();
        let response = client.export(request).await?.into_inner();
        match response.partial_success.filter(|partial| partial.rejected_data_points > 0) {
            None => Ok(()),
            Some(partial) => Err(Status::invalid_argument(format!(
                "the collector rejected {} data points: {}",
                partial.rejected_data_points, partial.error_message
            ))),
        }
    }

    /// Reports the first failure only.
    fn report_first_failure(&self, pushed: Result<(), Status>, has_failed: &mut bool) {
        let Err(status) = pushed else { return };
        if !std::mem::replace(has_failed, true) {
            let (target, code, message) = (&self.push.target, status.code(), status.message());
            (self.say)(&format!(
                "pushing metrics to {target} failed ({code:?}: {message}); the load continues and pushes are retried"
            ));
        }
    }
}

/// Limits the time of a push after the run's end.
async fn push_within(push: impl Future<Output = Result<(), Status>>) -> Result<(), Status> {
    let pushed = tokio::time::timeout(LAST_TIMEOUT, push).await;
    pushed.unwrap_or_else(|_| Err(Status::deadline_exceeded("no response")))
}

fn export(snapshot: &Snapshot) -> ExportMetricsServiceRequest {
    let started = humantime::parse_rfc3339(&snapshot.run.started).unwrap_or(UNIX_EPOCH);
    let times = Times { from: unix_ns(started), at: unix_ns(SystemTime::now()) };
    let scope = ScopeMetrics {
        scope: Some(InstrumentationScope {
            name: "thalweg.load".to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            ..InstrumentationScope::default()
        }),
        metrics: families(snapshot).into_iter().map(|family| times.metric(family)).collect(),
        ..ScopeMetrics::default()
    };
    let attributes = [
        ("service.name", SERVICE.to_owned()),
        ("service.version", env!("CARGO_PKG_VERSION").to_owned()),
        ("service.instance.id", std::process::id().to_string()),
    ];
    let resource =
        Resource { attributes: attributes.into_iter().map(attribute).collect(), ..Resource::default() };
    let metrics = ResourceMetrics {
        resource: Some(resource),
        scope_metrics: vec![scope],
        ..ResourceMetrics::default()
    };
    ExportMetricsServiceRequest { resource_metrics: vec![metrics] }
}

/// Start and end of a period, in ns since 1970.
struct Times {
    from: u64,
    at: u64,
}

impl Times {
    fn metric(&self, family: Family) -> Metric {
        let whole = |value| number_data_point::Value::AsInt(i64::try_from(value).unwrap_or(i64::MAX));
        let data = match family.points {
            Points::Counts(points) => metric::Data::Sum(self.sum(points, true, whole)),
            Points::Seconds(points) => {
                metric::Data::Sum(self.sum(points, true, number_data_point::Value::AsDouble))
            }
            Points::Now(points) => metric::Data::Sum(self.sum(points, false, whole)),
            Points::Histograms(points) => metric::Data::Histogram(Histogram {
                data_points: points.into_iter().map(|point| self.histogram(point)).collect(),
                aggregation_temporality: AggregationTemporality::Cumulative.into(),
            }),
        };
        Metric {
            name: family.name.to_owned(),
            description: family.about.to_owned(),
            unit: family.unit.to_owned(),
            data: Some(data),
            ..Metric::default()
        }
    }

    fn sum<T>(
        &self,
        points: Vec<Point<T>>,
        is_monotonic: bool,
        value: impl Fn(T) -> number_data_point::Value,
    ) -> Sum {
        let point = |point: Point<T>| NumberDataPoint {
            attributes: point.attributes.into_iter().map(attribute).collect(),
            start_time_unix_nano: self.from,
            time_unix_nano: self.at,
            value: Some(value(point.value)),
            ..NumberDataPoint::default()
        };
        Sum {
            data_points: points.into_iter().map(point).collect(),
            aggregation_temporality: AggregationTemporality::Cumulative.into(),
            is_monotonic,
        }
    }

    fn histogram(&self, point: Point<Buckets>) -> HistogramDataPoint {
        let Buckets { counts, count, sum_s, min_s, max_s } = point.value;
        HistogramDataPoint {
            attributes: point.attributes.into_iter().map(attribute).collect(),
            start_time_unix_nano: self.from,
            time_unix_nano: self.at,
            count,
            sum: Some(sum_s),
            bucket_counts: counts,
            explicit_bounds: BOUNDS_S.to_vec(),
            min: Some(min_s),
            max: Some(max_s),
            ..HistogramDataPoint::default()
        }
    }
}

fn attribute((key, value): (&'static str, String)) -> KeyValue {
    let value = AnyValue { value: Some(any_value::Value::StringValue(value)) };
    KeyValue { key: key.to_owned(), value: Some(value), ..KeyValue::default() }
}

fn unix_ns(time: SystemTime) -> u64 {
    time.duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos() as u64
}
