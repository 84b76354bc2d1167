//! Which proxy a channel uses: [`ProxyConfig`].

use super::environment::ProxyEnvironment;
use super::url::{Proxy, ProxyError};

/// The proxy of a channel.
///
/// A proxy gets the server's name, unless a resolver of the application has found its address.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum ProxyConfig {
    /// None.
    #[default]
    Off,
    /// The proxy that the environment names, as in gRPC's other implementations:
    ///
    /// - `https_proxy`, else `HTTPS_PROXY`, is the proxy's URL, with or without TLS to the server.
    /// - `no_proxy`, else `NO_PROXY`, lists servers that need none, separated by commas: `example.com` with its
    ///   subdomains, `.example.com` without itself, IP addresses, `10.0.0.0/8`, each with an optional `:port`, or `*`.
    ///
    /// Loopback addresses and `localhost` need none. It only applies to `dns` targets, and neither with a resolver nor
    /// with a connector of the application. The variables are read when the channel is created.
    Environment,
    /// This proxy, for all addresses except UNIX sockets. Connectors ignore it.
    Through(Proxy),
}

impl From<Proxy> for ProxyConfig {
    fn from(proxy: Proxy) -> Self {
        Self::Through(proxy)
    }
}

impl ProxyConfig {
    /// Returns the proxy to a server. `name` is its host and port, if it is to be looked up in DNS.
    pub(crate) fn choose(&self, name: Option<(&str, u16)>) -> Result<Option<Proxy>, ProxyError> {
        match (self, name) {
            (Self::Off, _) | (Self::Environment, None) => Ok(None),
            (Self::Through(proxy), _) => Ok(Some(proxy.clone())),
            (Self::Environment, Some((host, port))) => ProxyEnvironment::read().proxy(host, port),
        }
    }
}
