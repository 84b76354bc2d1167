//! What clients of HTTP/1.1 may do: [`Http1Limits`].

use std::time::Duration;

/// What clients of HTTP/1.1 may do, and how long it may take.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Http1Limits {
    /// How long a request's head may take from its first byte to its last; 10 s.
    pub header_timeout: Duration,
    /// Maximum time that a connection may be without a request; 75 s by default, as in nginx. `None`: for ever.
    pub idle_timeout: Option<Duration>,
    /// How long a request line and its fields may be; 16 KiB.
    pub max_head_size: usize,
    /// How many fields a request may have; 100.
    pub max_headers: usize,
    /// How long a request's body may take to come, and a second more for each KiB of it; 30 s. Of a stream each message
    /// has this time, from its first byte to its last, and the pauses between them have none. While nobody reads, time
    /// stands still. `None`: as long as it takes.
    ///
    /// It holds over HTTP/2, too, for what is not gRPC. Bodies that a fallback reads have it where their length is
    /// known from the start, and over HTTP/1.1 each chunk of the others has it.
    pub request_timeout: Option<Duration>,
    /// How far a client may be behind the least rate at which it has to take what waits for it, 1 KiB a second; 60 s.
    /// `None`: nothing is demanded.
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
