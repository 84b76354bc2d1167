//! TCP connections that are set up otherwise than the engine does it.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use socket2::{SockRef, TcpKeepalive};
use thalweg_engine::ChannelConfig;
use tokio::net::{TcpSocket, TcpStream};

/// What may be said of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TcpOptions {
    pub(super) nodelay: bool,
    pub(super) keepalive: Option<Duration>,
    pub(super) keepalive_interval: Option<Duration>,
    pub(super) keepalive_retries: Option<u32>,
    pub(super) local_address: Option<IpAddr>,
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
    /// Whether the engine's own connections are as this says.
    pub(super) fn is_default(&self) -> bool {
        self.nodelay && self.keepalive.is_none() && self.local_address.is_none()
    }

    /// Has a channel connect to `host` as this says.
    pub(super) fn connect_by(&self, config: &mut ChannelConfig, host: &str, port: u16) {
        let options = self.clone();
        let target = format!("{host}:{port}");
        config.set_connector(move || {
            let (options, target) = (options.clone(), target.clone());
            async move { options.connect(&target).await }
        });
    }

    /// Tries the addresses of `target` one by one.
    async fn connect(&self, target: &str) -> io::Result<TcpStream> {
        let mut failure = io::Error::new(io::ErrorKind::NotFound, "the name has no address of this kind");
        for address in tokio::net::lookup_host(target).await? {
            if self.local_address.is_some_and(|local| local.is_ipv4() != address.is_ipv4()) {
                continue;
            }
            match self.connect_to(address).await {
                Ok(stream) => return Ok(stream),
                Err(error) => failure = error,
            }
        }
        Err(failure)
    }

    async fn connect_to(&self, address: SocketAddr) -> io::Result<TcpStream> {
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
        let keepalive = TcpKeepalive::new().with_time(self.keepalive?);
        let keepalive = match self.keepalive_interval {
            Some(interval) => keepalive.with_interval(interval),
            None => keepalive,
        };
        Some(match self.keepalive_retries {
            Some(retries) => keepalive.with_retries(retries),
            None => keepalive,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use tokio::net::TcpListener;

    use super::*;

    async fn connected(options: &TcpOptions) -> TcpStream {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let target = format!("localhost:{}", listener.local_addr().unwrap().port());
        options.connect(&target).await.unwrap()
    }

    #[tokio::test]
    async fn sockets_are_as_they_were_asked_for() {
        let stream = connected(&TcpOptions::default()).await;
        assert!(stream.nodelay().unwrap() && !SockRef::from(&stream).keepalive().unwrap());
        let options = TcpOptions {
            nodelay: false,
            keepalive: Some(Duration::from_secs(61)),
            keepalive_interval: Some(Duration::from_secs(7)),
            keepalive_retries: Some(3),
            local_address: Some(Ipv4Addr::new(127, 0, 0, 2).into()),
        };
        let stream = connected(&options).await;
        let socket = SockRef::from(&stream);
        assert!(!stream.nodelay().unwrap() && socket.keepalive().unwrap());
        assert_eq!(socket.tcp_keepalive_time().unwrap(), Duration::from_secs(61));
        assert_eq!(socket.tcp_keepalive_interval().unwrap(), Duration::from_secs(7));
        assert_eq!(socket.tcp_keepalive_retries().unwrap(), 3);
        assert_eq!(stream.local_addr().unwrap().ip(), Ipv4Addr::new(127, 0, 0, 2));
    }

    #[tokio::test]
    async fn an_address_of_the_other_ip_version_is_not_tried() {
        let options = TcpOptions { local_address: Some("::1".parse().unwrap()), ..TcpOptions::default() };
        let error = options.connect("127.0.0.1:1").await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
    }
}
