//! An SDK that collects metrics and exports nothing during the run.

use std::sync::LazyLock;
use std::time::Duration;

use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::metrics::data::ResourceMetrics;
use opentelemetry_sdk::metrics::exporter::PushMetricExporter;
use opentelemetry_sdk::metrics::{PeriodicReader, SdkMeterProvider, Temporality};
use thalweg::Metrics;

static PROVIDER: LazyLock<SdkMeterProvider> = LazyLock::new(|| {
    let reader = PeriodicReader::builder(Nowhere).with_interval(Duration::from_secs(3600)).build();
    SdkMeterProvider::builder().with_reader(reader).build()
});

pub(crate) fn metrics() -> Metrics {
    Metrics::new(&*PROVIDER)
}

struct Nowhere;

impl PushMetricExporter for Nowhere {
    async fn export(&self, _: &ResourceMetrics) -> OTelSdkResult {
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
