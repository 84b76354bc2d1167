//! The work of the study of gRPC against a JSON API: `thalweg.lab.v1.Echo` and its JSON ("JSON" in `peers/README.md`),
//! called by whichever protocol, and each call divided into its stages.
//!
//! `object -> bytes -> one exchange over HTTP -> bytes -> object`: all protocols go the same way here, gRPC too, so
//! that the moments between are seen.

mod body;
mod call;
mod connection;
mod document;
mod moments;
mod own;
mod protocol;
mod shape;
mod stages;
mod work;

pub use call::EchoCall;
pub use own::{NoOwnEcho, OwnEcho};
pub use protocol::{Protocol, UnknownProtocol};
pub use shape::{NotAShape, Shape};
pub use stages::{STAGES, Stages};
pub use work::{EchoWork, Looks};
