//! Settings of a client's TCP connections: [`TcpOptions`].

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use socket2::{SockRef, TcpKeepalive};
use tokio::net::{TcpSocket, TcpStream};

/// Options of the TCP sockets that a channel connects with. They do nothing on UNIX sockets and connectors.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TcpOptions {
    /// TCP_NODELAY; set by default. Thalweg batches what it writes, so Nagle's algorithm only delays it.
    pub nodelay: bool,
    /// Silence after which the kernel probes the peer (TCP keepalive). `None`, the default, turns probing off.
    pub keepalive: Option<Duration>,
    /// Time between two probes that are not acknowledged; the system's by default.
    pub keepalive_interval: Option<Duration>,
    /// Unacknowledged probes after which the connection is lost; the system's number by default.
    pub keepalive_retries: Option<u32>,
    /// Local address to connect from; the system's choice by default. Addresses of the other IP version are not tried.
    pub local_address: Option<IpAddr>,
}

impl Default for TcpOptions {
    fn default() -> Self {
        Self {
            nodelay: true,
            keepalive: None,
            keepalive_interval: None,
            keepalive_retries: None,
            local_address: None,
        }
    }
}

impl TcpOptions {
    /// Connects, in the current runtime.
    pub(crate) async fn connect(&self, address: SocketAddr) -> io::Result<TcpStream> {
        let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
        if let Some(local) = self.local_address {
            socket.bind(SocketAddr::new(local, 0))?;
        }
        let stream = socket.connect(address).await?;
        stream.set_nodelay(self.nodelay)?;
        if let Some(keepalive) = self.keepalive() {
            SockRef::from(&stream).set_tcp_keepalive(&keepalive)?;
        }
        Ok(stream)
    }

    fn keepalive(&self) -> Option<TcpKeepalive> {
        let mut keepalive = TcpKeepalive::new().with_time(self.keepalive?);
        if let Some(interval) = self.keepalive_interval {
            keepalive = keepalive.with_interval(interval);
        }
        if let Some(retries) = self.keepalive_retries {
            keepalive = keepalive.with_retries(retries);
        }
        Some(keepalive)
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use tokio::net::TcpListener;

    use super::*;

    #[tokio::test]
    async fn sockets_have_the_options_that_were_set() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let stream = TcpOptions::default().connect(address).await.unwrap();
        assert!(stream.nodelay().unwrap() && !SockRef::from(&stream).keepalive().unwrap());
        let options = TcpOptions {
            nodelay: false,
            keepalive: Some(Duration::from_secs(61)),
            keepalive_interval: Some(Duration::from_secs(7)),
            keepalive_retries: Some(3),
            local_address: Some(Ipv4Addr::new(127, 0, 0, 2).into()),
        };
        let stream = options.connect(address).await.unwrap();
        let socket = SockRef::from(&stream);
        assert!(!stream.nodelay().unwrap() && socket.keepalive().unwrap());
        assert_eq!(socket.tcp_keepalive_time().unwrap(), Duration::from_secs(61));
        assert_eq!(socket.tcp_keepalive_interval().unwrap(), Duration::from_secs(7));
        assert_eq!(socket.tcp_keepalive_retries().unwrap(), 3);
        assert_eq!(stream.local_addr().unwrap().ip(), Ipv4Addr::new(127, 0, 0, 2));
    }
}
