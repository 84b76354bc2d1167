//! Measurement of a channel's connections and lanes.

use std::borrow::Cow;
use std::io::ErrorKind;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use opentelemetry::KeyValue;
use thalweg_balance::Locality;
use thalweg_balance::policy::EndpointWeight;
use thalweg_http2::ErrorCode;

use super::call::CallMeasure;
use super::client::{ClientMetrics, OTHER, Observed};
use super::instruments::ClientInstruments;
use super::setup::Setup;
use crate::method::Method;

/// Measurement of a channel; empty if it is not measured.
#[derive(Clone, Debug, Default)]
pub(crate) struct ChannelMeasure(Option<Arc<Observed>>);

impl ChannelMeasure {
    /// Creates the measurement. `target` is the canonical target, with its scheme.
    pub(crate) fn new(setup: &Setup, target: impl FnOnce() -> String) -> Self {
        let metrics = setup.metrics.as_ref().map(|metrics| {
            let target: Arc<str> = if metrics.names_target { target().into() } else { OTHER.into() };
            Arc::new(ClientMetrics {
                instruments: ClientInstruments::new(&metrics.meter),
                target: KeyValue::new("grpc.target", target),
                names_all_methods: metrics.names_all_methods,
            })
        });
        if metrics.is_none() && setup.traces.is_none() {
            return Self(None);
        }
        Self(Some(Arc::new(Observed::new(metrics, setup.traces.clone()))))
    }

    fn metrics(&self) -> Option<&Arc<ClientMetrics>> {
        self.0.as_ref()?.metrics.as_ref()
    }

    /// Starts a call.
    #[inline]
    pub(crate) fn call(&self, method: &Method) -> CallMeasure {
        match &self.0 {
            None => CallMeasure::default(),
            Some(observed) => Self::observed_call(observed, method),
        }
    }

    fn observed_call(observed: &Arc<Observed>, method: &Method) -> CallMeasure {
        let names_all = observed.metrics.as_ref().is_some_and(|metrics| metrics.names_all_methods);
        let name = match method.static_path() {
            Some(path) => Cow::Borrowed(path.trim_start_matches('/')),
            None if names_all => Cow::Owned(method.path().trim_start_matches('/').to_owned()),
            None => OTHER.into(),
        };
        CallMeasure::of_client(observed, name.into(), method.path())
    }

    /// Notes that the target's name has been resolved.
    pub(crate) fn resolved(&self) {
        if let Some(observed) = &self.0 {
            observed.note_resolved();
        }
    }

    /// Counts a calculation of weights after which `weighted_round_robin` lets calls go in turn.
    pub(crate) fn fell_back_to_round_robin(&self) {
        if let Some(metrics) = self.metrics() {
            metrics.instruments.wrr_fallbacks.add(1, metrics.target());
        }
    }

    /// Returns the measurement of an endpoint, whose locality is known if a resolver names it.
    pub(crate) fn endpoint(&self, locality: &Locality) -> EndpointMeasure {
        let mut labels = Vec::new();
        if let Some(metrics) = self.metrics() {
            labels.push(metrics.target.clone());
            if *locality != Locality::default() {
                labels.push(KeyValue::new("grpc.lb.locality", name_of(locality)));
            }
        }
        EndpointMeasure { channel: self.clone(), labels }
    }
}

/// Returns the name as gRPC's libraries write it.
fn name_of(locality: &Locality) -> String {
    let Locality { region, zone, sub_zone, .. } = locality;
    format!("{{region=\"{region}\", zone=\"{zone}\", sub_zone=\"{sub_zone}\"}}")
}

/// Measurement of the connections and lanes to one endpoint of a channel.
#[derive(Clone, Debug, Default)]
pub(crate) struct EndpointMeasure {
    channel: ChannelMeasure,
    /// Labels of A78 and A94; empty without metrics.
    labels: Vec<KeyValue>,
}

impl EndpointMeasure {
    pub(crate) fn channel(&self) -> &ChannelMeasure {
        &self.channel
    }

    /// Counts an address that could not be connected to.
    pub(crate) fn attempt_failed(&self) {
        if let Some(metrics) = self.channel.metrics() {
            metrics.instruments.attempts_failed.add(1, &self.labels);
        }
    }

