//! Trace context: across processes, and within handlers.

use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{self, Poll};

use opentelemetry::baggage::BaggageExt;
use opentelemetry::propagation::TextMapCompositePropagator;
use opentelemetry::trace::{FutureExt, TraceContextExt, Tracer, TracerProvider};
use opentelemetry::{Context, KeyValue};
use opentelemetry_sdk::propagation::{BaggagePropagator, TraceContextPropagator};
use opentelemetry_sdk::trace::Sampler;
use thalweg::interceptor::{Call, Next};
use thalweg::server::{Methods, Service};
use thalweg::{
    CallOptions, Channel, Code, Method, Raw, Request, Response, Server, ServiceOptions, Status, Traces,
};
use thalweg_engine::http2::frame::Kind;

use crate::support::peer::{OK, Peer, channel_to_test};
use crate::support::spans::{Spans, Traced, check, read_all, traceparent};
use crate::support::{Echo, echo, raw, soon, start};

static RELAY_UNARY: Method = Method::new("/test.Relay/Unary");
static RELAY_STREAM: Method = Method::new("/test.Relay/Stream");

/// Calls another service for each call, and for each message of its stream.
struct Relay {
    behind: Channel,
    /// The received `user` baggage.
    users: Arc<Mutex<Vec<String>>>,
}

impl Service for Relay {
    const NAME: &'static str = "test.Relay";

    fn register(self, methods: &mut Methods<'_>) {
        let (service, options) = (Arc::new(self), ServiceOptions::default());
        methods.unary("Unary", &service, &options, |relay: Arc<Self>, request: Request<Raw>| async move {
            if let Some(user) = Context::current().baggage().get("user") {
                relay.users.lock().unwrap().push(user.to_string());
            }
            tokio::task::yield_now().await;
            echo(&relay.behind, request.into_inner()).await.map(Response::new)
        });
        methods.server_streaming("Stream", &service, &options, |relay: Arc<Self>, request: Request<Raw>| {
            let message = request.into_inner();
            async move { Ok(Response::new(Relayed { relay, message, call: None })) }
        });
    }
}

/// A stream of one message, fetched when it is polled.
struct Relayed {
    relay: Arc<Relay>,
    message: Raw,
    call: Option<Calling>,
}

type Calling = Pin<Box<dyn Future<Output = Result<Raw, Status>> + Send>>;

impl thalweg::Stream for Relayed {
    type Item = Result<Raw, Status>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut task::Context<'_>) -> Poll<Option<Self::Item>> {
        let (relay, message) = (Arc::clone(&self.relay), self.message.clone());
        if message.0.is_empty() {
            return Poll::Ready(None);
        }
        let call =
            self.call.get_or_insert_with(|| Box::pin(async move { echo(&relay.behind, message).await }));
        let polled = call.as_mut().poll(cx).map(Some);
        if polled.is_ready() {
            self.message = raw("");
        }
        polled
    }
}

#[tokio::test]
async fn calls_in_handler_continue_its_trace() {
    let spans = Spans::new();
    let behind = Traced::with(spans.clone(), Echo::default()).await;
    let relay = Relay { behind: behind.channel.clone(), users: Arc::default() };
    let front = Traced::with(spans.clone(), relay).await;
    let options = CallOptions::default();
    let root = spans.provider.tracer("test").start("the application");
    let root = Context::current_with_span(root);
    let calls = async {
        let response = front.channel.unary::<_, Raw>(&RELAY_UNARY, Request::new(raw("a")), &options).await;
        response.expect("an echo");
        let responses =
            front.channel.server_streaming(&RELAY_STREAM, Request::new(raw("bc")), &options).await;
        read_all(responses.expect("a stream")).await.expect("a message");
    };
    calls.with_context(root.clone()).await;
    root.span().end();
    front
        .check(&[
            "the application Internal unset",
            "  Sent.test.Relay.Unary Client OK",
            "    Attempt.test.Relay.Unary Internal OK FIRST",
            "      - Outbound message 0: 1",
            "      - Inbound message 0: 1",
            "      Recv.test.Relay.Unary Server OK",
            "        - Inbound message 0: 1",
            "        - Outbound message 0: 1",
            "        Sent.test.Echo.Echo Client OK",
            "          Attempt.test.Echo.Echo Internal OK FIRST",
            "            - Outbound message 0: 1",
            "            - Inbound message 0: 1",
            "            Recv.test.Echo.Echo Server OK",
            "              - Inbound message 0: 1",
            "              - Outbound message 0: 1",
            "  Sent.test.Relay.Stream Client OK",
            "    Attempt.test.Relay.Stream Internal OK FIRST",
            "      - Outbound message 0: 2",
            "      - Inbound message 0: 2",
            "      Recv.test.Relay.Stream Server OK",
            "        - Inbound message 0: 2",
            "        - Outbound message 0: 2",
            "        Sent.test.Echo.Echo Client OK",
            "          Attempt.test.Echo.Echo Internal OK FIRST",
            "            - Outbound message 0: 2",
            "            - Inbound message 0: 2",
            "            Recv.test.Echo.Echo Server OK",
            "              - Inbound message 0: 2",
            "              - Outbound message 0: 2",
        ])
        .await;
}

