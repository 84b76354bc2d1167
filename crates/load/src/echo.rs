//! Workload of the gRPC and JSON API comparison: `thalweg.lab.v1.Echo`, and its JSON form ("JSON" in
//! `peers/README.md`). It runs over any protocol, and divides each call into stages.
//!
//! `object -> bytes -> one HTTP exchange -> bytes -> object`: all protocols, gRPC included, take the same path here, so
//! that the times between are visible.

mod body;
mod call;
mod connection;
mod document;
mod own;
mod protocol;
mod shape;
mod stages;
mod timestamps;
mod work;

pub use call::EchoCall;
pub use own::{OwnEcho, OwnEchoError};
pub use protocol::{Protocol, UnknownProtocol};
pub use shape::{InvalidShape, Shape};
pub use stages::{STAGES, Stages};
pub use work::{ClientWork, EchoWork};
