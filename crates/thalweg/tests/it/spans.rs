//! Spans of calls, as a subscriber receives them.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use thalweg::interceptor::{Spans, head};
use thalweg::{CallOptions, Caller, Raw, Request, Server, Status};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

use crate::support::{ECHO, Echo, REPEAT, connect, raw, start, until};

/// Fields of spans by span number; spans of other libraries are ignored.
#[derive(Clone, Default)]
struct Recorded(Arc<Mutex<BTreeMap<u64, Fields>>>, Arc<AtomicU64>);

#[derive(Clone, Default)]
struct Fields(BTreeMap<String, String>);

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.0.insert(field.name().to_owned(), format!("{value:?}").trim_matches('"').to_owned());
    }
}

impl Subscriber for Recorded {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.name() == "grpc_call"
    }

    fn new_span(&self, attributes: &Attributes<'_>) -> Id {
        let id = self.1.fetch_add(1, Ordering::SeqCst) + 1;
        let mut fields = Fields::default();
        attributes.record(&mut fields);
        self.0.lock().expect("no panic").insert(id, fields);
        Id::from_u64(id)
    }

    fn record(&self, span: &Id, values: &Record<'_>) {
        let mut spans = self.0.lock().expect("no panic");
        values.record(spans.get_mut(&span.into_u64()).expect("a span"));
    }

    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn event(&self, _: &Event<'_>) {}
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

impl Recorded {
    /// Returns `kind method code error description` of each ended span.
    fn ended(&self) -> Vec<String> {
        let spans = self.0.lock().expect("no panic");
        let of = |Fields(fields): &Fields, name: &str| fields.get(name).cloned();
        let mut all: Vec<String> = spans
            .values()
            .filter_map(|span| {
                let code = of(span, "rpc.response.status_code")?;
                let field = |name| of(span, name).unwrap_or_default();
                let (kind, method, error) = (field("otel.kind"), field("rpc.method"), field("error.type"));
                assert_eq!(field("otel.name"), method);
                assert_eq!(field("rpc.system.name"), "grpc");
                assert_eq!(field("otel.status_code"), if error.is_empty() { "" } else { "ERROR" });
                let described = field("otel.status_description");
                Some(format!("{kind} {method} {code} {error} {described}").trim_end().to_owned())
            })
            .collect();
        all.sort_unstable();
        all
    }
}

impl Recorded {
    /// Returns the address and port of `end` for each span of the side `kind`.
    fn addresses(&self, kind: &str, end: &str) -> Vec<String> {
        let spans = self.0.lock().expect("no panic");
        let of = |Fields(fields): &Fields, name: String| fields.get(&name).cloned().unwrap_or_default();
        let of_kind = spans.values().filter(|span| of(span, "otel.kind".to_owned()) == kind);
        of_kind
            .map(|span| format!("{}:{}", of(span, format!("{end}.address")), of(span, format!("{end}.port"))))
            .collect()
    }
}

#[tokio::test]
async fn span_has_name_side_and_status() {
    let recorded = Recorded::default();
    let _subscriber = tracing::subscriber::set_default(recorded.clone());
    let broken = |request: Request<()>| match request.metadata().get("x-broken") {
        Some(_) => Err(Status::internal("tired")),
        None => Ok(request),
    };
    let server = Server::builder().interceptor(Spans).interceptor(head(broken)).connection_info(true);
    let target = start(server.add_service(Echo::default())).await;
    let channel = connect(&target).await.with_interceptor(Spans);
    let options = CallOptions::default();
    for order in ["a", "fail"] {
        let _ = channel.unary::<Raw, Raw>(&ECHO, Request::new(raw(order)), &options).await;
    }
    let mut request = Request::new(raw("a"));
    request.metadata_mut().insert("x-broken", "yes".parse().expect("ASCII"));
    channel.unary::<Raw, Raw>(&ECHO, request, &options).await.expect_err("it is");
    let order = Request::new(raw("2 1"));
    let mut repeat =
        channel.server_streaming::<Raw, Raw>(&REPEAT, order, &options).await.expect("a stream").into_inner();
    while repeat.message().await.expect("no error").is_some() {}
    let expected = [
        "client test.Echo/Echo INTERNAL INTERNAL tired",
        "client test.Echo/Echo NOT_FOUND NOT_FOUND nichts: ü %",
        "client test.Echo/Echo OK",
        "client test.Echo/Repeat OK",
        "server test.Echo/Echo INTERNAL INTERNAL tired",
        // A client's request for something missing is not a server error.
        "server test.Echo/Echo NOT_FOUND",
        "server test.Echo/Echo OK",
        "server test.Echo/Repeat OK",
    ];
    until(|| recorded.ended().len() == expected.len()).await;
    assert_eq!(recorded.ended(), expected);
    for side in ["client", "server"] {
        for address in recorded.addresses(side, "server") {
            assert_eq!(address, target);
        }
    }
    let (from, none) = (recorded.addresses("server", "client"), recorded.addresses("client", "client"));
    assert!(from.iter().all(|address| address.starts_with("127.0.0.1:") && *address != target), "{from:?}");
    assert!(none.iter().all(|address| address == ":"), "{none:?}");
}
