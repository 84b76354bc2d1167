//! Limits of HTTP/1.1 clients: [`Http1Limits`].

use std::time::Duration;

/// Size and time limits of HTTP/1.1 clients.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Http1Limits {
    /// Maximum time to receive a request's head, from its first byte to its last; 10 s by default.
    pub header_timeout: Duration,
    /// Maximum time without a request; 75 s by default, as in nginx. `None`: unlimited.
    pub idle_timeout: Option<Duration>,
    /// Maximum size of the request line and the header fields; 16 KiB by default.
    pub max_head_size: usize,
    /// Maximum number of header fields of a request; 100 by default.
    pub max_headers: usize,
    /// Maximum time to receive a request's body, plus one second per KiB received; 30 s by default. In a stream it
    /// applies to each message from its first byte to its last, and pauses between messages are unlimited. The clock
    /// stops while the service does not read. `None`: unlimited.
    ///
    /// It also applies over HTTP/2 to non-gRPC requests. For a fallback it limits bodies of known length, and over
    /// HTTP/1.1 each chunk of other bodies.
    pub request_timeout: Option<Duration>,
    /// Maximum lag of a client behind the minimum rate of 1 KiB/s at which it must accept response data; 60 s by
    /// default. `None`: no minimum rate.
    pub reply_timeout: Option<Duration>,
}

impl Default for Http1Limits {
    fn default() -> Self {
        Self {
            header_timeout: Duration::from_secs(10),
            idle_timeout: Some(Duration::from_secs(75)),
            max_head_size: 16 << 10,
            max_headers: 100,
            request_timeout: Some(Duration::from_secs(30)),
            reply_timeout: Some(Duration::from_secs(60)),
        }
    }
}

impl Http1Limits {
    /// Sets [`header_timeout`](field@Self::header_timeout).
    pub fn header_timeout(mut self, header_timeout: Duration) -> Self {
        self.header_timeout = header_timeout;
        self
    }

    /// Sets [`idle_timeout`](field@Self::idle_timeout).
    pub fn idle_timeout(mut self, idle_timeout: Option<Duration>) -> Self {
        self.idle_timeout = idle_timeout;
        self
    }

    /// Sets [`max_head_size`](field@Self::max_head_size).
    pub fn max_head_size(mut self, max_head_size: usize) -> Self {
        self.max_head_size = max_head_size;
        self
    }

    /// Sets [`max_headers`](field@Self::max_headers).
    pub fn max_headers(mut self, max_headers: usize) -> Self {
        self.max_headers = max_headers;
        self
    }

    /// Sets [`request_timeout`](field@Self::request_timeout).
    pub fn request_timeout(mut self, request_timeout: Option<Duration>) -> Self {
        self.request_timeout = request_timeout;
        self
    }

    /// Sets [`reply_timeout`](field@Self::reply_timeout).
    pub fn reply_timeout(mut self, reply_timeout: Option<Duration>) -> Self {
        self.reply_timeout = reply_timeout;
        self
    }
}
