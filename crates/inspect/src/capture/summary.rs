//! What else a capture has, and what it lacks.

/// What else a capture has, and what it lacks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Packets of any kind.
    pub packets: u64,
    /// TCP connections.
    pub connections: u64,
    /// Those that speak HTTP/2 and were followed.
    pub http2: u64,
    /// Those that speak TLS and could not be opened.
    pub tls: u64,
    /// Why one of these could not be opened, if it was not for want of its secrets.
    pub tls_closed: Option<String>,
    /// Those that speak something else.
    pub other: u64,
    /// Those that began before the capture did, so that nothing can be said of them.
    pub begun_before: u64,
    /// Those without any bytes.
    pub silent: u64,
    /// Those that were given up, as there were too many at once.
    pub given_up: u64,
    /// Calls that were given.
    pub calls: u64,
    /// Requests over HTTP/2 that are not gRPC's.
    pub other_requests: u64,
    /// Calls that were not followed, as there were too many at once on a connection.
    pub calls_beyond: u64,
    /// Places where bytes of a connection are not in the capture.
    pub gaps: u64,
    /// How many bytes these are.
    pub gap_bytes: u64,
    /// Packets of which the capture has only the beginning: its snapshot length was too small.
    pub cut_packets: u64,
    /// Fragments of IP packets, which are not put together.
    pub fragments: u64,
    /// Packets of a link type that is not known.
    pub unknown_links: u64,
    /// The number of such a type.
    pub unknown_link: Option<i32>,
    /// Why the capture could not be read to its end.
    pub problem: Option<String>,
}
