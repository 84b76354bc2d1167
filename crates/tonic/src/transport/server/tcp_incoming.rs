//! [`TcpIncoming`]: connections accepted over TCP, with socket options.

use std::io;
use std::net::{SocketAddr, TcpListener as StdTcpListener};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use socket2::{SockRef, TcpKeepalive};
use tokio::net::{TcpListener, TcpStream};
use tokio_stream::Stream;

/// Connections that a listener accepts.
#[derive(Debug)]
pub struct TcpIncoming {
    listener: TcpListener,
    nodelay: Option<bool>,
    keepalive: Option<Duration>,
    keepalive_interval: Option<Duration>,
    keepalive_retries: Option<u32>,
}

impl TcpIncoming {
    /// Listens at an address.
    ///
    /// # Errors
    ///
    /// An error of the system, such as an address in use.
    ///
    /// # Panics
    ///
    /// Outside of a Tokio runtime.
    pub fn bind(addr: SocketAddr) -> io::Result<Self> {
        let listener = StdTcpListener::bind(addr)?;
        listener.set_nonblocking(true)?;
        TcpListener::from_std(listener).map(Self::from)
    }

    /// Sets `TCP_NODELAY` of accepted connections; the system's default, off, if not set.
    #[must_use]
    pub fn with_nodelay(self, nodelay: Option<bool>) -> Self {
        Self { nodelay, ..self }
    }

    /// Sets after which idle time TCP tests accepted connections; never by default.
    #[must_use]
    pub fn with_keepalive(self, keepalive_time: Option<Duration>) -> Self {
        Self { keepalive: keepalive_time, ..self }
    }

    /// Sets the time between such tests, if there is a keepalive time; the system's default if not set.
    #[must_use]
    pub fn with_keepalive_interval(self, keepalive_interval: Option<Duration>) -> Self {
        Self { keepalive_interval, ..self }
    }

    /// Sets after how many tests without a response a connection is closed, if there is a keepalive time; the system's
    /// default if not set.
    #[must_use]
    pub fn with_keepalive_retries(self, keepalive_retries: Option<u32>) -> Self {
        Self { keepalive_retries, ..self }
    }

    /// Returns the address of the listener.
    ///
    /// # Errors
    ///
    /// An error of the system.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    fn set_options(&self, stream: &TcpStream) -> io::Result<()> {
        if let Some(nodelay) = self.nodelay {
            stream.set_nodelay(nodelay)?;
        }
        let Some(time) = self.keepalive else { return Ok(()) };
        let mut keepalive = TcpKeepalive::new().with_time(time);
        if let Some(interval) = self.keepalive_interval {
            keepalive = keepalive.with_interval(interval);
        }
        if let Some(retries) = self.keepalive_retries {
            keepalive = keepalive.with_retries(retries);
        }
        SockRef::from(stream).set_tcp_keepalive(&keepalive)
    }
}

impl From<TcpListener> for TcpIncoming {
    fn from(listener: TcpListener) -> Self {
        Self { listener, nodelay: None, keepalive: None, keepalive_interval: None, keepalive_retries: None }
    }
}

impl Stream for TcpIncoming {
    type Item = io::Result<TcpStream>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let stream = match ready!(self.listener.poll_accept(cx)) {
            Ok((stream, _)) => stream,
            Err(error) => return Poll::Ready(Some(Err(error))),
        };
        if let Err(error) = self.set_options(&stream) {
            tracing::warn!(%error, "cannot set the options of an accepted socket");
        }
        Poll::Ready(Some(Ok(stream)))
    }
}
