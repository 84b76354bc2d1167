//! Description of the calls of any method.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use thalweg::metadata::MetadataMap;
use thalweg::{CallOptions, Code, Method};

use crate::benchmark_messages::BenchmarkMessages;
use crate::echo::EchoCall;
use crate::requests::Requests;
use crate::schedule::Schedule;
use crate::template::TemplateValues;
use crate::variables::Variables;

/// The four kinds of call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallKind {
    /// One message each way.
    Unary,
    /// A stream of requests, one response.
    ClientStream,
    /// One request, a stream of responses.
    ServerStream,
    /// Streams both ways.
    BidiStream,
}

impl CallKind {
    /// Returns the kind of a method that streams in these directions.
    pub fn of(is_client_streaming: bool, is_server_streaming: bool) -> Self {
        match (is_client_streaming, is_server_streaming) {
            (false, false) => Self::Unary,
            (true, false) => Self::ClientStream,
            (false, true) => Self::ServerStream,
            (true, true) => Self::BidiStream,
        }
    }

    /// Returns the name used in results.
    pub fn name(self) -> &'static str {
        match self {
            Self::Unary => "unary",
            Self::ClientStream => "client-stream",
            Self::ServerStream => "server-stream",
            Self::BidiStream => "bidi-stream",
        }
    }
}

/// A method and its messages, metadata and checks.
#[derive(Debug)]
pub struct Call {
    /// Method to call.
    pub method: Method,
    /// Kind of the method.
    pub kind: CallKind,
    /// Metadata sent with each call.
    pub metadata: CallMetadata,
    /// Options of each call.
    pub options: CallOptions,
    /// Messages of the calls.
    pub calls: Calls,
    /// Course of each stream.
    pub stream: StreamPlan,
    /// Expected response.
    pub expects: Expected,
}

/// Source of request messages, and reader of responses.
#[derive(Debug)]
pub enum Calls {
    /// Encoded messages of any method.
    Bytes(Requests),
    /// BenchmarkService's own messages, encoded and decoded with each call.
    Benchmark(BenchmarkMessages),
    /// The workload of the gRPC and JSON API comparison, over any protocol.
    Echo(Arc<EchoCall>),
}

impl Calls {
    /// Returns the number of messages a stream sends.
    pub fn per_stream(&self) -> u64 {
        match self {
            Self::Bytes(requests) => requests.per_stream(),
            Self::Benchmark(messages) => messages.per_stream(),
            Self::Echo(_) => 1,
        }
    }
}

/// Course of streams.
#[derive(Clone, Debug, Default)]
pub struct StreamPlan {
    /// Send schedule of a stream's messages, in messages per second since its start. `None` sends as fast as the
    /// library accepts them.
    pub message_rate: Option<Schedule>,
    /// Duration of a stream. After it, a stream that sends half-closes, and one that only receives is cancelled and
    /// counts as a success.
    pub lasts: Option<Duration>,
    /// Responses after which a stream is cancelled and counts as a success.
    pub responses: Option<u64>,
    /// Maximum requests of a bidi stream that await their response.
    pub outstanding: Option<u64>,
    /// Whether a stream lasts until the run ends. An earlier end by the server is a failure.
    pub lasts_to_end: bool,
    /// Whether the requests of a client stream count only once it has its response.
    pub counts_at_response: bool,
}

/// Conditions for the success of a call.
#[derive(Clone, Debug)]
pub struct Expected {
    /// Expected status.
    pub status: Code,
    /// Check of the responses.
    pub responses: Option<Arc<dyn Check>>,
}

impl Default for Expected {
    fn default() -> Self {
        Self { status: Code::Ok, responses: None }
    }
}

/// Checks responses.
pub trait Check: Send + Sync + fmt::Debug {
    /// Returns what is wrong with a response, if anything. Stores values needed by later steps in `variables`.
    fn check(&self, response: &[u8], variables: &mut Variables) -> Result<(), String>;
}

type MakeMetadata = dyn Fn(&TemplateValues<'_>) -> Result<MetadataMap, String> + Send + Sync;

/// Metadata of calls.
pub enum CallMetadata {
    /// The same for all calls.
    Constant(MetadataMap),
    /// Created for each call, which fails with the error if it cannot be.
    Made(Box<MakeMetadata>),
}

impl fmt::Debug for CallMetadata {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Constant(metadata) => metadata.fmt(f),
            Self::Made(_) => f.write_str("made"),
        }
    }
}
