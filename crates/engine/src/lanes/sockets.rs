//! Connecting sockets, directly or through a proxy.

use std::sync::Arc;
use std::time::Duration;

use thalweg_balance::{Address, Endpoint};

use super::addresses::{Addresses, Step};
use super::refusal::refused;
use super::target::Target;
use crate::net::{Accepted, TcpOptions};
use crate::proxy::{self, Proxy};
use crate::resolver::AddressSource;
use crate::status::Status;

/// How the sockets of a channel are connected.
#[derive(Clone, Debug)]
pub(crate) struct Sockets {
    pub(super) tcp: TcpOptions,
    proxy: Option<Arc<Via>>,
}

/// The proxy that all addresses except UNIX sockets are connected through.
#[derive(Debug)]
struct Via {
    proxy: Proxy,
    addresses: Addresses,
}

impl Sockets {
    /// Creates it for sockets that connect within `timeout`.
    pub(crate) fn new(tcp: TcpOptions, proxy: Option<Proxy>, timeout: Duration) -> Self {
        let via = |proxy: Proxy| {
            let target = Target::of_host(proxy.host_and_port());
            let name = Endpoint::with_addresses(vec![Address::Name(target.authority())]);
            let addresses = Addresses::new(target, AddressSource::Endpoint(name), timeout);
            Arc::new(Via { proxy, addresses })
        };
        Self { tcp, proxy: proxy.map(via) }
    }

    /// Connects to `address`.
    ///
    /// # Errors
    /// UNAVAILABLE, with the reason.
    pub(super) async fn connect(&self, address: &Address) -> Result<Accepted, Status> {
        match (&self.proxy, address) {
            (None, _) | (Some(_), Address::Unix(_) | Address::UnixAbstract(_)) => {
                Accepted::connect(address, &self.tcp).await.map_err(|error| refused(address, &error))
            }
            (Some(via), Address::Tcp(_) | Address::Name(_)) => via.connect(address, &self.tcp).await,
        }
    }
}

impl Via {
    async fn connect(&self, address: &Address, tcp: &TcpOptions) -> Result<Accepted, Status> {
        let Self { proxy, addresses } = self;
        let failed = |why: &dyn std::fmt::Display| {
            Status::unavailable(format!("failed to connect to {address} through the proxy {proxy}: {why}"))
        };
        let attempt = |at: Address, _: Step| async move {
            let Address::Tcp(at) = at else { return Err(Status::unavailable("a proxy has a TCP address")) };
            tcp.connect(at).await.map_err(|error| refused(&at, &error))
        };
        let stream = addresses.first_to_connect(Some(tcp), attempt, || (), |outcome| outcome).await;
        let stream = stream.map_err(|status| failed(&status.message()))?;
        let stream = proxy::open_tunnel(stream, proxy, &address.to_string()).await;
        let stream = stream.map_err(|error| failed(&error))?;
        Accepted::from_tcp(stream).map_err(|error| failed(&error))
    }
}
