//! One call, measured from either side.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use opentelemetry::{KeyValue, Value};
use tokio::time::Instant;

use super::client::{ClientMetrics, OTHER};
use super::instruments::{Each, server_calls};
use super::metrics::Setup;
use crate::status::Code;

/// A call that is measured, if it is. Clones are of the same call: one that is dropped with the last of them before its
/// end was cancelled.
#[derive(Clone, Default)]
pub(crate) struct CallMeasure(Option<Arc<Measured>>);

struct Measured {
    side: Side,
    /// `grpc.method`.
    method: Value,
    begun: Instant,
    /// When the present attempt began: so long after the call.
    attempt_ns: AtomicU64,
    /// Bytes of the present attempt's messages.
    sent: AtomicU64,
    received: AtomicU64,
    is_over: AtomicBool,
}

enum Side {
    Client(Arc<ClientMetrics>),
    Server(Arc<Each>),
}

/// What is measured of a server's calls, if anything is.
#[derive(Clone, Debug)]
pub(crate) struct ServerMeasure(Option<Arc<Each>>);

impl ServerMeasure {
    pub(crate) fn new(setup: &Setup) -> Self {
        Self(setup.as_ref().map(|metrics| Arc::new(server_calls(&metrics.meter))))
    }

    /// A call has come, which is yet to be [counted](CallMeasure::count). `method` is `package.Service/Method`, if the
    /// server has it.
    pub(crate) fn call(&self, method: Option<&Arc<str>>) -> CallMeasure {
        let Some(instruments) = &self.0 else { return CallMeasure(None) };
        let method: Value = method.map_or(OTHER.into(), |method| Arc::clone(method).into());
        CallMeasure::begin(Side::Server(Arc::clone(instruments)), method)
    }
}

const METHOD: &str = "grpc.method";
const STATUS: &str = "grpc.status";

impl CallMeasure {
    /// A client's call, and its first attempt.
    pub(super) fn of_client(metrics: &Arc<ClientMetrics>, method: Value) -> Self {
        metrics.attempt_started(KeyValue::new(METHOD, method.clone()));
        Self::begin(Side::Client(Arc::clone(metrics)), method)
    }

    fn begin(side: Side, method: Value) -> Self {
        Self(Some(Arc::new(Measured {
            side,
            method,
            begun: Instant::now(),
            attempt_ns: AtomicU64::new(0),
            sent: AtomicU64::new(0),
            received: AtomicU64::new(0),
            is_over: AtomicBool::new(false),
        })))
    }

    /// Whether the call is measured.
    #[inline]
    pub(crate) fn is_some(&self) -> bool {
        self.0.is_some()
    }

    /// Counts a server's call as begun. Runs the user's code, as [`end`](Self::end) does: not under a lock.
    pub(crate) fn count(&self) {
        let Some(measured) = &self.0 else { return };
        if let Side::Server(instruments) = &measured.side {
            instruments.started.add(1, &[KeyValue::new(METHOD, measured.method.clone())]);
        }
    }

    /// Messages of so many bytes have been handed over, as they are on the wire, without their prefixes.
    #[inline]
    pub(crate) fn sent(&self, bytes: usize) {
        if let Some(measured) = &self.0 {
            measured.sent.fetch_add(bytes as u64, Ordering::Relaxed);
        }
    }

    /// As [`sent`](Self::sent), of what came.
    #[inline]
    pub(crate) fn received(&self, bytes: usize) {
        if let Some(measured) = &self.0 {
            measured.received.fetch_add(bytes as u64, Ordering::Relaxed);
        }
    }

    /// A client's attempt has ended with this, and another begins. How many bytes it had sent.
    pub(crate) fn again(&self, code: Code) -> usize {
        let Some(measured) = &self.0 else { return 0 };
        let Side::Client(metrics) = &measured.side else { return 0 };
        measured.record_attempt(code);
        measured.attempt_ns.store(measured.begun.elapsed().as_nanos() as u64, Ordering::Relaxed);
        let sent = measured.sent.swap(0, Ordering::Relaxed);
        measured.received.store(0, Ordering::Relaxed);
        metrics.attempt_started(KeyValue::new(METHOD, measured.method.clone()));
        sent as usize
    }

    /// The call has ended with this. Only the first end counts.
    #[inline]
    pub(crate) fn end(&self, code: Code) {
        if let Some(measured) = &self.0 {
            measured.end(code);
        }
    }
}

impl Measured {
    fn end(&self, code: Code) {
        if self.is_over.swap(true, Ordering::Relaxed) {
            return;
        }
        self.record_attempt(code);
        if let Side::Client(metrics) = &self.side {
            let labels = self.labels(code, metrics.target.clone());
            metrics.instruments.call_duration.record(self.begun.elapsed().as_secs_f64(), &labels);
        }
    }

    fn labels(&self, code: Code, target: KeyValue) -> [KeyValue; 3] {
        [KeyValue::new(METHOD, self.method.clone()), target, KeyValue::new(STATUS, code_name(code))]
    }

    fn record_attempt(&self, code: Code) {
        let (sent, received) = (self.sent.load(Ordering::Relaxed), self.received.load(Ordering::Relaxed));
        let attempt_s = self.attempt_ns.load(Ordering::Relaxed) as f64 / 1e9;
        let took_s = (self.begun.elapsed().as_secs_f64() - attempt_s).max(0.0);
        let record = |each: &Each, labels: &[KeyValue]| {
            each.duration.record(took_s, labels);
            each.sent.record(sent, labels);
            each.received.record(received, labels);
        };
        match &self.side {
            Side::Client(metrics) => {
                record(&metrics.instruments.attempt, &self.labels(code, metrics.target.clone()));
            }
            Side::Server(each) => {
                let method = KeyValue::new(METHOD, self.method.clone());
                record(each, &[method, KeyValue::new(STATUS, code_name(code))]);
            }
        }
    }
}

impl Drop for Measured {
    fn drop(&mut self) {
        self.end(Code::Cancelled);
    }
}

impl fmt::Debug for CallMeasure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("CallMeasure").field(&self.0.is_some()).finish()
    }
}

/// gRPC's name of a status code.
fn code_name(code: Code) -> &'static str {
    match code {
        Code::Ok => "OK",
        Code::Cancelled => "CANCELLED",
        Code::Unknown => "UNKNOWN",
        Code::InvalidArgument => "INVALID_ARGUMENT",
        Code::DeadlineExceeded => "DEADLINE_EXCEEDED",
        Code::NotFound => "NOT_FOUND",
        Code::AlreadyExists => "ALREADY_EXISTS",
        Code::PermissionDenied => "PERMISSION_DENIED",
        Code::ResourceExhausted => "RESOURCE_EXHAUSTED",
        Code::FailedPrecondition => "FAILED_PRECONDITION",
        Code::Aborted => "ABORTED",
        Code::OutOfRange => "OUT_OF_RANGE",
        Code::Unimplemented => "UNIMPLEMENTED",
        Code::Internal => "INTERNAL",
        Code::Unavailable => "UNAVAILABLE",
        Code::DataLoss => "DATA_LOSS",
        Code::Unauthenticated => "UNAUTHENTICATED",
    }
}
