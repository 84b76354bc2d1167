//! Reports in the trailers of calls: [`PerCallReports`].

use thalweg::Status;
use thalweg::interceptor::{Call, Interceptor, Next, Reply};
use thalweg::metadata::{BinaryMetadataValue, MetadataMap};
use thalweg::prost::Message;
use thalweg::server::{LateTrailers, Trailers};

use super::call_metrics::CallMetrics;
use super::measurements::SharedMeasurements;
use super::pb::OrcaLoadReport;

/// Trailer with an encoded report (gRFC A51).
const TRAILER: &str = "endpoint-load-metrics-bin";

/// An interceptor of servers that adds load reports to the trailers of calls: made by
/// [`ServerMetrics::per_call`](super::ServerMetrics::per_call).
///
/// The report of a stream of responses is made when the stream ends.
#[derive(Clone, Debug)]
pub struct PerCallReports {
    server: SharedMeasurements,
}

impl PerCallReports {
    pub(super) fn new(server: SharedMeasurements) -> Self {
        Self { server }
    }
}

impl Interceptor for PerCallReports {
    async fn intercept(&self, mut call: Call, next: Next) -> Result<Reply, Status> {
        let (server, recorder) = (self.server.clone(), CallMetrics::default());
        call.extensions_mut().insert(recorder.clone());
        let has_one_response = call.call_type().has_one_response();
        let mut reply = match next.run(call).await {
            Ok(reply) => reply,
            Err(mut status) => {
                add_report(status.metadata_mut(), &server, &recorder.0);
                return Err(status);
            }
        };
        let extensions = reply.extensions_mut();
        if has_one_response {
            let mut trailers = extensions.remove().unwrap_or_else(Trailers::default);
            add_report(&mut trailers.0, &server, &recorder.0);
            extensions.insert(trailers);
        } else {
            let inner = extensions.remove::<LateTrailers>();
            extensions.insert(LateTrailers::new(move || {
                let mut trailers = inner.as_ref().map(LateTrailers::get).unwrap_or_default();
                add_report(&mut trailers, &server, &recorder.0);
                trailers
            }));
        }
        Ok(reply)
    }
}

/// Adds a report, unless there is nothing to report.
fn add_report(trailers: &mut MetadataMap, server: &SharedMeasurements, call: &SharedMeasurements) {
    let report = server.get().overridden_by(call.get()).into_report();
    if report != OrcaLoadReport::default() {
        trailers.insert_bin(TRAILER, BinaryMetadataValue::from_bytes(&report.encode_to_vec()));
    }
}
