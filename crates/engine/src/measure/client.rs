//! Measurement shared by all calls, connections and lanes of a channel.

use std::sync::{Arc, OnceLock};
use std::time::SystemTime;

use opentelemetry::KeyValue;

use super::instruments::ClientInstruments;
use super::traces::Traces;

/// Replaces names that are not reported.
pub(super) const OTHER: &str = "other";

/// Metrics and traces of a channel.
#[derive(Debug)]
pub(super) struct Observed {
    pub(super) metrics: Option<Arc<ClientMetrics>>,
    pub(super) traces: Option<Traces>,
    /// When the target's name was first resolved.
    resolved_at: OnceLock<SystemTime>,
}

#[derive(Debug)]
pub(super) struct ClientMetrics {
    pub(super) instruments: ClientInstruments,
    /// `grpc.target`.
    pub(super) target: KeyValue,
    pub(super) names_all_methods: bool,
}

impl Observed {
    pub(super) fn new(metrics: Option<Arc<ClientMetrics>>, traces: Option<Traces>) -> Self {
        Self { metrics, traces, resolved_at: OnceLock::new() }
    }

    pub(super) fn note_resolved(&self) {
        self.resolved_at.get_or_init(SystemTime::now);
    }

    pub(super) fn resolved_at(&self) -> Option<SystemTime> {
        self.resolved_at.get().copied()
    }
}

impl ClientMetrics {
    pub(super) fn attempt_started(&self, method: KeyValue) {
        self.instruments.attempt.started.add(1, &[method, self.target.clone()]);
    }

    pub(super) fn target(&self) -> &[KeyValue] {
        std::slice::from_ref(&self.target)
    }
}
