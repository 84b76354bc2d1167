//! Kernel keepalive of TCP connections: [`TcpKeepalive`].

use std::io;
use std::time::Duration;

/// TCP keepalive of a server's sockets: the kernel probes an idle connection, and closes it if the peer does not
/// respond. This detects vanished clients, even over HTTP/1.1, which has no PING.
///
/// By default it probes after 60 s, then every 15 s, and closes the connection after 4 probes without a response: some
/// two minutes after the last byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TcpKeepalive {
    /// Time without any bytes before the first probe; 60 s by default, in whole seconds.
    pub idle: Duration,
    /// Time between two probes; 15 s by default, in whole seconds.
    pub interval: Duration,
    /// Probes without a response that end the connection; 4 by default.
    pub retries: u32,
}

impl Default for TcpKeepalive {
    fn default() -> Self {
        Self { idle: Duration::from_secs(60), interval: Duration::from_secs(15), retries: 4 }
    }
}

impl TcpKeepalive {
    /// Returns the default, with the first probe after `idle`.
    pub fn after(idle: Duration) -> Self {
        Self { idle, ..Self::default() }
    }

    /// Sets the time between two probes.
    pub fn interval(mut self, interval: Duration) -> Self {
        self.interval = interval;
        self
    }

    /// Sets how many probes without a response end the connection.
    pub fn retries(mut self, retries: u32) -> Self {
        self.retries = retries;
        self
    }

    /// Applies the settings to a socket.
    pub(super) fn apply(self, socket: &socket2::Socket) -> io::Result<()> {
        let second = Duration::from_secs(1);
        let keepalive = socket2::TcpKeepalive::new()
            .with_time(self.idle.max(second))
            .with_interval(self.interval.max(second))
            .with_retries(self.retries.max(1));
        socket.set_tcp_keepalive(&keepalive)
    }
}
