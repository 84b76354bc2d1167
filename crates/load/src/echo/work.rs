//! The echo workload of a run.

use serde::{Deserialize, Serialize};

use super::protocol::Protocol;
use super::shape::Shape;

/// The workload that replaces `grpc.testing.BenchmarkService`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EchoWork {
    /// Document to echo.
    pub shape: Shape,
    /// Protocol.
    pub protocol: Protocol,
    /// Work of the client on each call.
    #[serde(rename = "looks", default)]
    pub client_work: ClientWork,
    /// Whether messages are compressed with gzip, both ways.
    #[serde(default)]
    pub gzip: bool,
}

/// Work of the client on each call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ClientWork {
    /// Encodes an object and decodes the response to one.
    #[default]
    Objects,
    /// Like `Objects`, and requests the server's timestamps, to divide the call into stages.
    Times,
    /// Encodes the request once and checks only the response's length. The client costs as little as possible, so that
    /// the server is measured.
    Bytes,
}
