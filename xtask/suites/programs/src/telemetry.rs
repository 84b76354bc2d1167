//! `opentelemetry-otlp`: spans, metrics and logs of a program arrive at a collector.
//!
//! The health service reports the received data: each name is a service with status SERVING.

use opentelemetry::logs::{AnyValue, LogRecord as _, Logger as _, LoggerProvider as _};
use opentelemetry::metrics::MeterProvider as _;
use opentelemetry::trace::{Span as _, Tracer as _, TracerProvider as _};
use opentelemetry_otlp::{
    Compression, LogExporter, MetricExporter, SpanExporter, WithExportConfig as _, WithTonicConfig as _,
};
use opentelemetry_proto::tonic::collector::logs::v1::logs_service_server::{LogsService, LogsServiceServer};
use opentelemetry_proto::tonic::collector::logs::v1::{ExportLogsServiceRequest, ExportLogsServiceResponse};
use opentelemetry_proto::tonic::collector::metrics::v1::metrics_service_server::{
    MetricsService, MetricsServiceServer,
};
use opentelemetry_proto::tonic::collector::metrics::v1::{
    ExportMetricsServiceRequest, ExportMetricsServiceResponse,
};
use opentelemetry_proto::tonic::collector::trace::v1::trace_service_server::{
    TraceService, TraceServiceServer,
};
use opentelemetry_proto::tonic::collector::trace::v1::{
    ExportTraceServiceRequest, ExportTraceServiceResponse,
};
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_sdk::logs::SdkLoggerProvider;
use opentelemetry_sdk::metrics::SdkMeterProvider;
use opentelemetry_sdk::trace::{SdkTracer, SdkTracerProvider};
use tonic::codec::CompressionEncoding;
use tonic::metadata::MetadataMap;
use tonic::{Request, Response, Status};
use tonic_health::ServingStatus;
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_client::HealthClient;
use tonic_health::server::HealthReporter;

use crate::outcome::Outcome;

/// Enough for batches larger than a flow-control window.
const SPANS: usize = 3000;
/// Metadata sent with each request.
const TENANT: &str = "x-tenant";

pub async fn drive(address: &str) -> Outcome {
    let endpoint = format!("http://{address}");
    let mut metadata = MetadataMap::new();
    metadata.insert(TENANT, "forest".parse()?);

    let spans = SpanExporter::builder().with_tonic().with_endpoint(&endpoint).with_metadata(metadata.clone());
    let tracing = SdkTracerProvider::builder().with_batch_exporter(spans.build()?).build();
    let tracer = tracing.tracer("programs");
    for number in 0..SPANS {
        tracer.start(format!("span {number}")).end();
        if number % 500 == 499 {
            // The exporter's queue is bounded.
            flushed(&tracing, SdkTracerProvider::force_flush).await?;
        }
    }
    flushed(&tracing, SdkTracerProvider::shutdown).await?;

    let metrics = MetricExporter::builder()
        .with_tonic()
        .with_endpoint(&endpoint)
        .with_metadata(metadata.clone())
        .with_compression(Compression::Gzip);
    let metering = SdkMeterProvider::builder().with_periodic_exporter(metrics.build()?).build();
    metering.meter("programs").u64_counter("calls").build().add(7, &[]);
    flushed(&metering, SdkMeterProvider::shutdown).await?;

    let logs = LogExporter::builder().with_tonic().with_endpoint(&endpoint).with_metadata(metadata);
    let logging = SdkLoggerProvider::builder().with_batch_exporter(logs.build()?).build();
    let logger = logging.logger("programs");
    let mut record = logger.create_log_record();
    record.set_body(AnyValue::from("a log"));
    logger.emit(record);
    flushed(&logging, SdkLoggerProvider::shutdown).await?;

    let last = format!("span {}", SPANS - 1);
    for name in ["span 0", &last, "calls", "a log"] {
        arrived(&endpoint, name).await?;
    }
    match arrived(&endpoint, "span of nobody").await {
        Err(_) => {}
        Ok(()) => return Err("unsent spans have arrived".into()),
    }
    // An exporter reports failures.
    let nobody = SpanExporter::builder().with_tonic().with_endpoint("http://127.0.0.1:1").build()?;
    let tracing = SdkTracerProvider::builder().with_batch_exporter(nobody).build();
    tracing.tracer("programs").start("lost").end();
    match flushed(&tracing, SdkTracerProvider::force_flush).await {
        Err(_) => Ok(()),
        Ok(()) => Err("exporting to an unused port succeeded".into()),
    }
}

