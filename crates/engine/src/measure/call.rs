//! One call, measured from either side.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use http::HeaderMap;
use opentelemetry::{KeyValue, Value};
use tokio::time::Instant;

use super::called::Called;
use super::client::{ClientMetrics, OTHER, Observed};
use super::client_trace::ClientTrace;
use super::instruments::{Each, server_calls};
use super::server_trace::ServerTrace;
use super::setup::Setup;
use super::span::Sizes;
use super::traces::Traces;
use super::unbegun::Unbegun;
use crate::status::{Code, Status};

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
    /// How often the call was retried by itself.
    retries: AtomicU64,
    is_over: AtomicBool,
    trace: Option<Trace>,
}

/// Whose call it is, and what counts it.
enum Side {
    Client(Arc<ClientMetrics>),
    Server(Arc<Each>),
    /// It is only traced.
    Uncounted,
}

enum Trace {
    Client(ClientTrace, Arc<Observed>),
    /// `counted` is what the server's metrics have of the same call.
    Server {
        trace: Arc<ServerTrace>,
        counted: CallMeasure,
    },
    /// A server's call whose handler has not begun.
    Unbegun(Unbegun),
}

/// What is measured of a server's calls, if anything is.
#[derive(Clone, Debug)]
pub(crate) struct ServerMeasure(Option<Arc<ServerCalls>>);

#[derive(Debug)]
struct ServerCalls {
    each: Option<Arc<Each>>,
    traces: Option<Traces>,
}

impl ServerMeasure {
    pub(crate) fn new(setup: &Setup) -> Self {
        let each = setup.metrics.as_ref().map(|metrics| Arc::new(server_calls(&metrics.meter)));
        let traces = setup.traces.clone();
        Self((each.is_some() || traces.is_some()).then(|| Arc::new(ServerCalls { each, traces })))
    }

    pub(crate) fn is_traced(&self) -> bool {
        self.0.as_ref().is_some_and(|calls| calls.traces.is_some())
    }

    /// A call has come, which is yet to be [counted](CallMeasure::count). `method` is `package.Service/Method`, if the
    /// server has it; `unbegun` tells what is called, if the call may end before a handler has it.
    pub(crate) fn call(
        &self,
        method: Option<&Arc<str>>,
        unbegun: impl FnOnce() -> Option<Arc<dyn Called>>,
    ) -> CallMeasure {
        let Some(calls) = &self.0 else { return CallMeasure(None) };
        let unbegun = |traces| Some(Trace::Unbegun(Unbegun::new(traces, unbegun()?)));
        let trace = calls.traces.as_ref().and_then(unbegun);
        let side = match &calls.each {
            Some(each) => Side::Server(Arc::clone(each)),
            None if trace.is_some() => Side::Uncounted,
            None => return CallMeasure(None),
        };
        let method: Value = method.map_or(OTHER.into(), |method| Arc::clone(method).into());
        CallMeasure::begin(side, method, trace)
    }
}

const METHOD: &str = "grpc.method";
const STATUS: &str = "grpc.status";

impl CallMeasure {
    /// A client's call, and its first attempt.
    pub(super) fn of_client(observed: &Arc<Observed>, method: Value, path: &str) -> Self {
        let side = match &observed.metrics {
            None => Side::Uncounted,
            Some(metrics) => {
                metrics.attempt_started(KeyValue::new(METHOD, method.clone()));
                Side::Client(Arc::clone(metrics))
            }
        };
        let trace = observed.traces.as_ref().map(|traces| ClientTrace::begin(traces, path));
        Self::begin(side, method, trace.map(|trace| Trace::Client(trace, Arc::clone(observed))))
    }

    /// The same call at a server, whose messages `trace` is told of.
    pub(crate) fn traced(self, trace: &Arc<ServerTrace>) -> Self {
        let trace = Trace::Server { trace: Arc::clone(trace), counted: self };
        Self::begin(Side::Uncounted, OTHER.into(), Some(trace))
    }

