//! The service that reports out of band: [`OrcaService`].

use std::time::Duration;

use thalweg::server::{Methods, ServerHandle, Service};
use thalweg::{Request, Response, Status};

use super::measurements::SharedMeasurements;
use super::pb::OrcaLoadReportRequest;
use super::pb::open_rca_service_server::{self, OpenRcaService, OpenRcaServiceServer};
use super::report_stream::ReportStream;

/// `xds.service.orca.v3.OpenRcaService`: made by [`ServerMetrics::service`](super::ServerMetrics::service). Streams end
/// with UNAVAILABLE when the server drains.
#[derive(Clone, Debug)]
pub struct OrcaService {
    metrics: SharedMeasurements,
    interval_min: Duration,
}

/// gRPC's default (gRFC A51).
const INTERVAL_MIN: Duration = Duration::from_secs(30);

/// Bounds of the interval: reports without pause would keep a processor busy, and timers need a limit.
const INTERVAL_RANGE: [Duration; 2] = [Duration::from_millis(1), Duration::from_secs(365 * 24 * 3600)];

/// Maximum request size: an interval, and names of costs, which are not used.
const REQUEST_BYTES_MAX: usize = 64 * 1024;

impl OrcaService {
    pub(super) fn new(metrics: SharedMeasurements) -> Self {
        Self { metrics, interval_min: INTERVAL_MIN }
    }

    /// Sets the minimum interval of reports, which applies if a client asks for a shorter one or for none; 30 s by
    /// default, as in gRPC.
    pub fn interval_min(mut self, interval: Duration) -> Self {
        self.interval_min = interval;
        self
    }
}

impl Service for OrcaService {
    const NAME: &'static str = open_rca_service_server::SERVICE_NAME;

    fn register(self, methods: &mut Methods<'_>) {
        let server = methods.server().clone();
        let reports = Reports { service: self, server };
        OpenRcaServiceServer::new(reports).max_decoding_message_size(REQUEST_BYTES_MAX).register(methods);
    }
}

/// The service on its server.
#[derive(Clone, Debug)]
struct Reports {
    service: OrcaService,
    server: ServerHandle,
}

impl OpenRcaService for Reports {
    type StreamCoreMetricsStream = ReportStream;

    async fn stream_core_metrics(
        &self,
        request: Request<OrcaLoadReportRequest>,
    ) -> Result<Response<ReportStream>, Status> {
        let Self { service: OrcaService { metrics, interval_min }, server } = self;
        let asked = request.into_inner().report_interval;
        // A negative interval is none.
        let asked = asked.and_then(|interval| Duration::try_from(interval).ok()).unwrap_or_default();
        let [min, max] = INTERVAL_RANGE;
        let interval = asked.max(*interval_min).clamp(min, max);
        Ok(Response::new(ReportStream::new(metrics.clone(), interval, server.clone())))
    }
}
