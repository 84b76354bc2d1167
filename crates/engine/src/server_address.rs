//! Where a channel's servers are: [`ServerAddress`].

/// Whom a channel calls, as its target names it; OpenTelemetry's `server.address` and `server.port`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ServerAddress {
    /// A host name, an IP address, or the path or name of a UNIX domain socket. Of several addresses the first.
    pub address: String,
    /// None of a UNIX domain socket.
    pub port: Option<u16>,
}
