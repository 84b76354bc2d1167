//! Information about the connection of a call: [`ConnectionInfo`].

use std::net::SocketAddr;

#[cfg(feature = "tls")]
use crate::tls::TlsInfo;

/// The connection that a call arrived on, with its peer.
#[derive(Clone, Debug, Default)]
pub struct ConnectionInfo {
    pub(crate) remote_addr: Option<SocketAddr>,
    pub(crate) local_addr: Option<SocketAddr>,
    #[cfg(feature = "tls")]
    pub(crate) tls: Option<TlsInfo>,
}

impl ConnectionInfo {
    /// Creates the info of a connection that this library did not accept. The addresses are `None` unless it uses TCP.
    pub fn new(remote_addr: Option<SocketAddr>, local_addr: Option<SocketAddr>) -> Self {
        Self {
            remote_addr,
            local_addr,
            #[cfg(feature = "tls")]
            tls: None,
        }
    }

    /// Adds the negotiated TLS parameters.
    #[cfg(feature = "tls")]
    #[must_use]
    pub fn with_tls(self, tls: TlsInfo) -> Self {
        Self { tls: Some(tls), ..self }
    }

    /// Returns the client's address, or `None` if the connection does not use TCP.
    pub fn remote_addr(&self) -> Option<SocketAddr> {
        self.remote_addr
    }

    /// Returns the address the client connected to, or `None` if the connection does not use TCP.
    pub fn local_addr(&self) -> Option<SocketAddr> {
        self.local_addr
    }

    /// Returns the negotiated TLS parameters and the client's verified certificates, or `None` without TLS.
    #[cfg(feature = "tls")]
    pub fn tls(&self) -> Option<&TlsInfo> {
        self.tls.as_ref()
    }
}
