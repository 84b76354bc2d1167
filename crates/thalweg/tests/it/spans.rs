//! Spans of calls, as a subscriber gets them.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use thalweg::interceptor::Spans;
use thalweg::{CallOptions, Caller, Raw, Request, Server};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

use crate::support::{ECHO, Echo, REPEAT, connect, raw, start, until};

/// Fields of spans, by their number; what is not of this library is passed over.
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
    /// `kind name code message` of each span that has ended.
    fn ended(&self) -> Vec<String> {
        let spans = self.0.lock().expect("no panic");
        let of = |Fields(fields): &Fields, name: &str| fields.get(name).cloned();
        let mut all: Vec<String> = spans
            .values()
            .filter_map(|span| {
                let code = of(span, "rpc.grpc.status_code")?;
                let field = |name| of(span, name).unwrap_or_default();
                let (kind, name, message) = (field("otel.kind"), field("otel.name"), field("error.message"));
                Some(format!("{kind} {name} {code} {message}").trim_end().to_owned())
            })
            .collect();
        all.sort_unstable();
        all
    }
}

#[tokio::test]
async fn spans_have_name_side_and_status() {
    let recorded = Recorded::default();
    let _subscriber = tracing::subscriber::set_default(recorded.clone());
    let target = start(Server::builder().add_service(Echo::default()).interceptor(Spans)).await;
    let channel = connect(&target).await.with_interceptor(Spans);
    let options = CallOptions::default();
    for order in ["a", "fail"] {
        let _ = channel.unary::<Raw, Raw>(&ECHO, Request::new(raw(order)), &options).await;
    }
    let order = Request::new(raw("2 1"));
    let mut repeat =
        channel.server_streaming::<Raw, Raw>(&REPEAT, order, &options).await.expect("a stream").into_inner();
    while repeat.message().await.expect("no error").is_some() {}
    let expected = [
        "client test.Echo/Echo 0",
        "client test.Echo/Echo 5 nichts: ü %",
        "client test.Echo/Repeat 0",
        "server test.Echo/Echo 0",
        "server test.Echo/Echo 5 nichts: ü %",
        "server test.Echo/Repeat 0",
    ];
    until(|| recorded.ended().len() == expected.len()).await;
    assert_eq!(recorded.ended(), expected);
}
