//! The address of a channel's servers: [`ServerAddress`].

/// Server of a channel as named by its target; OpenTelemetry's `server.address` and `server.port`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ServerAddress {
    /// A host name, an IP address, or the path or name of a Unix domain socket. The first of several addresses.
    pub address: String,
    /// `None` for Unix domain sockets.
    pub port: Option<u16>,
}
