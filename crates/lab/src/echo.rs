//! The work of the study of gRPC against a JSON API: `thalweg.lab.v1.Echo` and its JSON ("JSON" in `peers/README.md`),
//! called by whichever protocol, and each call divided into its stages.
//!
//! `object -> bytes -> one exchange over HTTP -> bytes -> object`: all protocols go the same way here, gRPC too, so that
//! the moments between are seen.

mod call;
mod connection;
mod document;
mod moments;
mod protocol;
mod shape;
mod stages;

pub(crate) use call::EchoCall;
pub use protocol::{Protocol, UnknownProtocol};
pub use shape::{NotAShape, Shape};
pub(crate) use stages::{STAGES, Stages};

use serde::{Deserialize, Serialize};

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
