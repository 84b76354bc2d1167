//! gRPC's BenchmarkService: what is loaded if no method is named, and by `--call` with a call type.

use std::time::Duration;

use thalweg::{CallOptions, Channel, Code, Method, Request};
use thalweg_dynamic::{Catalogue, MethodName};
use thalweg_load::peer::window;
use thalweg_load::record::{CallType, Handing};
use thalweg_load::services::PAYLOAD_BYTES_MAX;
use thalweg_load::services::proto::{DESCRIPTORS, SimpleResponse};
use thalweg_load::{BenchmarkMessages, Calls, request};
use thalweg_measure::code::code_name;
use thalweg_protobuf::Schema;

use super::asked_stream::AskedStream;
use crate::failure::Failure;

const SERVICE: &str = "grpc.testing.BenchmarkService";
/// How long a stream lasts where streams come and go.
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

    /// The calls of a method that streams, or does not, in these directions. A stream of requests has so many messages.
    pub(super) fn calls(self, is_client_streaming: bool, is_server_streaming: bool, messages: u64) -> Calls {
        let (sent, received) = match (is_client_streaming, is_server_streaming) {
            (true, false) => (self.size, 0),
            (false, true) => (0, self.size),
            _ => (self.size, self.size),
        };
        Calls::Benchmark(BenchmarkMessages::new(sent, received, Handing::InPlace, messages))
    }

    /// How streams of this type go. If nothing else ends them, they last to the end of the run. Where streams come and
    /// go, they last a while.
    pub(super) fn stream(self, call: CallType, asked: AskedStream, is_steady: bool) -> AskedStream {
        let mut stream = asked;
        let is_endless = call != CallType::Unary
            && stream.messages.is_none()
            && stream.responses.is_none()
            && stream.lasts.is_none();
        stream.lasts_to_end = is_endless && is_steady;
        stream.lasts = stream.lasts.or((is_endless && !is_steady).then_some(STREAM_FOR));
        let is_paired = matches!(call, CallType::BidiStream | CallType::PingPong);
        stream.outstanding = stream.outstanding.or(is_paired.then(|| window(call, self.size)));
        stream
    }

    /// Makes one call, so that a server without the service is an error and not a run of failures.
    pub(super) async fn try_out(
        self,
        target: &str,
        channel: &Channel,
        timeout: Duration,
    ) -> Result<(), Failure> {
        let request = Request::new(request(self.size, self.size));
        let mut options = CallOptions::default();
        options.timeout = Some(timeout);
        options.max_decoding_message_size = 2 * PAYLOAD_BYTES_MAX;
        let method = Method::new("/grpc.testing.BenchmarkService/UnaryCall");
        let Err(status) = channel.unary::<_, SimpleResponse>(&method, request, &options).await else {
            return Ok(());
        };
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
