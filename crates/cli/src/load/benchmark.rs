//! gRPC's BenchmarkService: what is loaded if no method is named, and by `--call` with a call type.

use std::sync::Arc;
use std::time::Duration;

use thalweg::bytes::Bytes;
use thalweg::{CallOptions, Channel, Code, Method, Raw, Request};
use thalweg_dynamic::{Catalogue, MethodName};
use thalweg_load::peer::{payload, request, window};
use thalweg_load::record::CallType;
use thalweg_load::services::PAYLOAD_BYTES_MAX;
use thalweg_load::services::proto::{DESCRIPTORS, SimpleResponse};
use thalweg_load::{Check, Variables};
use thalweg_measure::code::code_name;
use thalweg_protobuf::Schema;

use super::asked_stream::AskedStream;
use crate::failure::Failure;

const SERVICE: &str = "grpc.testing.BenchmarkService";
/// How long a stream lasts if nothing else ends it, at most: calls must end within the run.
const STREAM_FOR: Duration = Duration::from_secs(1);

/// Payloads of calls of BenchmarkService.
#[derive(Clone, Copy, Debug)]
pub(super) struct Benchmark {
    /// Payload bytes of a message.
    size: usize,
}

impl Benchmark {
    /// Returns `None` if the method is not one of BenchmarkService. `size`: payload bytes of a message.
    pub(super) fn of(method: &MethodName, size: Option<u64>) -> Result<Option<Self>, Failure> {
        if method.service() != SERVICE {
            return match size {
                None => Ok(None),
                Some(_) => Err(Failure::bad_arguments(format!(
                    "--size sets the payload of {SERVICE}; use --data for {method}"
                ))),
            };
        }
        let size = size.unwrap_or(0);
        if size > PAYLOAD_BYTES_MAX as u64 {
            return Err(Failure::bad_arguments("--size is more than 64 MiB, the largest payload"));
        }
        Ok(Some(Self { size: size as usize }))
    }

    /// Returns the descriptors of the service: servers need no reflection.
    pub(super) fn catalogue() -> Result<Catalogue, Failure> {
        let schema = Schema::from_descriptor_set(DESCRIPTORS).map_err(Failure::failed)?;
        Ok(Catalogue::Files { schema, set: DESCRIPTORS.to_vec() })
    }

    /// A request of a method that streams, or does not, in these directions.
    pub(super) fn request(self, is_client_streaming: bool, is_server_streaming: bool) -> Bytes {
        let (sent, received) = match (is_client_streaming, is_server_streaming) {
            (true, false) => (self.size, 0),
            (false, true) => (0, self.size),
            _ => (self.size, self.size),
        };
        prost::Message::encode_to_vec(&request(sent, received)).into()
    }

    /// Responses must have the payload that was asked for.
    pub(super) fn check(self, is_client_streaming: bool, is_server_streaming: bool) -> Arc<dyn Check> {
        let size = if is_client_streaming && !is_server_streaming { 0 } else { self.size };
        let response = SimpleResponse { payload: payload(size), ..SimpleResponse::default() };
        Arc::new(ResponseSize(prost::Message::encoded_len(&response)))
    }

    /// How a stream of this type goes. It has `messages`, if `-n` says how many; else it ends well within `measured`.
    pub(super) fn stream(
        self,
        call: CallType,
        asked: AskedStream,
        messages: Option<u64>,
        measured: Duration,
    ) -> AskedStream {
        let mut stream = asked;
        match (call, messages) {
            (CallType::Unary, _) => return stream,
            (CallType::ServerStream, Some(messages)) => {
                stream.responses = stream.responses.or(Some(messages));
            }
            (_, Some(messages)) => stream.messages = stream.messages.or(Some(messages)),
            (_, None) => {}
        }
        if stream.messages.is_none() && stream.responses.is_none() {
            stream.lasts = stream.lasts.or(Some(STREAM_FOR.min(measured / 2)));
        }
        let is_paired = matches!(call, CallType::BidiStream | CallType::PingPong);
        let window = is_paired.then(|| window(call, self.size));
        stream.outstanding = stream.outstanding.or(window);
        stream
    }

    /// Makes one call, so that a server without the service is an error and not a run of failures.
    pub(super) async fn try_out(
        self,
        target: &str,
        channel: &Channel,
        timeout: Duration,
    ) -> Result<(), Failure> {
        let request = Request::new(Raw(self.request(false, false)));
        let mut options = CallOptions::default();
        options.timeout = Some(timeout);
        options.max_decoding_message_size = 2 * PAYLOAD_BYTES_MAX;
        let method = Method::new("/grpc.testing.BenchmarkService/UnaryCall");
        let Err(status) = channel.unary::<Raw, Raw>(&method, request, &options).await else { return Ok(()) };
        let code = code_name(status.code() as i32);
        Err(Failure::failed(match status.code() {
            Code::Unimplemented => {
                format!("{target} does not offer {SERVICE}: name a method with --call package.Service/Method")
            }
            Code::DeadlineExceeded => {
                let timeout = humantime::format_duration(timeout);
                format!("{target}: the first call, of {SERVICE}, had no response within {timeout} ({code})")
            }
            _ => format!("{target}: the first call, of {SERVICE}, ended with {code}: {}", status.message()),
        }))
    }
}

/// The method of a call type.
pub(super) fn method(call: CallType) -> Result<MethodName, Failure> {
    let name = match call {
        CallType::Unary => "UnaryCall",
        CallType::ClientStream => "StreamingFromClient",
        CallType::ServerStream => "StreamingFromServer",
        CallType::BidiStream | CallType::PingPong => "StreamingCall",
    };
    format!("{SERVICE}/{name}").parse().map_err(Failure::failed)
}

/// Encoded responses must be so long.
#[derive(Debug)]
struct ResponseSize(usize);

impl Check for ResponseSize {
    fn check(&self, response: &[u8], _: &mut Variables) -> Result<(), String> {
        match response.len() {
            len if len == self.0 => Ok(()),
            len => Err(format!("expected a response of {} bytes, got {len}", self.0)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn responses_have_the_payload_that_was_asked_for() {
        let benchmark = Benchmark { size: 1000 };
        let response = |size| {
            let response = SimpleResponse { payload: payload(size), ..SimpleResponse::default() };
            prost::Message::encode_to_vec(&response)
        };
        let variables = &mut Variables::new();
        for (directions, size) in
            [((false, false), 1000), ((true, true), 1000), ((false, true), 1000), ((true, false), 0)]
        {
            let check = benchmark.check(directions.0, directions.1);
            assert_eq!(check.check(&response(size), variables), Ok(()), "{directions:?}");
            let error = check.check(&response(999), variables).unwrap_err();
            assert!(error.ends_with("bytes, got 1005"), "{directions:?}: {error}");
        }
    }
}
