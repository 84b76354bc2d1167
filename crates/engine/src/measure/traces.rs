//! Trace settings of an application: [`Traces`].

use std::fmt;
use std::sync::Arc;

use http::{HeaderMap, HeaderName, HeaderValue};
use opentelemetry::global::{self, BoxedSpan, BoxedTracer, ObjectSafeTracerProvider};
use opentelemetry::propagation::{Extractor, Injector, TextMapPropagator};
use opentelemetry::trace::{SpanBuilder, SpanKind, TraceContextExt, Tracer};
use opentelemetry::{Context, InstrumentationScope, KeyValue};

/// OpenTelemetry traces of the calls of a channel or a server; with the feature `opentelemetry`.
///
/// Spans, attributes and events are those of gRFC [A72]. A client has `Sent.package.Service.Method` for a call and
/// `Attempt.package.Service.Method` for each attempt, a server `Recv.package.Service.Method`. The propagator carries
/// the context in the metadata. Off by default, at no cost.
///
/// A client's call is a child of the context that is current when its future is first polled
/// ([`opentelemetry::Context::current`]). The server's context is current while a handler, or its response stream, is
/// polled, so calls made there continue the trace.
///
/// [A72]: https://github.com/grpc/proposal/blob/master/A72-open-telemetry-tracing.md
#[derive(Clone)]
pub struct Traces(Arc<Tracing>);

struct Tracing {
    tracer: BoxedTracer,
    propagator: Propagator,
}

enum Propagator {
    Custom(Box<dyn TextMapPropagator + Send + Sync>),
    /// The global propagator at the start of each call.
    Global,
}

impl Traces {
    /// Uses a tracer of this provider, named `thalweg` with this crate's version. `propagator` writes to the metadata:
    /// W3C's `traceparent` and `tracestate` with the SDK's `TraceContextPropagator`, and baggage as well with a
    /// `TextMapCompositePropagator` of it and the `BaggagePropagator`.
    pub fn new(
        provider: &dyn ObjectSafeTracerProvider,
        propagator: impl TextMapPropagator + Send + Sync + 'static,
    ) -> Self {
        Self::with(provider, Propagator::Custom(Box::new(propagator)))
    }

    /// Uses the global tracer provider and propagator. Both do nothing until an application sets them: the provider
    /// before this call, the propagator at any time.
    pub fn global() -> Self {
        Self::with(&global::tracer_provider(), Propagator::Global)
    }

    fn with(provider: &dyn ObjectSafeTracerProvider, propagator: Propagator) -> Self {
        let scope = InstrumentationScope::builder("thalweg").with_version(env!("CARGO_PKG_VERSION"));
        let tracer = BoxedTracer::new(provider.boxed_tracer(scope.build()));
        Self(Arc::new(Tracing { tracer, propagator }))
    }

    /// Returns `parent` with a new span.
    pub(super) fn start(
        &self,
        name: String,
        kind: SpanKind,
        attributes: Vec<KeyValue>,
        parent: &Context,
    ) -> Context {
        let builder = SpanBuilder::from_name(name).with_kind(kind).with_attributes(attributes);
        let span: BoxedSpan = self.0.tracer.build_with_context(builder, parent);
        parent.with_span(span)
    }

    /// Writes the context into the metadata of a request.
    pub(super) fn inject(&self, context: &Context, metadata: &mut HeaderMap) {
        let mut carrier = Carrier(metadata);
        match &self.0.propagator {
            Propagator::Custom(propagator) => propagator.inject_context(context, &mut carrier),
            Propagator::Global => {
                global::get_text_map_propagator(|propagator| {
                    propagator.inject_context(context, &mut carrier);
                });
            }
        }
    }

    /// Returns the context in the metadata of a request.
    pub(super) fn extract(&self, metadata: &HeaderMap) -> Context {
        let (carrier, current) = (Received(metadata), Context::current());
        match &self.0.propagator {
            Propagator::Custom(propagator) => propagator.extract_with_context(&current, &carrier),
            Propagator::Global => global::get_text_map_propagator(|propagator| {
                propagator.extract_with_context(&current, &carrier)
            }),
        }
    }
}

impl fmt::Debug for Traces {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Traces").finish_non_exhaustive()
    }
}

/// Returns the name of a span for a method's path: `Sent.package.Service.Method`.
pub(super) fn span_name(prefix: &str, path: &str) -> String {
    let path = path.trim_start_matches('/');
    let mut name = String::with_capacity(prefix.len() + 1 + path.len());
    name.push_str(prefix);
    for part in path.split('/') {
        name.push('.');
        name.push_str(part);
    }
    name
}

/// Metadata of a request to send. Leaves out invalid keys and values, and keys reserved by HTTP/2 and gRPC.
struct Carrier<'a>(&'a mut HeaderMap);

impl Injector for Carrier<'_> {
    fn set(&mut self, key: &str, value: String) {
        if key.starts_with("grpc-") && key != GRPC_TRACE_BIN {
            return;
        }
        if let (Ok(key), Ok(value)) = (HeaderName::try_from(key), HeaderValue::try_from(value)) {
            self.0.insert(key, value);
        }
    }
}

/// Key of OpenCensus; its value is in Base64, as on the wire.
const GRPC_TRACE_BIN: &str = "grpc-trace-bin";

/// Metadata of a received request.
struct Received<'a>(&'a HeaderMap);

impl Extractor for Received<'_> {
    fn get(&self, key: &str) -> Option<&str> {
        self.0.get(key)?.to_str().ok()
    }

    fn keys(&self) -> Vec<&str> {
        self.0.keys().map(HeaderName::as_str).collect()
    }

    fn get_all(&self, key: &str) -> Option<Vec<&str>> {
        let all: Vec<&str> = self.0.get_all(key).iter().filter_map(|value| value.to_str().ok()).collect();
        (!all.is_empty()).then_some(all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_dots() {
        assert_eq!(span_name("Sent", "/a.b.Service/Method"), "Sent.a.b.Service.Method");
        assert_eq!(span_name("Recv", "no path"), "Recv.no path");
    }

    #[test]
    fn invalid_header_values_are_left_out() {
        let mut metadata = HeaderMap::new();
        let mut carrier = Carrier(&mut metadata);
        for (key, value) in [
            ("traceparent", "1"),
            ("traceparent", "2"),
            ("grpc-timeout", "1S"),
            (GRPC_TRACE_BIN, "AAA"),
            (":path", "/"),
            ("x y", "1"),
            ("x", "\n"),
        ] {
            carrier.set(key, value.to_owned());
        }
        let received = Received(&metadata);
        let mut keys = received.keys();
        keys.sort_unstable();
        assert_eq!(keys, [GRPC_TRACE_BIN, "traceparent"]);
        assert_eq!(received.get("TraceParent"), Some("2"));
        assert_eq!(received.get_all("traceparent"), Some(vec!["2"]));
        assert_eq!(received.get_all("tracestate"), None);
    }
}
