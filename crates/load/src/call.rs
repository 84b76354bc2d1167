//! A call of any method: what is called, and with what.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use thalweg::metadata::MetadataMap;
use thalweg::{CallOptions, Code, Method};

use crate::benchmark_messages::BenchmarkMessages;
use crate::echo::EchoCall;
use crate::requests::Requests;
use crate::schedule::Schedule;
use crate::template::Moment;
use crate::variables::Variables;

/// The four kinds of call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallKind {
    /// One message each way.
    Unary,
    /// A stream of requests.
    ClientStream,
    /// A stream of responses.
    ServerStream,
    /// Both.
    BidiStream,
}

impl CallKind {
    /// Of a method that streams, or does not, in these directions.
    pub fn of(is_client_streaming: bool, is_server_streaming: bool) -> Self {
        match (is_client_streaming, is_server_streaming) {
            (false, false) => Self::Unary,
            (true, false) => Self::ClientStream,
            (false, true) => Self::ServerStream,
            (true, true) => Self::BidiStream,
        }
    }

    /// Its name in results.
    pub fn name(self) -> &'static str {
        match self {
            Self::Unary => "unary",
            Self::ClientStream => "client-stream",
            Self::ServerStream => "server-stream",
            Self::BidiStream => "bidi-stream",
        }
    }
}

/// What is called, and with what.
#[derive(Debug)]
pub struct Call {
    /// Which method.
    pub method: Method,
    /// Of which kind it is.
    pub kind: CallKind,
    /// Sent with each call.
    pub metadata: CallMetadata,
    /// Of each call.
    pub options: CallOptions,
    /// What is sent, and in which form.
    pub calls: Calls,
    /// How a stream goes.
    pub stream: StreamPlan,
    /// What the answer has to be.
    pub expects: Expected,
}

/// What makes the messages of calls, and reads the answers.
#[derive(Debug)]
pub enum Calls {
    /// Encoded messages of any method.
    Bytes(Requests),
    /// BenchmarkService's own messages, which are encoded and decoded with each call.
    Benchmark(BenchmarkMessages),
    /// The work of the study of gRPC against a JSON API, by any protocol.
    Echo(Arc<EchoCall>),
}

impl Calls {
    /// Messages that a stream sends.
    pub fn per_stream(&self) -> u64 {
        match self {
            Self::Bytes(requests) => requests.per_stream(),
            Self::Benchmark(messages) => messages.per_stream(),
            Self::Echo(_) => 1,
        }
    }
}

/// How streams go.
#[derive(Clone, Debug, Default)]
pub struct StreamPlan {
    /// When the messages of a stream are sent, messages a second since it began; as fast as the library takes them
    /// where there is none.
    pub message_rate: Option<Schedule>,
    /// A stream that sends ends after so long; one that only receives is cancelled then, and has gone well.
    pub lasts: Option<Duration>,
    /// After so many responses a stream is cancelled, and has gone well.
    pub responses: Option<u64>,
    /// Requests of a bidi stream that may await their responses.
    pub outstanding: Option<u64>,
    /// A stream lasts until the run ends. That the server ends it earlier is a failure.
    pub lasts_to_end: bool,
    /// The requests of a stream that only sends count once it has been answered.
    pub counts_answered: bool,
}

/// What has to come back so that a call has gone well.
#[derive(Clone, Debug)]
pub struct Expected {
    /// The status.
    pub status: Code,
    /// Looks at the responses.
    pub responses: Option<Arc<dyn Check>>,
}

impl Default for Expected {
    fn default() -> Self {
        Self { status: Code::Ok, responses: None }
    }
}

/// Looks at responses.
pub trait Check: Send + Sync + fmt::Debug {
    /// What is wrong with a response, if anything is. What later steps need of it goes into `variables`.
    fn check(&self, response: &[u8], variables: &mut Variables) -> Result<(), String>;
}

type MakeMetadata = dyn Fn(&Moment<'_>) -> Result<MetadataMap, String> + Send + Sync;

/// The metadata of calls.
pub enum CallMetadata {
    /// The same for all.
    Constant(MetadataMap),
    /// Made for each; or why it cannot be.
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
