//! Measurement of one call, on either side.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use http::HeaderMap;
use opentelemetry::{KeyValue, Value};
use tokio::time::Instant;

use super::client::{ClientMetrics, OTHER, Observed};
use super::client_trace::ClientTrace;
use super::instruments::{Each, server_calls};
use super::server_trace::ServerTrace;
use super::setup::Setup;
use super::span::Sizes;
use super::span_source::SpanSource;
use super::traces::Traces;
use super::unstarted_call::UnstartedCall;
use crate::status::{Code, Status};

/// Measurement of a call; empty if it is not measured. Clones measure the same call. If the last of them is dropped
/// before the end of the call, it was cancelled.
#[derive(Clone, Default)]
pub(crate) struct CallMeasure(Option<Arc<Measured>>);

struct Measured {
    side: Side,
    /// `grpc.method`.
    method: Value,
    started_at: Instant,
    /// Start of the current attempt, in nanoseconds after the start of the call.
    attempt_ns: AtomicU64,
    /// Bytes of the current attempt's messages.
    sent: AtomicU64,
    received: AtomicU64,
    /// Number of transparent retries.
    transparent_retries: AtomicU64,
    /// Number of retries by policy, and their backoff in nanoseconds.
    retries: AtomicU64,
    retry_delay_ns: AtomicU64,
    /// Hedged attempts besides the first.
    hedges: AtomicU64,
    /// The hedged attempt that determines the call's outcome, if it is not the first.
    winner: OnceLock<CallMeasure>,
    /// Whether this is one hedged attempt, not a call.
    is_hedge: bool,
    /// Whether the last attempt has ended, and the next one waits for its backoff.
    between_attempts: AtomicBool,
    is_over: AtomicBool,
    trace: Option<Trace>,
}

/// Side of the call, and its metrics.
enum Side {
    Client(Arc<ClientMetrics>),
    Server(Arc<Each>),
    /// Without metrics: the call is only traced.
    Uncounted,
}

enum Trace {
    Client(ClientTrace, Arc<Observed>),
    /// `counted` is the measurement by the server's metrics of the same call.
    Server {
        trace: Arc<ServerTrace>,
        counted: CallMeasure,
    },
    /// A server's call whose handler has not started.
    UnstartedCall(UnstartedCall),
}

