//! Client connections without HTTP/2: [`ByteStreams`].

use std::fmt;

use crate::channel::ChannelConfig;
use crate::destination::{ConnectError, Destination};
use crate::lanes::{ByteStream, Dialer};
use crate::server_address::ServerAddress;
use crate::status::Status;

/// Connects to a [`Channel`](crate::Channel)'s target for a protocol other than HTTP/2, with the same targets, sockets
/// and TLS as a channel. ALPN offers HTTP/1.1.
pub struct ByteStreams {
    dialer: Dialer,
    scheme: &'static str,
    authority: String,
    user_agent: String,
}

impl ByteStreams {
    /// Creates a connector for `target`, in the syntax of [`Channel::new`](crate::Channel::new). It uses the
    /// configuration's connect timeout, TCP options, user agent, authority, TLS and connector.
    ///
    /// # Errors
    /// Returns an error if the target, authority or user agent is invalid, or if TLS cannot be set up. It does not
    /// check that the server exists.
    pub fn new(target: &str, config: &ChannelConfig) -> Result<Self, ConnectError> {
        let destination = Destination::new(target, config.destination_settings())?;
        let resolver = config.resolver(&destination);
        let dialer = Dialer {
            addresses: config.addresses(&destination, &resolver, &config.load_balancing),
            transport: config.transport(&destination),
            #[cfg(feature = "tls")]
            tls: destination.tls,
        };
        let Destination { scheme, authority, user_agent, .. } = destination;
        Ok(Self { dialer, scheme, authority, user_agent })
    }

    /// Connects to the server. The connection runs in the current runtime.
    ///
    /// # Errors
    /// Returns UNAVAILABLE with the reason.
    pub async fn connect(&self) -> Result<Box<dyn ByteStream>, Status> {
        self.dialer.connect().await
    }

    /// Returns the scheme, `http` or `https`.
    pub fn scheme(&self) -> &'static str {
        self.scheme
    }

    /// Returns the authority, for the `Host` field.
    pub fn authority(&self) -> &str {
        &self.authority
    }

    /// Returns the `user-agent` value.
    pub fn user_agent(&self) -> &str {
        &self.user_agent
    }

    /// Returns the server this connects to.
    pub fn server(&self) -> ServerAddress {
        self.dialer.addresses.target.server()
    }
}

impl fmt::Debug for ByteStreams {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ByteStreams").field("dialer", &self.dialer).finish_non_exhaustive()
    }
}