/// A tracer that exports each span by itself.
pub fn tracer(address: &str) -> Outcome<SdkTracer> {
    let mut metadata = MetadataMap::new();
    metadata.insert(TENANT, "forest".parse()?);
    let exporter = SpanExporter::builder().with_tonic().with_endpoint(format!("http://{address}"));
    let exporter = exporter.with_metadata(metadata).build()?;
    Ok(SdkTracerProvider::builder().with_simple_exporter(exporter).build().tracer("rates"))
}

/// A call for the rates. One at a time is exported.
pub async fn export(tracer: SdkTracer) -> Outcome {
    Ok(tokio::task::spawn_blocking(move || tracer.start("span").end()).await?)
}

/// Providers block a thread while they send.
async fn flushed<P, E>(provider: &P, flush: fn(&P) -> Result<(), E>) -> Outcome
where
    P: Clone + Send + 'static,
    E: std::error::Error + Send + Sync + 'static,
{
    let provider = provider.clone();
    Ok(tokio::task::spawn_blocking(move || flush(&provider)).await??)
}

/// tonic-health's own client, which does not use this crate's `tonic`.
async fn arrived(endpoint: &str, name: &str) -> Outcome {
    let channel = tonic::transport::Endpoint::from_shared(endpoint.to_owned())?.connect().await?;
    let service = name.to_owned();
    let response = HealthClient::new(channel).check(HealthCheckRequest { service }).await;
    let response = response.map_err(|status| format!("{name}: {status}"))?.into_inner();
    match response.status {
        1 => Ok(()),
        status => Err(format!("{name}: {status}").into()),
    }
}

/// Receives exported data.
#[derive(Clone)]
pub struct Collector {
    reporter: HealthReporter,
}

impl Collector {
    pub fn new(reporter: HealthReporter) -> Self {
        Self { reporter }
    }

    pub fn traces(&self) -> TraceServiceServer<Self> {
        TraceServiceServer::new(self.clone())
    }

    pub fn metrics(&self) -> MetricsServiceServer<Self> {
        MetricsServiceServer::new(self.clone()).accept_compressed(CompressionEncoding::Gzip)
    }

    pub fn logs(&self) -> LogsServiceServer<Self> {
        LogsServiceServer::new(self.clone())
    }

    async fn report(&self, name: &str) {
        self.reporter.set_service_status(name, ServingStatus::Serving).await;
    }
}

fn check_tenant<T>(request: Request<T>) -> Result<T, Status> {
    match request.metadata().get(TENANT) {
        Some(tenant) if tenant == "forest" => Ok(request.into_inner()),
        tenant => Err(Status::unauthenticated(format!("{tenant:?}"))),
    }
}

#[tonic::async_trait]
impl TraceService for Collector {
    async fn export(
        &self,
        request: Request<ExportTraceServiceRequest>,
    ) -> Result<Response<ExportTraceServiceResponse>, Status> {
        let resources = check_tenant(request)?.resource_spans;
        for scope in resources.into_iter().flat_map(|resource| resource.scope_spans) {
            for span in scope.spans {
                self.report(&span.name).await;
            }
        }
        Ok(Response::new(Default::default()))
    }
}

#[tonic::async_trait]
impl MetricsService for Collector {
    async fn export(
        &self,
        request: Request<ExportMetricsServiceRequest>,
    ) -> Result<Response<ExportMetricsServiceResponse>, Status> {
        let is_compressed =
            request.metadata().get("grpc-encoding").is_some_and(|encoding| encoding == "gzip");
        if !is_compressed {
            return Err(Status::invalid_argument("metrics are compressed"));
        }
        let resources = check_tenant(request)?.resource_metrics;
        for scope in resources.into_iter().flat_map(|resource| resource.scope_metrics) {
            for metric in scope.metrics {
                self.report(&metric.name).await;
            }
        }
        Ok(Response::new(Default::default()))
    }
}

#[tonic::async_trait]
impl LogsService for Collector {
    async fn export(
        &self,
        request: Request<ExportLogsServiceRequest>,
    ) -> Result<Response<ExportLogsServiceResponse>, Status> {
        let resources = check_tenant(request)?.resource_logs;
        for scope in resources.into_iter().flat_map(|resource| resource.scope_logs) {
            for record in scope.log_records {
                if let Some(Value::StringValue(text)) = record.body.and_then(|body| body.value) {
                    self.report(&text).await;
                }
            }
        }
        Ok(Response::new(Default::default()))
    }
}
