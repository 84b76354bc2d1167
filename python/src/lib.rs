//! Native part of the Python package `thalweg`. It connects Python's objects with `thalweg-engine`; see `docs/python.md`.

mod awaitable;
mod blocking;
mod call_queue;
mod channel;
mod channelz;
mod credentials;
mod exchange;
mod loops;
mod message;
mod metadata;
mod options;
mod queue;
mod runtime;
mod server;
mod server_call;
mod status;
mod stream;
mod unary;

use pyo3::prelude::*;

/// The module `thalweg._native`.
#[pymodule(gil_used = false)]
mod _native {
    /// Version of the package.
    #[pymodule_export]
    const VERSION: &str = env!("CARGO_PKG_VERSION");

    #[pymodule_export]
    use super::awaitable::Awaitable;
    #[pymodule_export]
    use super::blocking::BlockingUnaryUnary;
    #[pymodule_export]
    use super::call_queue::CallQueue;
    #[pymodule_export]
    use super::channel::Channel;
    #[pymodule_export]
    use super::channelz::{
        channelz_get_channel, channelz_get_server, channelz_get_server_sockets, channelz_get_servers,
        channelz_get_socket, channelz_get_subchannel, channelz_get_top_channels,
    };
    #[pymodule_export]
    use super::credentials::{ChannelCredentials, ServerCredentials};
    #[pymodule_export]
    use super::metadata::InvalidMetadata;
    #[pymodule_export]
    use super::queue::CompletionQueue;
    #[pymodule_export]
    use super::runtime::{after_fork_in_child, after_fork_in_parent, before_fork};
    #[pymodule_export]
    use super::server::Server;
    #[pymodule_export]
    use super::server_call::ServerCall;
    #[pymodule_export]
    use super::stream::{StreamCall, StreamMethod};
    #[pymodule_export]
    use super::unary::{UnaryUnaryCall, UnaryUnaryMultiCallable};
}
