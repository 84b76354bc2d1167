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
    /// Each call asks the server for its moments.
    pub times: bool,
}