#[tokio::test]
async fn trace_state_and_baggage_propagate() {
    let spans = Spans::new();
    let propagator = || {
        TextMapCompositePropagator::new(vec![
            Box::new(TraceContextPropagator::new()),
            Box::new(BaggagePropagator::new()),
        ])
    };
    let traces = Traces::new(&spans.provider, propagator());
    let (builder, mut accepted) = channel_to_test();
    let behind = builder.traces(traces.clone()).connect_lazy().expect("a target");
    let users = Arc::default();
    let relay = Relay { behind, users: Arc::clone(&users) };
    let target = start(Server::builder().add_service(relay).traces(traces)).await;
    // A client of another implementation: it has no spans, but sends a parent.
    let client = Channel::builder(&target).connect().await.expect("a server");
    let mut request = Request::new(raw("a"));
    let trace = "0af7651916cd43dd8448eb211c80319c";
    let metadata = request.metadata_mut();
    metadata.insert("traceparent", format!("00-{trace}-b7ad6b7169203331-01").parse().unwrap());
    metadata.insert("tracestate", "congo=t61rcWkgMzE".parse().unwrap());
    metadata.insert("baggage", "user=ada".parse().unwrap());
    let call =
        tokio::spawn(
            async move { client.unary::<_, Raw>(&RELAY_UNARY, request, &CallOptions::default()).await },
        );
    let mut peer = Peer::server(soon(accepted.recv()).await.expect("it connects"), &[]).await;
    let headers = soon(peer.next_of(Kind::Headers)).await;
    assert_eq!(traceparent(&headers.text()).0, trace);
    assert!(headers.text().contains("congo=t61rcWkgMzE"), "{}", headers.text());
    assert!(headers.text().contains("user=ada"), "{}", headers.text());
    peer.headers(headers.stream, true, OK).send().await;
    soon(call).await.expect("no panic").expect_err("it got no message");
    assert_eq!(*users.lock().unwrap(), ["ada"]);
    let spans = spans.ended().await;
    let received = spans.iter().find(|span| span.name == "Recv.test.Relay.Unary").expect("its span");
    assert_eq!(received.parent_span_id.to_string(), "b7ad6b7169203331");
    assert!(received.parent_span_is_remote);
}

#[tokio::test]
async fn unsampled_context_propagates() {
    let spans = Spans::sampled_by(Sampler::ParentBased(Box::new(Sampler::AlwaysOff)));
    let recorded = Arc::new(Mutex::new(Vec::new()));
    let record_context = Arc::clone(&recorded);
    let inspect = move |call: Call, next: Next| {
        let context = Context::current().span().span_context().clone();
        record_context.lock().unwrap().push((context.trace_id(), context.is_sampled(), context.is_valid()));
        next.run(call)
    };
    let server = Server::builder().add_service(Echo::default()).traces(spans.traces()).interceptor(inspect);
    let target = start(server).await;
    let channel = Channel::builder(&target).traces(spans.traces()).connect().await.expect("a server");
    echo(&channel, raw("not sampled")).await.expect("an echo");
    // An application with its own sampling.
    let sampling = Spans::new();
    let root = Context::current_with_span(sampling.provider.tracer("test").start("the application"));
    let trace = root.span().span_context().trace_id();
    echo(&channel, raw("sampled")).with_context(root.clone()).await.expect("an echo");
    let recorded = recorded.lock().unwrap().clone();
    assert_eq!((recorded[0].1, recorded[0].2), (false, true));
    assert_eq!(recorded[1], (trace, true, true));
    let names: Vec<_> = spans.ended().await.into_iter().map(|span| span.name).collect();
    assert_eq!(names.len(), 3, "{names:?}");
}

#[tokio::test]
async fn interceptors_run_in_span_and_may_reject() {
    let spans = Spans::new();
    let name = Arc::new(Mutex::new(None));
    let (recorded, refuse) =
        (Arc::clone(&name), |_: Request<()>| Err(Status::unauthenticated("who are you?")));
    let server = Server::builder()
        .interceptor(move |call: Call, next: Next| {
            Context::current().span().set_attribute(KeyValue::new("x-tenant", "42"));
            *recorded.lock().unwrap() = Some(call.method().name().to_owned());
            next.run(call)
        })
        .interceptor(thalweg::interceptor::head(refuse))
        .add_service(Echo::default())
        .traces(spans.traces());
    let channel = Channel::builder(start(server).await).connect().await.expect("a server");
    assert_eq!(echo(&channel, raw("a")).await.expect_err("refused").code(), Code::Unauthenticated);
    assert_eq!(name.lock().unwrap().as_deref(), Some("Echo"));
    check(
        &spans,
        &[
            "Recv.test.Echo.Echo Server [UNAUTHENTICATED, who are you?] x-tenant=42",
            "  - Inbound message 0: 1",
        ],
    )
    .await;
}
