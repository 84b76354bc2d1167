//! What a run calls by whichever protocol.

use serde::{Deserialize, Serialize};

use super::protocol::Protocol;
use super::shape::Shape;

/// What a run calls in place of `grpc.testing.BenchmarkService`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EchoWork {
    /// What is echoed.
    pub shape: Shape,
    /// How it is said.
    pub protocol: Protocol,
    /// What is read from each call.
    #[serde(default)]
    pub looks: Looks,
    /// Messages are compressed by gzip both ways.
    #[serde(default)]
    pub gzip: bool,
}

/// What a client does with each call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Looks {
    /// It encodes an object, and decodes the answer to one.
    #[default]
    Objects,
    /// The same, and it asks the server for its moments, so that the call is divided into stages.
    Times,
    /// The request's bytes are made once, and of an answer the length is looked at: the client costs as little as it
    /// can, so that the server is measured.
    Bytes,
}
