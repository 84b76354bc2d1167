//! Spans that an OpenTelemetry SDK would export, as text.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::atomic::{AtomicIsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use opentelemetry::trace::Status;
use opentelemetry::{Context, Key, KeyValue, Value};
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::propagation::TraceContextPropagator;
use opentelemetry_sdk::trace::{Sampler, SdkTracerProvider, Span, SpanData, SpanProcessor};
use thalweg::channel::Lanes;
use thalweg::server::Service;
use thalweg::{Channel, Raw, Response, Server, Status as CallStatus, Streaming, Traces};

use super::{Echo, soon, start, until};

/// A client and a server that report to the same provider.
pub(crate) struct Traced {
    pub(crate) spans: Spans,
    pub(crate) target: String,
    pub(crate) channel: Channel,
}

impl Traced {
    pub(crate) async fn new() -> Self {
        Self::with(Spans::new(), Echo::default()).await
    }

    pub(crate) async fn with(spans: Spans, service: impl Service) -> Self {
        let target = start(Server::builder().add_service(service).traces(spans.traces())).await;
        let channel = Channel::builder(&target).lanes(Lanes::fixed(1)).traces(spans.traces());
        let channel = channel.connect().await.expect("a server");
        Self { spans, target, channel }
    }

    pub(crate) async fn check(&self, expected: &[&str]) {
        check(&self.spans, expected).await;
    }
}

const FIRST: &str = "previous-rpc-attempts=0 transparent-retry=false";
const RETRY: &str = "previous-rpc-attempts=0 transparent-retry=true";

/// Checks the spans: one line per span and event, where `FIRST` and `RETRY` stand for the attributes of attempts.
pub(crate) async fn check(spans: &Spans, expected: &[&str]) {
    let expected: Vec<String> =
        expected.iter().map(|line| line.replace("FIRST", FIRST).replace("RETRY", RETRY)).collect();
    let count = expected.iter().filter(|line| !line.trim_start().starts_with("- ")).count();
    let tree = soon(spans.tree(count)).await;
    // Abbreviates the error.
    let rejected = "the stream was reset with REFUSED_STREAM: the peer reset the stream (it accepts no more \
                   concurrent calls)";
    let tree = tree.replace(rejected, "REFUSED_STREAM");
    assert_eq!(tree.lines().collect::<Vec<_>>(), expected, "\n{tree}");
}

/// Reads a stream to its end.
pub(crate) async fn read_all(responses: Response<Streaming<Raw>>) -> Result<(), CallStatus> {
    let mut responses = responses.into_inner();
    while soon(responses.message()).await?.is_some() {}
    Ok(())
}

/// Returns the trace and the span of a request's `traceparent`.
pub(crate) fn traceparent(head: &str) -> (String, String) {
    let line = head.lines().find(|line| line.starts_with("traceparent")).expect("a traceparent");
    let mut parts = line.split('-').skip(1).map(str::to_owned);
    (parts.next().expect("a trace"), parts.next().expect("a span"))
}

/// A provider that keeps ended spans and counts open ones.
#[derive(Clone)]
pub(crate) struct Spans {
    pub(crate) provider: SdkTracerProvider,
    processor: TestProcessor,
}

#[derive(Clone, Default)]
struct TestProcessor {
    ended: Arc<Mutex<Vec<SpanData>>>,
    open: Arc<AtomicIsize>,
    span_hook: Arc<Mutex<Option<SpanHook>>>,
}

/// Side effect of a processor whenever a span starts or ends.
type SpanHook = Arc<dyn Fn() + Send + Sync>;

impl Spans {
    pub(crate) fn new() -> Self {
        Self::sampled_by(Sampler::AlwaysOn)
    }

    pub(crate) fn sampled_by(sampler: Sampler) -> Self {
        let processor = TestProcessor::default();
        let provider = SdkTracerProvider::builder().with_sampler(sampler);
        Self { provider: provider.with_span_processor(processor.clone()).build(), processor }
    }

    pub(crate) fn traces(&self) -> Traces {
        Traces::new(&self.provider, TraceContextPropagator::new())
    }

    /// Runs `hook` whenever a span starts or ends from now on.
    pub(crate) fn set_span_hook(&self, hook: impl Fn() + Send + Sync + 'static) {
        *self.processor.span_hook.lock().unwrap() = Some(Arc::new(hook));
    }

    /// Returns the number of open spans.
    pub(crate) fn open(&self) -> isize {
        self.processor.open.load(Ordering::SeqCst)
    }

