//! What all calls, connections and lanes of a channel are measured with.

use opentelemetry::KeyValue;

use super::instruments::ClientInstruments;

/// Instead of names that are not to be told.
pub(super) const OTHER: &str = "other";

#[derive(Debug)]
pub(super) struct ClientMetrics {
    pub(super) instruments: ClientInstruments,
    /// `grpc.target`.
    pub(super) target: KeyValue,
    pub(super) names_all_methods: bool,
}

impl ClientMetrics {
    pub(super) fn attempt_started(&self, method: KeyValue) {
        self.instruments.attempt.started.add(1, &[method, self.target.clone()]);
    }

    pub(super) fn target(&self) -> &[KeyValue] {
        std::slice::from_ref(&self.target)
    }
}
