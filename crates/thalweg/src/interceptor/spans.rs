//! Spans of `tracing` around calls: [`Spans`].

use tonic::{Code, Status};
use tracing::field::Empty;
use tracing::{Instrument, Span, info_span};

use super::around::Interceptor;
use super::call::{Call, Reply, Side};
use super::next::Next;

/// An interceptor that has each call in a span of `tracing`, of the level INFO: `grpc_call`, with the fields
/// `rpc.system` (`grpc`), `rpc.service`, `rpc.method`, `otel.kind` (`client` or `server`), `otel.name`
/// (`package.Service/Method`) and, once the call has ended, `rpc.grpc.status_code`, its number. A failure has
/// `error.message`, too.
///
/// What a handler logs is within its call's span. A stream's span ends with its last message. Where no subscriber is
/// interested, nothing is made of a call.
///
/// ```
/// use thalweg::Server;
/// use thalweg::interceptor::Spans;
///
/// let server = Server::builder().interceptor(Spans);
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct Spans;

impl Interceptor for Spans {
    async fn intercept(&self, call: Call, next: Next) -> Result<Reply, Status> {
        let method = call.method();
        let span = info_span!(
            "grpc_call",
            rpc.system = "grpc",
            rpc.service = method.service(),
            rpc.method = method.name(),
            otel.kind = if call.side() == Side::Client { "client" } else { "server" },
            otel.name = method.path().trim_start_matches('/'),
            rpc.grpc.status_code = Empty,
            error.message = Empty,
        );
        if span.is_disabled() {
            return next.run(call).await;
        }
        match next.run(call).instrument(span.clone()).await {
            Ok(reply) => Ok(reply.map(|messages| messages.on_end(move |end| note(&span, end.err())))),
            Err(status) => {
                note(&span, Some(&status));
                Err(status)
            }
        }
    }
}

/// The call has ended.
fn note(span: &Span, status: Option<&Status>) {
    let code = status.map_or(Code::Ok, Status::code);
    span.record("rpc.grpc.status_code", code as i32);
    if let Some(status) = status {
        span.record("error.message", status.message());
    }
}