    /// Returns the spans so far, once none is open.
    pub(crate) async fn ended(&self) -> Vec<SpanData> {
        until(|| self.open() == 0).await;
        self.processor.ended.lock().unwrap().clone()
    }

    /// Returns all spans as a tree, once `count` have ended and none is open. Children are in the order of their start.
    pub(crate) async fn tree(&self, count: usize) -> String {
        until(|| self.processor.ended.lock().unwrap().len() >= count).await;
        let mut spans = self.ended().await;
        spans.sort_by_key(|span| span.start_time);
        let known: Vec<_> = spans.iter().map(|span| span.span_context.span_id()).collect();
        let mut children: BTreeMap<_, Vec<&SpanData>> = BTreeMap::new();
        for span in &spans {
            let parent = known.iter().position(|id| *id == span.parent_span_id);
            children.entry(parent).or_default().push(span);
        }
        let mut text = String::new();
        let mut next: Vec<_> = children.remove(&None).unwrap_or_default();
        next.reverse();
        let mut stack: Vec<_> = next.into_iter().map(|span| (0, span)).collect();
        while let Some((depth, span)) = stack.pop() {
            describe(span, depth, &mut text);
            let position = known.iter().position(|id| *id == span.span_context.span_id());
            let below = children.remove(&position).unwrap_or_default();
            stack.extend(below.into_iter().rev().map(|span| (depth + 1, span)));
        }
        text
    }
}

/// Returns the server that an attempt was sent to, as `address:port`.
pub(crate) fn peer_of(span: &SpanData) -> Option<String> {
    let attribute = |key: &'static str| {
        let found = span.attributes.iter().find(|attribute| attribute.key == Key::from(key));
        found.map(|attribute| attribute.value.to_string())
    };
    Some(format!("{}:{}", attribute("network.peer.address")?, attribute("network.peer.port")?))
}

/// Writes `name KIND status attributes`, and a line for each event. Compressed sizes are only marked as such, since
/// they depend on the compressor. Attributes of the peer, whose port varies, are omitted: see [`peer_of`].
fn describe(span: &SpanData, depth: usize, out: &mut String) {
    let indent = "  ".repeat(depth);
    let status = match &span.status {
        Status::Unset => "unset".to_owned(),
        Status::Ok => "OK".to_owned(),
        Status::Error { description } => format!("[{description}]"),
    };
    let _ = write!(out, "{indent}{} {:?} {status}", span.name, span.span_kind);
    let is_of_peer = |attribute: &&KeyValue| attribute.key.as_str().starts_with("network.peer.");
    for attribute in span.attributes.iter().filter(|attribute| !is_of_peer(attribute)) {
        let _ = write!(out, " {}={}", attribute.key, attribute.value);
    }
    out.push('\n');
    for event in span.events.iter() {
        let _ = write!(out, "{indent}  - {}", event.name);
        let of = |key: &'static str| {
            let found = event.attributes.iter().find(|attribute| attribute.key == Key::from(key));
            found.map(|attribute| &attribute.value)
        };
        if let (Some(number), Some(size)) = (of("sequence-number"), of("message-size")) {
            let _ = write!(out, " {number}: {size}");
            if let (Some(Value::I64(compressed)), Value::I64(size)) = (of("message-size-compressed"), size) {
                assert!(compressed < size, "{compressed} of {size}");
                out.push_str(" compressed");
            }
        }
        out.push('\n');
    }
}

impl TestProcessor {
    fn run_span_hook(&self) {
        let span_hook = self.span_hook.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(span_hook) = span_hook {
            span_hook();
        }
    }
}

impl SpanProcessor for TestProcessor {
    fn on_start(&self, _: &mut Span, _: &Context) {
        self.open.fetch_add(1, Ordering::SeqCst);
        self.run_span_hook();
    }

    fn on_end(&self, span: SpanData) {
        self.run_span_hook();
        self.ended.lock().unwrap_or_else(PoisonError::into_inner).push(span);
        self.open.fetch_sub(1, Ordering::SeqCst);
    }

    fn force_flush(&self) -> OTelSdkResult {
        Ok(())
    }

    fn shutdown_with_timeout(&self, _: Duration) -> OTelSdkResult {
        Ok(())
    }
}

impl std::fmt::Debug for TestProcessor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TestProcessor").field("open", &self.open).finish_non_exhaustive()
    }
}
