//! Calls of gRPC's BenchmarkService.

use std::time::Duration;

use thalweg::{CallOptions, Channel, Method, Request};

use crate::benchmark_messages::{BenchmarkMessages, check_size, request};
use crate::call::{CallKind, Calls};
use crate::connect::{StartError, first_call};
use crate::record::{CallType, MessageOwnership};
use crate::services::PAYLOAD_BYTES_MAX;
use crate::services::proto::{SimpleRequest, SimpleResponse};

pub(crate) const SERVICE: &str = "grpc.testing.BenchmarkService";

/// Returns the name of the method for this type of call.
pub(crate) fn method(call: CallType) -> &'static str {
    match call {
        CallType::Unary => "UnaryCall",
        CallType::ClientStream => "StreamingFromClient",
        CallType::ServerStream => "StreamingFromServer",
        CallType::BidiStream | CallType::PingPong => "StreamingCall",
    }
}

/// Returns the directions in which calls of this type stream.
pub(crate) fn kind(call: CallType) -> CallKind {
    match call {
        CallType::Unary => CallKind::Unary,
        CallType::ClientStream => CallKind::ClientStream,
        CallType::ServerStream => CallKind::ServerStream,
        CallType::BidiStream | CallType::PingPong => CallKind::BidiStream,
    }
}

/// Returns calls with payloads of `size` bytes in the directions that carry them. A request stream has `per_stream`
/// messages.
pub(crate) fn calls(
    kind: CallKind,
    size: usize,
    message_ownership: MessageOwnership,
    per_stream: u64,
) -> Calls {
    let (sent, received) = match kind {
        CallKind::ClientStream => (size, 0),
        CallKind::ServerStream => (0, size),
        CallKind::Unary | CallKind::BidiStream => (size, size),
    };
    Calls::Benchmark(BenchmarkMessages::new(sent, received, message_ownership, per_stream))
}

/// Makes one unary BenchmarkService call with payloads of `size` bytes.
pub(crate) async fn try_out(
    target: &str,
    channel: &Channel,
    size: usize,
    patience: Duration,
) -> Result<(), StartError> {
    let name = format!("{SERVICE}/{}", method(CallType::Unary));
    let call = async {
        let method = Method::from_path(&format!("/{name}")).expect("a valid path");
        let request = Request::new(request(size, size));
        let options = options();
        let response = channel.unary::<SimpleRequest, SimpleResponse>(&method, request, &options).await?;
        check_size(response.get_ref(), size)
    };
    first_call(target, name.clone(), patience, call).await
}

/// Returns the options of calls with payloads of any size.
pub(crate) fn options() -> CallOptions {
    let mut options = CallOptions::default();
    // The request says how large the response must be, and the response is checked against that.
    options.max_decoding_message_size = 2 * PAYLOAD_BYTES_MAX;
    options
}