    /// Records the endpoint's weight after a calculation of weights.
    pub(crate) fn weight(&self, weight: EndpointWeight) {
        let Some(metrics) = self.channel.metrics() else { return };
        let instruments = &metrics.instruments;
        match weight {
            EndpointWeight::Usable(_) => {}
            EndpointWeight::NotYetUsable => instruments.wrr_not_yet_usable.add(1, &self.labels),
            EndpointWeight::Stale => instruments.wrr_stale.add(1, &self.labels),
        }
        instruments.wrr_weights.record(weight.usable().unwrap_or(0.0), &self.labels);
    }

    /// Adds `change` to the number of lanes.
    pub(crate) fn lanes(&self, change: isize) {
        if let Some(metrics) = self.channel.metrics() {
            metrics.instruments.lanes.add(change as i64, metrics.target());
        }
    }

    /// Adds `change` to the number of open connections.
    fn connections(&self, instruments: &ClientInstruments, change: i64, is_secure: bool) {
        let level = if is_secure { "privacy_and_integrity" } else { "none" };
        instruments
            .open_connections
            .add(change, &self.labels_and(KeyValue::new("grpc.security_level", level)));
    }

    fn labels_and(&self, another: KeyValue) -> Vec<KeyValue> {
        self.labels.iter().cloned().chain([another]).collect()
    }
}

/// Measurement of a channel's connection, from its first SETTINGS until it accepts no more calls.
#[derive(Debug, Default)]
pub(crate) struct ConnectionMeasure(Mutex<ConnectionLifetime>);

#[derive(Debug, Default)]
struct ConnectionLifetime {
    /// Set while the connection is open.
    endpoint: EndpointMeasure,
    is_secure: bool,
    is_over: bool,
    /// First reported reason for the end.
    why: Option<Cow<'static, str>>,
}

impl ConnectionMeasure {
    /// Notes that the connection accepts calls. If it is already over, it is closed again at once.
    pub(crate) fn opened(&self, endpoint: &EndpointMeasure, is_secure: bool) {
        let Some(metrics) = endpoint.channel.metrics() else { return };
        metrics.instruments.attempts_succeeded.add(1, &endpoint.labels);
        endpoint.connections(&metrics.instruments, 1, is_secure);
        let is_over = {
            let mut lifetime = self.lifetime();
            (lifetime.endpoint, lifetime.is_secure) = (endpoint.clone(), is_secure);
            lifetime.is_over
        };
        if is_over {
            self.disconnected();
        }
    }

    /// Notes a received GOAWAY.
    pub(crate) fn note_going_away(&self, code: ErrorCode) {
        // Unknown codes count as INTERNAL_ERROR (RFC 9113 §7). Labels chosen by peers could fill the memory.
        let known = if let ErrorCode::Unknown(_) = code { ErrorCode::InternalError } else { code };
        self.note(format!("GOAWAY {known}").into());
    }

    /// Notes an error of the socket. A peer that closes it without GOAWAY is not among A94's errors.
    pub(crate) fn note_error(&self, kind: ErrorKind) {
        let why = match kind {
            ErrorKind::UnexpectedEof => "unknown",
            ErrorKind::ConnectionReset => "connection reset",
            ErrorKind::TimedOut => "connection timed out",
            ErrorKind::ConnectionAborted => "connection aborted",
            _ => "socket error",
        };
        self.note(why.into());
    }

    /// Notes that the channel shuts the connection down.
    pub(crate) fn note_shutdown(&self) {
        self.note("subchannel shutdown".into());
    }

    fn note(&self, why: Cow<'static, str>) {
        self.lifetime().why.get_or_insert(why);
    }

    /// Notes that the connection accepts no more calls. Only the first call counts.
    pub(crate) fn disconnected(&self) {
        let (endpoint, is_secure, why) = {
            let mut lifetime = self.lifetime();
            lifetime.is_over = true;
            (std::mem::take(&mut lifetime.endpoint), lifetime.is_secure, lifetime.why.clone())
        };
        let Some(metrics) = endpoint.channel.metrics() else { return };
        let why = KeyValue::new("grpc.disconnect_error", why.unwrap_or("unknown".into()));
        metrics.instruments.disconnections.add(1, &endpoint.labels_and(why));
        endpoint.connections(&metrics.instruments, -1, is_secure);
    }

    fn lifetime(&self) -> MutexGuard<'_, ConnectionLifetime> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
