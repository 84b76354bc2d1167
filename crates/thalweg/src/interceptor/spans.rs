//! `tracing` spans around calls: [`Spans`].

use std::sync::Arc;

use thalweg_core::{Code, Extensions, Status};
use thalweg_engine::ConnectionInfo;
use tracing::field::Empty;
use tracing::{Instrument, Span, info_span};

use super::call::{Call, Reply, Side};
use super::intercept::Interceptor;
use super::next::Next;

/// Runs each call in a `tracing` span of level INFO, following OpenTelemetry's semantic [conventions] for gRPC (1.45).
/// The span is named `grpc_call` and has these fields:
///
/// - `rpc.system.name` (`grpc`) and `rpc.method` (`package.Service/Method`);
/// - `server.address` and `server.port`: on a client, those of the channel's target; on a server, the local address of
///   the connection;
/// - on a server, `client.address` and `client.port`: the remote address. A server records addresses only if
///   [`connection_info`](crate::server::ServerBuilder::connection_info) is on;
/// - once the call has ended, `rpc.response.status_code` (`OK`, `NOT_FOUND`);
/// - for errors, `error.type`, the same value. On a client all codes but OK are errors. On a server they are UNKNOWN,
///   DEADLINE_EXCEEDED, UNIMPLEMENTED, INTERNAL, UNAVAILABLE and DATA_LOSS; the others are the client's;
/// - for `tracing-opentelemetry`: `otel.name` (same as `rpc.method`), `otel.kind` (`client` or `server`), and for
///   errors `otel.status_code` (`ERROR`) and `otel.status_description`.
///
/// A handler's log events belong to its call's span. A stream's span ends with its last message. If no subscriber is
/// interested, no span is recorded. For traces across processes, use `Traces` with the feature `opentelemetry`.
///
/// ```
/// use thalweg::Server;
/// use thalweg::interceptor::Spans;
///
/// let server = Server::builder().interceptor(Spans);
/// ```
///
/// [conventions]: https://opentelemetry.io/docs/specs/semconv/rpc/grpc/
#[derive(Clone, Copy, Debug, Default)]
pub struct Spans;

impl Interceptor for Spans {
    async fn intercept(&self, call: Call, next: Next) -> Result<Reply, Status> {
        let (side, name) = (call.side(), call.method().path().trim_start_matches('/'));
        let span = info_span!(
            "grpc_call",
            rpc.system.name = "grpc",
            rpc.method = name,
            rpc.response.status_code = Empty,
            server.address = Empty,
            server.port = Empty,
            client.address = Empty,
            client.port = Empty,
            "error.type" = Empty,
            otel.kind = if side == Side::Client { "client" } else { "server" },
            otel.name = name,
            otel.status_code = Empty,
            otel.status_description = Empty,
        );
        if span.is_disabled() {
            return next.run(call).await;
        }
        match call.server() {
            Some(server) => record_address(&span, "server", &server.address, server.port),
            None => record_connection(&span, call.extensions()),
        }
        match next.run(call).instrument(span.clone()).await {
            Ok(response) => {
                Ok(response.map(|messages| messages.on_end(move |end| record_end(&span, side, end.err()))))
            }
            Err(status) => {
                record_end(&span, side, Some(&status));
                Err(status)
            }
        }
    }
}

/// Records the addresses of a server's connection, if known.
fn record_connection(span: &Span, extensions: &Extensions) {
    let Some(connection) = extensions.get::<Arc<ConnectionInfo>>() else { return };
    for (end, address) in [("server", connection.local_addr()), ("client", connection.remote_addr())] {
        if let Some(address) = address {
            record_address(span, end, &address.ip().to_string(), Some(address.port()));
        }
    }
}

fn record_address(span: &Span, end: &str, address: &str, port: Option<u16>) {
    span.record(&*format!("{end}.address"), address);
    if let Some(port) = port {
        span.record(&*format!("{end}.port"), port);
    }
}

/// Records the outcome of the call.
fn record_end(span: &Span, side: Side, status: Option<&Status>) {
    let code = status.map_or(Code::Ok, Status::code);
    let name = code.name();
    span.record("rpc.response.status_code", name);
    if let Some(status) = status
        && is_error(side, code)
    {
        span.record("error.type", name);
        span.record("otel.status_code", "ERROR");
        span.record("otel.status_description", status.message());
    }
}

/// Returns true if the conventions treat the code as an error.
fn is_error(side: Side, code: Code) -> bool {
    match side {
        Side::Client => code != Code::Ok,
        Side::Server => matches!(
            code,
            Code::Unknown
                | Code::DeadlineExceeded
                | Code::Unimplemented
                | Code::Internal
                | Code::Unavailable
                | Code::DataLoss
        ),
    }
}
