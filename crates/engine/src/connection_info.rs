//! What is known of the connection that a call came by: [`ConnectionInfo`].

use std::net::SocketAddr;

#[cfg(feature = "tls")]
use crate::tls::TlsInfo;

/// The connection that a call came by: who is at its other end.
#[derive(Clone, Debug, Default)]
pub struct ConnectionInfo {
    pub(crate) remote_addr: Option<SocketAddr>,
    pub(crate) local_addr: Option<SocketAddr>,
    #[cfg(feature = "tls")]
    pub(crate) tls: Option<TlsInfo>,
}

impl ConnectionInfo {
    /// Of a connection that this library did not accept: its two addresses, if it came by TCP.
    pub fn new(remote_addr: Option<SocketAddr>, local_addr: Option<SocketAddr>) -> Self {
        Self {
            remote_addr,
            local_addr,
            #[cfg(feature = "tls")]
            tls: None,
        }
    }

    /// The same, with what TLS was agreed on.
    #[cfg(feature = "tls")]
    #[must_use]
    pub fn with_tls(self, tls: TlsInfo) -> Self {
        Self { tls: Some(tls), ..self }
    }

    /// The client's address; none where it did not come by TCP.
    pub fn remote_addr(&self) -> Option<SocketAddr> {
        self.remote_addr
    }

    /// The address that the client connected to; none where it did not come by TCP.
    pub fn local_addr(&self) -> Option<SocketAddr> {
        self.local_addr
    }

    /// What TLS was agreed on, and the client's verified certificates; none where the connection is without TLS.
    #[cfg(feature = "tls")]
    pub fn tls(&self) -> Option<&TlsInfo> {
        self.tls.as_ref()
    }
}