    fn begin(side: Side, method: Value, trace: Option<Trace>) -> Self {
        Self(Some(Arc::new(Measured {
            side,
            method,
            begun: Instant::now(),
            attempt_ns: AtomicU64::new(0),
            sent: AtomicU64::new(0),
            received: AtomicU64::new(0),
            retries: AtomicU64::new(0),
            is_over: AtomicBool::new(false),
            trace,
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
    fn received(&self, bytes: usize) {
        if let Some(measured) = &self.0 {
            measured.received.fetch_add(bytes as u64, Ordering::Relaxed);
        }
    }

    /// The request of a server's unary call, of so many bytes, is there: its handler begins.
    #[inline]
    pub(crate) fn begun(&self, bytes: usize) {
        self.received(bytes);
        if let Some(unbegun) = self.unbegun() {
            unbegun.set_begun(true);
        }
    }

    /// The call was given up before its handler could begin.
    pub(crate) fn not_begun(&self) {
        if let Some(unbegun) = self.unbegun() {
            unbegun.set_begun(false);
        }
    }

    /// A server has refused the call with this, before a handler had it.
    pub(crate) fn refused(&self, status: &Status) {
        if let Some(unbegun) = self.unbegun() {
            unbegun.refused(status);
        }
    }

    /// One message of `wire` bytes has been handed over, which has `plain` bytes when it is not compressed.
    #[inline]
    pub(crate) fn sent_message(&self, wire: usize, plain: impl FnOnce() -> usize) {
        if let Some(measured) = &self.0 {
            measured.sent.fetch_add(wire as u64, Ordering::Relaxed);
            match &measured.trace {
                None | Some(Trace::Unbegun(_)) => {}
                Some(Trace::Client(trace, _)) => trace.sent(Sizes::of(plain(), wire)),
                Some(Trace::Server { trace, counted }) => {
                    trace.sent(plain(), wire);
                    counted.sent(wire);
                }
            }
        }
    }

    /// One message of `wire` bytes has come. Of one that is compressed its size is told of later
    /// ([`decompressed`](Self::decompressed)).
    #[inline]
    pub(crate) fn received_message(&self, wire: usize, is_compressed: bool) {
        if let Some(measured) = &self.0 {
            measured.received.fetch_add(wire as u64, Ordering::Relaxed);
            match &measured.trace {
                Some(Trace::Client(trace, _)) if !is_compressed => trace.received(Sizes::of(wire, wire)),
                None | Some(Trace::Client(..) | Trace::Unbegun(_)) => {}
                Some(Trace::Server { trace, counted }) => {
                    if !is_compressed {
                        trace.received(wire, wire);
                    }
                    counted.received(wire);
                }
            }
        }
    }

    /// A message that came compressed has `plain` bytes.
    pub(crate) fn decompressed(&self, plain: usize, wire: usize) {
        match self.trace() {
            None | Some(Trace::Unbegun(_)) => {}
            Some(Trace::Client(trace, _)) => trace.received(Sizes::of(plain, wire)),
            Some(Trace::Server { trace, .. }) => trace.received(plain, wire),
        }
    }

    /// Whether the sizes of messages are wanted that come compressed.
    #[inline]
    pub(crate) fn is_traced(&self) -> bool {
        self.trace().is_some()
    }

    /// The metadata of a client's request with what its first attempt propagates; `None` if that is nothing.
    #[inline]
    pub(crate) fn inject(&self, metadata: &HeaderMap) -> Option<Box<HeaderMap>> {
        Some(Box::new(self.client_trace()?.inject(metadata)))
    }

    /// As [`inject`](Self::inject), for a retry.
    #[inline]
    pub(crate) fn inject_again(&self) -> Option<Box<HeaderMap>> {
        Some(Box::new(self.client_trace()?.injected()))
    }

    /// A client's attempt has waited for a connection, or for a free stream of one.
    pub(crate) fn waited(&self) {
        if let Some(Trace::Client(trace, observed)) = self.trace() {
            trace.waited(observed.resolved_at());
        }
    }

    /// What a client's attempt sends from now on a retry would send again.
    pub(crate) fn keep_sent(&self) {
        if let Some(trace) = self.client_trace() {
            trace.keep_sent();
        }
    }

    /// There will be no retry.
    pub(crate) fn drop_sent(&self) {
        if let Some(trace) = self.client_trace() {
            trace.drop_sent();
        }
    }

    /// A server's handler has answered with this, where its calls are traced.
    pub(crate) fn answered(&self, outcome: Result<(), &Status>) {
        if let Some(trace) = self.server_trace() {
            trace.answered(outcome);
        }
    }

    #[inline]
    pub(crate) fn server_trace(&self) -> Option<&ServerTrace> {
        match self.trace()? {
            Trace::Server { trace, .. } => Some(trace),
            Trace::Client(..) | Trace::Unbegun(_) => None,
        }
    }

    #[inline]
    fn trace(&self) -> Option<&Trace> {
        self.0.as_ref()?.trace.as_ref()
    }

    #[inline]
    fn client_trace(&self) -> Option<&ClientTrace> {
        match self.trace()? {
            Trace::Client(trace, _) => Some(trace),
            Trace::Server { .. } | Trace::Unbegun(_) => None,
        }
    }

    #[inline]
    fn unbegun(&self) -> Option<&Unbegun> {
        match self.trace()? {
            Trace::Unbegun(unbegun) => Some(unbegun),
            Trace::Client(..) | Trace::Server { .. } => None,
        }
    }

    /// A client's attempt has ended with this, and another begins. How many bytes it had sent.
    pub(crate) fn again(&self, status: &Status) -> usize {
        let Some(measured) = &self.0 else { return 0 };
        measured.retries.fetch_add(1, Ordering::Relaxed);
        measured.record_attempt(status.code());
        measured.attempt_ns.store(measured.begun.elapsed().as_nanos() as u64, Ordering::Relaxed);
        let sent = measured.sent.swap(0, Ordering::Relaxed);
        measured.received.store(0, Ordering::Relaxed);
        if let Side::Client(metrics) = &measured.side {
            metrics.attempt_started(KeyValue::new(METHOD, measured.method.clone()));
        }
        if let Some(Trace::Client(trace, _)) = &measured.trace {
            trace.again(status);
        }
        sent as usize
    }

    /// The call has ended with this. Only the first end counts.
    #[inline]
    pub(crate) fn end(&self, code: Code) {
        if let Some(measured) = &self.0 {
            measured.end(code, None);
        }
    }

    /// As [`end`](Self::end), with a status that is an error.
    pub(crate) fn fail(&self, status: &Status) {
        if let Some(measured) = &self.0 {
            measured.end(status.code(), Some(status));
        }
    }
}

impl Measured {
    fn end(&self, code: Code, status: Option<&Status>) {
        if self.is_over.swap(true, Ordering::Relaxed) {
            return;
        }
        self.record_attempt(code);
        if let Side::Client(metrics) = &self.side {
            let labels = self.labels(code, metrics.target.clone());
            metrics.instruments.call_duration.record(self.begun.elapsed().as_secs_f64(), &labels);
            // gRFC A96: of a call without retries none is reported.
            let retries = self.retries.load(Ordering::Relaxed);
            if retries > 0 {
                let [method, target, _] = labels;
                metrics.instruments.transparent_retries.record(retries, &[method, target]);
            }
        }
        match &self.trace {
            Some(Trace::Client(trace, _)) => match status {
                Some(status) => trace.end(Err(status)),
                None if code == Code::Ok => trace.end(Ok(())),
                None => trace.end(Err(&Status::new(code, ""))),
            },
            Some(Trace::Unbegun(unbegun)) => unbegun.end(),
            None | Some(Trace::Server { .. }) => {}
        }
    }

    fn labels(&self, code: Code, target: KeyValue) -> [KeyValue; 3] {
        [KeyValue::new(METHOD, self.method.clone()), target, KeyValue::new(STATUS, code.name())]
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
            Side::Uncounted => {}
            Side::Server(each) => {
                let method = KeyValue::new(METHOD, self.method.clone());
                record(each, &[method, KeyValue::new(STATUS, code.name())]);
            }
        }
    }
}

impl Drop for Measured {
    fn drop(&mut self) {
        self.end(Code::Cancelled, None);
    }
}

impl fmt::Debug for CallMeasure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("CallMeasure").field(&self.0.is_some()).finish()
    }
}
