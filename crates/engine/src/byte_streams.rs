//! Connections of a client without HTTP/2 on them: [`ByteStreams`].

use std::fmt;

use crate::channel::ChannelConfig;
use crate::destination::{ConnectError, Destination};
use crate::lanes::{ByteStream, Dialer};
use crate::server_address::ServerAddress;
use crate::status::Status;

/// Makes connections to a [`Channel`](crate::Channel)'s target as a channel does, for another protocol than HTTP/2: the
/// same targets, the same sockets, the same TLS. By ALPN they are HTTP/1.1's.
pub struct ByteStreams {
    dialer: Dialer,
    scheme: &'static str,
    authority: String,
    user_agent: String,
}

impl ByteStreams {
    /// To `target`, as [`Channel::new`](crate::Channel::new) has it. Of the configuration count its time to connect,
    /// TCP options, user agent, authority, TLS and connector.
    ///
    /// # Errors
    /// When the target, the authority or the user agent can't be understood, or TLS can't be set up. Whether there is a
    /// server is not looked at.
    pub fn new(target: &str, config: &ChannelConfig) -> Result<Self, ConnectError> {
        let Destination {
            target,
            scheme,
            authority,
            user_agent,
            #[cfg(feature = "tls")]
            tls,
        } = Destination::new(target, config.wanted())?;
        let dialer = Dialer {
            target,
            transport: config.transport(),
            timeout: config.connect_timeout,
            #[cfg(feature = "tls")]
            tls,
        };
        Ok(Self { dialer, scheme, authority, user_agent })
    }

    /// A connection. It runs in the runtime that this is called in.
    ///
    /// # Errors
    /// UNAVAILABLE, with the reason.
    pub async fn connect(&self) -> Result<Box<dyn ByteStream>, Status> {
        self.dialer.connect().await
    }

    /// `http` or `https`.
    pub fn scheme(&self) -> &'static str {
        self.scheme
    }

    /// What the server is called there: `Host`.
    pub fn authority(&self) -> &str {
        &self.authority
    }

    /// `user-agent`.
    pub fn user_agent(&self) -> &str {
        &self.user_agent
    }

    /// Whom it connects to.
    pub fn server(&self) -> ServerAddress {
        self.dialer.target.server()
    }
}

impl fmt::Debug for ByteStreams {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ByteStreams").field("dialer", &self.dialer).finish_non_exhaustive()
    }
}
