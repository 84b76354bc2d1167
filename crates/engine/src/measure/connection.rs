//! A channel's connections and lanes, measured.

use std::borrow::Cow;
use std::io::ErrorKind;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use opentelemetry::KeyValue;
use thalweg_http2::ErrorCode;

use super::call::CallMeasure;
use super::client::{ClientMetrics, OTHER, Observed};
use super::instruments::ClientInstruments;
use super::setup::Setup;
use crate::method::Method;

/// What is measured of a channel, if anything is.
#[derive(Clone, Debug, Default)]
pub(crate) struct ChannelMeasure(Option<Arc<Observed>>);

impl ChannelMeasure {
    /// `target` is the canonical target: with its scheme.
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

    /// A call begins.
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

    /// The name of the target has been resolved.
    pub(crate) fn resolved(&self) {
        if let Some(observed) = &self.0 {
            observed.note_resolved();
        }
    }

    /// An address could not be connected to.
    pub(crate) fn attempt_failed(&self) {
        if let Some(metrics) = self.metrics() {
            metrics.instruments.attempts_failed.add(1, metrics.target());
        }
    }

    /// There are so many lanes more.
    pub(crate) fn lanes(&self, change: isize) {
        if let Some(metrics) = self.metrics() {
            metrics.instruments.lanes.add(change as i64, metrics.target());
        }
    }
}

/// A connection of a channel, from its first SETTINGS until it takes no more calls.
#[derive(Debug, Default)]
pub(crate) struct ConnectionMeasure(Mutex<Life>);

#[derive(Debug, Default)]
struct Life {
    /// While it is open.
    channel: ChannelMeasure,
    is_over: bool,
    /// What was heard first of why it ends.
    why: Option<Cow<'static, str>>,
}

impl ConnectionMeasure {
    /// The connection takes calls from now on; or it would have, if it were not over already.
    pub(crate) fn opened(&self, channel: &ChannelMeasure) {
        let Some(metrics) = channel.metrics() else { return };
        metrics.instruments.attempts_succeeded.add(1, metrics.target());
        metrics.instruments.open_connections.add(1, metrics.target());
        let is_over = {
            let mut life = self.life();
            life.channel = channel.clone();
            life.is_over
        };
        if is_over {
            self.disconnected();
        }
    }

    /// GOAWAY has come.
    pub(crate) fn note_going_away(&self, code: ErrorCode) {
        // RFC 9113 §7: a code that it does not name is as INTERNAL_ERROR. Labels that peers may invent would fill the
        // memory.
        let known = if let ErrorCode::Unknown(_) = code { ErrorCode::InternalError } else { code };
        self.note(format!("GOAWAY {known}").into());
    }

    /// The socket failed. The other end may also have closed it without a word, which is none of A94's errors.
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

    /// The channel wants it no more.
    pub(crate) fn note_shutdown(&self) {
        self.note("subchannel shutdown".into());
    }

    fn note(&self, why: Cow<'static, str>) {
        self.life().why.get_or_insert(why);
    }

    /// It takes no more calls. Only the first time counts.
    pub(crate) fn disconnected(&self) {
        let (channel, why) = {
            let mut life = self.life();
            life.is_over = true;
            (std::mem::take(&mut life.channel), life.why.clone())
        };
        let Some(metrics) = channel.metrics() else { return };
        let why = why.unwrap_or("unknown".into());
        let labels = [metrics.target.clone(), KeyValue::new("grpc.disconnect_error", why)];
        metrics.instruments.disconnections.add(1, &labels);
        metrics.instruments.open_connections.add(-1, metrics.target());
    }

    fn life(&self) -> MutexGuard<'_, Life> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