/// Measurement of a server's calls; empty if they are not measured.
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

    /// Creates the measurement of a call that has arrived, to be [counted](CallMeasure::count) later. `method` is
    /// `package.Service/Method`, if the server has it. `span_source` returns the source of the call's span, if the call
    /// may end before a handler starts.
    pub(crate) fn call(
        &self,
        method: Option<&Arc<str>>,
        span_source: impl FnOnce() -> Option<Arc<dyn SpanSource>>,
    ) -> CallMeasure {
        let Some(calls) = &self.0 else { return CallMeasure(None) };
        let trace_of = |traces| Some(Trace::UnstartedCall(UnstartedCall::new(traces, span_source()?)));
        let trace = calls.traces.as_ref().and_then(trace_of);
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
    /// Starts a client's call and its first attempt.
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

    /// Adds `trace` to a server's call, to record its messages.
    pub(crate) fn traced(self, trace: &Arc<ServerTrace>) -> Self {
        let trace = Trace::Server { trace: Arc::clone(trace), counted: self };
        Self::begin(Side::Uncounted, OTHER.into(), Some(trace))
    }

    fn begin(side: Side, method: Value, trace: Option<Trace>) -> Self {
        Self::begin_as(side, method, trace, false)
    }

    fn begin_as(side: Side, method: Value, trace: Option<Trace>, is_hedge: bool) -> Self {
        Self(Some(Arc::new(Measured {
            side,
            method,
            started_at: Instant::now(),
            attempt_ns: AtomicU64::new(0),
            sent: AtomicU64::new(0),
            received: AtomicU64::new(0),
            transparent_retries: AtomicU64::new(0),
            retries: AtomicU64::new(0),
            retry_delay_ns: AtomicU64::new(0),
            hedges: AtomicU64::new(0),
            winner: OnceLock::new(),
            is_hedge,
            between_attempts: AtomicBool::new(false),
            is_over: AtomicBool::new(false),
            trace,
        })))
    }

    /// Returns whether the call is measured.
    #[inline]
    pub(crate) fn is_some(&self) -> bool {
        self.0.is_some()
    }

    /// Counts the start of a server's call. Like [`end`](Self::end), it runs user code and must not be called under a
    /// lock.
    pub(crate) fn count(&self) {
        let Some(measured) = &self.0 else { return };
        if let Side::Server(instruments) = &measured.side {
            instruments.started.add(1, &[KeyValue::new(METHOD, measured.method.clone())]);
        }
    }

    /// Counts sent messages, in bytes on the wire without prefixes.
    #[inline]
    pub(crate) fn sent(&self, bytes: usize) {
        if let Some(measured) = &self.0 {
            measured.sent.fetch_add(bytes as u64, Ordering::Relaxed);
        }
    }

    /// Like [`sent`](Self::sent), for received messages.
    #[inline]
    fn received(&self, bytes: usize) {
        if let Some(measured) = &self.0 {
            measured.received.fetch_add(bytes as u64, Ordering::Relaxed);
        }
    }

    /// Notes the start of a server's unary handler, whose request of `bytes` bytes has arrived.
    #[inline]
    pub(crate) fn handler_started(&self, bytes: usize) {
        self.received(bytes);
        if let Some(unstarted_call) = self.unstarted_call() {
            unstarted_call.set_started(true);
        }
    }

    /// Notes that the call was abandoned before its handler started.
    pub(crate) fn handler_not_started(&self) {
        if let Some(unstarted_call) = self.unstarted_call() {
            unstarted_call.set_started(false);
        }
    }

    /// Notes the status with which a server has refused the call before a handler started.
    pub(crate) fn refused(&self, status: &Status) {
        if let Some(unstarted_call) = self.unstarted_call() {
            unstarted_call.refused(status);
        }
    }

    /// Notes that a client's attempt is sent to `peer`. Runs user code.
    #[inline]
    pub(crate) fn sent_to(&self, peer: &str) {
        if let Some(trace) = self.client_trace() {
            trace.sent_to(peer);
        }
    }

    /// Counts one sent message of `wire` bytes, which has `plain` bytes uncompressed.
    #[inline]
    pub(crate) fn sent_message(&self, wire: usize, plain: impl FnOnce() -> usize) {
        if let Some(measured) = &self.0 {
            measured.sent.fetch_add(wire as u64, Ordering::Relaxed);
            match &measured.trace {
                None | Some(Trace::UnstartedCall(_)) => {}
                Some(Trace::Client(trace, _)) => trace.sent(Sizes::of(plain(), wire)),
                Some(Trace::Server { trace, counted }) => {
                    trace.sent(plain(), wire);
                    counted.sent(wire);
                }
            }
        }
    }

    /// Counts one received message of `wire` bytes. If it is compressed, [`decompressed`](Self::decompressed) reports
    /// its size later.
    #[inline]
    pub(crate) fn received_message(&self, wire: usize, is_compressed: bool) {
        if let Some(measured) = &self.0 {
            measured.received.fetch_add(wire as u64, Ordering::Relaxed);
            match &measured.trace {
                Some(Trace::Client(trace, _)) if !is_compressed => trace.received(Sizes::of(wire, wire)),
                None | Some(Trace::Client(..) | Trace::UnstartedCall(_)) => {}
                Some(Trace::Server { trace, counted }) => {
                    if !is_compressed {
                        trace.received(wire, wire);
                    }
                    counted.received(wire);
                }
            }
        }
    }

    /// Records the size of a compressed message that was received: `plain` bytes uncompressed.
    pub(crate) fn decompressed(&self, plain: usize, wire: usize) {
        match self.trace() {
            None | Some(Trace::UnstartedCall(_)) => {}
            Some(Trace::Client(trace, _)) => trace.received(Sizes::of(plain, wire)),
            Some(Trace::Server { trace, .. }) => trace.received(plain, wire),
        }
    }

    /// Returns whether the sizes of compressed messages are needed.
    #[inline]
    pub(crate) fn is_traced(&self) -> bool {
        self.trace().is_some()
    }

    /// Returns a client's request metadata with the trace context of its first attempt; `None` if it is not traced.
    #[inline]
    pub(crate) fn inject(&self, metadata: &HeaderMap) -> Option<Box<HeaderMap>> {
        Some(Box::new(self.client_trace()?.inject(metadata)))
    }

    /// Like [`inject`](Self::inject), for a retry.
    #[inline]
    pub(crate) fn inject_again(&self) -> Option<Box<HeaderMap>> {
        Some(Box::new(self.client_trace()?.injected()))
    }

    /// Notes that a client's attempt has waited for a connection or a free stream.
    pub(crate) fn waited(&self) {
        if let Some(Trace::Client(trace, observed)) = self.trace() {
            trace.waited(observed.resolved_at());
        }
    }

    /// Keeps the sizes of sent messages from now on, since a retry would send them again.
    pub(crate) fn keep_sent(&self) {
        if let Some(trace) = self.client_trace() {
            trace.keep_sent();
        }
    }

    /// Drops the sizes kept for a retry.
    pub(crate) fn drop_sent(&self) {
        if let Some(trace) = self.client_trace() {
            trace.drop_sent();
        }
    }

    /// Records the outcome that a server's handler has returned, if its calls are traced.
    pub(crate) fn note_outcome(&self, outcome: Result<(), &Status>) {
        if let Some(trace) = self.server_trace() {
            trace.note_outcome(outcome);
        }
    }

    #[inline]
    pub(crate) fn server_trace(&self) -> Option<&ServerTrace> {
        match self.trace()? {
            Trace::Server { trace, .. } => Some(trace),
            Trace::Client(..) | Trace::UnstartedCall(_) => None,
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
            Trace::Server { .. } | Trace::UnstartedCall(_) => None,
        }
    }

    #[inline]
    fn unstarted_call(&self) -> Option<&UnstartedCall> {
        match self.trace()? {
            Trace::UnstartedCall(unstarted_call) => Some(unstarted_call),
            Trace::Client(..) | Trace::Server { .. } => None,
        }
    }

    /// Ends a client's attempt with `status`, before another one. Returns the number of bytes that were sent.
    pub(crate) fn end_attempt(&self, status: &Status) -> usize {
        let Some(measured) = &self.0 else { return 0 };
        measured.record_attempt(status.code());
        measured.between_attempts.store(true, Ordering::Relaxed);
        measured.attempt_ns.store(measured.started_at.elapsed().as_nanos() as u64, Ordering::Relaxed);
        let sent = measured.sent.swap(0, Ordering::Relaxed);
        measured.received.store(0, Ordering::Relaxed);
        if let Some(Trace::Client(trace, _)) = &measured.trace {
            trace.end_attempt(status);
        }
        sent as usize
    }

    /// Starts a client's next attempt. `previous` is the number of earlier attempts by policy.
    pub(crate) fn start_attempt(&self, previous: u32, is_transparent: bool) {
        let Some(measured) = &self.0 else { return };
        let now_ns = measured.started_at.elapsed().as_nanos() as u64;
        let ended_ns = measured.attempt_ns.swap(now_ns, Ordering::Relaxed);
        measured.between_attempts.store(false, Ordering::Relaxed);
        if is_transparent {
            measured.transparent_retries.fetch_add(1, Ordering::Relaxed);
        } else {
            measured.retries.fetch_add(1, Ordering::Relaxed);
            measured.retry_delay_ns.fetch_add(now_ns.saturating_sub(ended_ns), Ordering::Relaxed);
        }
        if let Side::Client(metrics) = &measured.side {
            metrics.attempt_started(KeyValue::new(METHOD, measured.method.clone()));
        }
        if let Some(Trace::Client(trace, _)) = &measured.trace {
            trace.start_attempt(previous, is_transparent);
        }
    }

    /// Starts another attempt of a client's call while others are under way. `previous` is the number of earlier ones.
    /// The result measures this attempt alone, until its end.
    pub(crate) fn start_hedge(&self, previous: u32) -> Self {
        let Some(measured) = &self.0 else { return Self(None) };
        measured.hedges.fetch_add(1, Ordering::Relaxed);
        let side = match &measured.side {
            Side::Client(metrics) => {
                metrics.attempt_started(KeyValue::new(METHOD, measured.method.clone()));
                Side::Client(Arc::clone(metrics))
            }
            Side::Server(_) | Side::Uncounted => Side::Uncounted,
        };
        let trace = match &measured.trace {
            Some(Trace::Client(trace, observed)) => {
                Some(Trace::Client(trace.hedge(previous), Arc::clone(observed)))
            }
            Some(Trace::Server { .. } | Trace::UnstartedCall(_)) | None => None,
        };
        Self::begin_as(side, measured.method.clone(), trace, true)
    }

    /// Notes that this hedged attempt has sent all the messages that `call` counts as sent.
    pub(crate) fn sent_as(&self, call: &Self) {
        let (Some(measured), Some(call)) = (&self.0, &call.0) else { return };
        measured.sent.store(call.sent.load(Ordering::Relaxed), Ordering::Relaxed);
        if let (Some(Trace::Client(trace, _)), Some(Trace::Client(call, _))) = (&measured.trace, &call.trace)
        {
            trace.sent_as(call);
        }
    }

    /// Notes that a hedged attempt determines the call's outcome. The first attempt counts as cancelled, unless it has
    /// ended.
    pub(crate) fn adopt(&self, hedge: &Self) {
        let (Some(measured), Some(winner)) = (&self.0, &hedge.0) else { return };
        if !measured.between_attempts.load(Ordering::Relaxed) {
            self.end_attempt(&Status::new(Code::Cancelled, "another attempt has responded"));
        }
        for (of_call, of_winner) in [(&measured.sent, &winner.sent), (&measured.received, &winner.received)] {
            of_call.store(of_winner.load(Ordering::Relaxed), Ordering::Relaxed);
        }
        if let (Some(Trace::Client(trace, _)), Some(Trace::Client(winner, _))) =
            (&measured.trace, &winner.trace)
        {
            trace.adopt(winner);
        }
        // Only one attempt wins.
        let _ = measured.winner.set(hedge.clone());
    }

    /// Ends the call. Only the first end counts.
    #[inline]
    pub(crate) fn end(&self, code: Code) {
        if let Some(measured) = &self.0 {
            measured.end(code, None);
        }
    }

    /// Like [`end`](Self::end), with an error status.
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
        if let Some(CallMeasure(Some(winner))) = self.winner.get() {
            for (of_winner, of_call) in [(&winner.sent, &self.sent), (&winner.received, &self.received)] {
                of_winner.store(of_call.load(Ordering::Relaxed), Ordering::Relaxed);
            }
            winner.end(code, status);
        } else if !self.between_attempts.load(Ordering::Relaxed) {
            self.record_attempt(code);
        }
        if let Side::Client(metrics) = &self.side
            && !self.is_hedge
        {
            let labels = self.labels(code, metrics.target.clone());
            metrics.instruments.call_duration.record(self.started_at.elapsed().as_secs_f64(), &labels);
            // Calls without retries are not recorded (gRFC A96).
            let [method, target, _] = labels;
            let labels = [method, target];
            let transparent = self.transparent_retries.load(Ordering::Relaxed);
            if transparent > 0 {
                metrics.instruments.transparent_retries.record(transparent, &labels);
            }
            let hedges = self.hedges.load(Ordering::Relaxed);
            if hedges > 0 {
                metrics.instruments.hedges.record(hedges, &labels);
            }
            let retries = self.retries.load(Ordering::Relaxed);
            if retries > 0 {
                let delay_s = self.retry_delay_ns.load(Ordering::Relaxed) as f64 / 1e9;
                metrics.instruments.retries.record(retries, &labels);
                metrics.instruments.retry_delay.record(delay_s, &labels);
            }
        }
        match &self.trace {
            Some(Trace::Client(trace, _)) => match status {
                Some(status) => trace.end(Err(status)),
                None if code == Code::Ok => trace.end(Ok(())),
                None => trace.end(Err(&Status::new(code, ""))),
            },
            Some(Trace::UnstartedCall(unstarted_call)) => unstarted_call.end(),
            None | Some(Trace::Server { .. }) => {}
        }
    }

    fn labels(&self, code: Code, target: KeyValue) -> [KeyValue; 3] {
        [KeyValue::new(METHOD, self.method.clone()), target, KeyValue::new(STATUS, code.name())]
    }

    fn record_attempt(&self, code: Code) {
        let (sent, received) = (self.sent.load(Ordering::Relaxed), self.received.load(Ordering::Relaxed));
        let attempt_s = self.attempt_ns.load(Ordering::Relaxed) as f64 / 1e9;
        let took_s = (self.started_at.elapsed().as_secs_f64() - attempt_s).max(0.0);
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
