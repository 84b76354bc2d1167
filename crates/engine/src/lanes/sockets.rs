//! Connecting sockets, directly or through a proxy.

use std::sync::Arc;
use std::time::Duration;

use thalweg_balance::{Address, Endpoint};
#[cfg(feature = "tls")]
use tokio::io::{AsyncRead, AsyncWrite};

use super::addresses::{Addresses, Step};
use super::refusal::refused;
use super::target::Target;
#[cfg(feature = "tls")]
use crate::net::Socket;
use crate::net::{Accepted, TcpOptions};
use crate::proxy::{self, ReadyProxy};
use crate::resolver::AddressSource;
use crate::status::{Code, Status};
#[cfg(feature = "tls")]
use crate::tls::ClientTls;

/// How the sockets of a channel are connected.
#[derive(Clone, Debug)]
pub(crate) struct Sockets {
    pub(super) tcp: TcpOptions,
    proxy: Option<Arc<Via>>,
}

/// The proxy that all addresses except UNIX sockets are connected through.
#[derive(Debug)]
struct Via {
    ready: ReadyProxy,
    addresses: Addresses,
}

/// A tunnel to be opened inside TLS to the proxy.
#[cfg(feature = "tls")]
pub(super) struct SecureTunnel<'a> {
    via: &'a Via,
    tls: &'a ClientTls,
    address: &'a Address,
}

impl Sockets {
    /// Creates it for sockets that connect within `timeout`.
    pub(crate) fn new(tcp: TcpOptions, proxy: Option<ReadyProxy>, timeout: Duration) -> Self {
        let via = |ready: ReadyProxy| {
            let target = Target::of_host(ready.proxy.host_and_port());
            let name = Endpoint::with_addresses(vec![Address::Name(target.authority())]);
            let addresses = Addresses::new(target, AddressSource::Endpoint(name), timeout);
            Arc::new(Via { ready, addresses })
        };
        Self { tcp, proxy: proxy.map(via) }
    }

    /// Connects to `address`, or to a proxy with TLS: then a [`secure_tunnel`](Self::secure_tunnel) is to be opened.
    ///
    /// # Errors
    /// UNAVAILABLE, with the reason.
    pub(super) async fn connect(&self, address: &Address) -> Result<Accepted, Status> {
        match self.via(address) {
            None => Accepted::connect(address, &self.tcp).await.map_err(|error| refused(address, &error)),
            Some(via) => via.connect(address, &self.tcp).await,
        }
    }

    /// Returns the tunnel to open on a socket that was connected for `address`, if any.
    #[cfg(feature = "tls")]
    pub(super) fn secure_tunnel<'a>(&'a self, address: &'a Address) -> Option<SecureTunnel<'a>> {
        let via = self.via(address)?;
        Some(SecureTunnel { via, tls: via.ready.tls.as_ref()?, address })
    }

    fn via(&self, address: &Address) -> Option<&Via> {
        match address {
            Address::Unix(_) | Address::UnixAbstract(_) => None,
            Address::Tcp(_) | Address::Name(_) => self.proxy.as_deref(),
        }
    }
}

impl Via {
    async fn connect(&self, address: &Address, tcp: &TcpOptions) -> Result<Accepted, Status> {
        let ReadyProxy { proxy, .. } = &self.ready;
        let attempt = |at: Address, _: Step| async move {
            let Address::Tcp(at) = at else {
                return Err(Status::local(Code::Unavailable, "a proxy has a TCP address"));
            };
            tcp.connect(at).await.map_err(|error| refused(&at, &error))
        };
        let stream = self.addresses.first_to_connect(Some(tcp), attempt, || (), |outcome| outcome).await;
        let stream = stream.map_err(|status| self.failed(address, &status.message()))?;
        let stream = if proxy.is_secure() {
            stream
        } else {
            let stream = proxy::open_tunnel(stream, proxy, &address.to_string()).await;
            stream.map_err(|error| self.failed(address, &error))?
        };
        Accepted::from_tcp(stream).map_err(|error| self.failed(address, &error))
    }

    fn failed(&self, address: &Address, why: &dyn std::fmt::Display) -> Status {
        let proxy = &self.ready.proxy;
        Status::local(
            Code::Unavailable,
            format!("failed to connect to {address} through the proxy {proxy}: {why}"),
        )
    }
}

#[cfg(feature = "tls")]
impl SecureTunnel<'_> {
    /// Opens the tunnel on a connection to the proxy. Later bytes are the server's.
    ///
    /// # Errors
    /// UNAVAILABLE, with the reason.
    pub(super) async fn open(
        self,
        socket: Socket,
    ) -> Result<impl AsyncRead + AsyncWrite + Unpin + Send + use<>, Status> {
        let Self { via, tls, address } = self;
        let stream = proxy::open_secure_tunnel(socket, &via.ready.proxy, tls, &address.to_string()).await;
        stream.map_err(|error| via.failed(address, &error))
    }
}
