//! The last load report of an endpoint (gRFC A51): [`LastReport`].

use std::sync::{Arc, Mutex, PoisonError};

use thalweg_balance::policy::LoadReport;
use thalweg_http2::fields::Field;
use tokio::time::Instant;

use crate::grpc::metadata;

/// The last load report of an endpoint, of any of its connections. Malformed reports are ignored.
#[derive(Debug, Default)]
pub(crate) struct LastReport(Mutex<Option<Arc<LoadReport>>>);

impl LastReport {
    pub(crate) fn get(&self) -> Option<Arc<LoadReport>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Takes over the report in a call's trailers, if they have one. Costs of the call alone do not replace a report.
    pub(super) fn note_trailers<'a>(&self, trailers: impl IntoIterator<Item = Field<'a>>) {
        let mut fields = trailers.into_iter().filter(|field| field.name == LoadReport::TRAILER.as_bytes());
        if let Some(field) = fields.next()
            && let Ok(message) = metadata::decode_binary(field.name, field.value)
        {
            self.note(&message);
        }
    }

    /// Takes over an encoded report.
    pub(crate) fn note(&self, message: &[u8]) {
        match LoadReport::decode(message, Instant::now().into_std()) {
            Ok(report) if report.has_load() => {
                *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(report));
            }
            Ok(_) => {}
            Err(error) => tracing::debug!(why = %error, "invalid load report"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grpc::testing::fields;

    #[test]
    fn report_is_taken_from_trailers() {
        let last = LastReport::default();
        let check = |trailers: &[(&str, &str)], expected: Option<f64>| {
            last.note_trailers(fields(trailers).iter());
            assert_eq!(last.get().map(|report| report.cpu_utilization), expected, "{trailers:?}");
        };
        check(&[("grpc-status", "0")], None);
        // `cpu_utilization: 0.5`, with and without padding.
        check(&[("endpoint-load-metrics-bin", "CQAAAAAAAOA/"), ("grpc-status", "0")], Some(0.5));
        check(&[("grpc-status", "13"), ("endpoint-load-metrics-bin", "CQAAAAAAAPA/")], Some(1.0));
        // No Base64, no report, several reports, costs only, and an empty report.
        for ignored in ["*", "CQAA", "CQAAAAAAAOA/,CQAAAAAAAOA/", "IgwKAWERAAAAAAAA8D8=", ""] {
            check(&[("endpoint-load-metrics-bin", ignored)], Some(1.0));
        }
        check(&[("x-endpoint-load-metrics-bin", "CQAAAAAAAOA/")], Some(1.0));
    }
}
