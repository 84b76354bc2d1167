//! Sans-I/O HTTP/2 ([RFC 9113]) and HPACK ([RFC 7541]): takes bytes and times, returns events and bytes.
//!
//! A [`Connection`] has no socket, clock or task. The caller
//!
//! 1. passes received bytes and takes events until there are none ([`Connection::poll_event`]),
//! 2. sends headers and data, resets streams, and releases receive window,
//! 3. takes the bytes to write ([`Connection::take_output`]) until there are none, and
//! 4. calls [`Connection::handle_timeout`] at [`Connection::timeout`].
//!
//! The same bytes and times give the same events, so simulations can replay a failure from a seed.
//!
//! ```
//! use std::time::Instant;
//! use thalweg_http2::{Block, Config, Connection, Event, FieldList, Indexing, Output, Tag};
//!
//! let now = Instant::now();
//! let mut client = Connection::client(Config::default(), now);
//! let mut server = Connection::server(Config::default(), now);
//!
//! let mut headers = FieldList::new();
//! for (name, value) in [(":method", "GET"), (":scheme", "http"), (":path", "/"), (":authority", "a.example")] {
//!     headers.push(name.as_bytes(), value.as_bytes(), Indexing::Insert);
//! }
//! let sent = client.open(Tag(7), Block { fixed: None, extra: &headers }, true)?;
//!
//! // A socket would carry these bytes.
//! let (mut output, mut wire) = (Output::default(), Vec::new());
//! client.take_output(&mut output);
//! output.copy_to(&mut wire);
//!
//! let mut input = &wire[..];
//! let event = server.poll_event(&mut input, now)?;
//! assert!(matches!(event, Some(Event::Headers { stream, end_stream: true, .. }) if stream == sent));
//! assert_eq!(server.fields().path(), Some(&b"/"[..]));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! `examples/blocking_server.rs` is a complete run loop on a socket.
//!
//! [RFC 9113]: https://www.rfc-editor.org/rfc/rfc9113
//! [RFC 7541]: https://www.rfc-editor.org/rfc/rfc7541
#![forbid(unsafe_code)]

mod abuse_budget;
mod config;
mod connection;
mod error;
mod event;
pub mod fields;
mod flow;
#[cfg(feature = "testing")]
pub mod frame;
#[cfg(not(feature = "testing"))]
#[expect(unreachable_pub, reason = "public with the feature `testing`")]
mod frame;
mod handshake;
mod hash;
mod headers;
mod headers_cache;
#[cfg(feature = "testing")]
pub mod hpack;
#[cfg(not(feature = "testing"))]
#[expect(unreachable_pub, reason = "public with the feature `testing`")]
mod hpack;
mod limits;
mod output;
mod ping_policy;
mod ready_queue;
mod receiving;
mod send_queue;
mod sending;
mod setters;
mod shutdown;
mod stream;
mod stream_table;
mod violation;

pub use config::Config;
pub use connection::Connection;
pub use error::{ConnectionError, ErrorCode, Initiator, OpenError, SendError};
pub use event::{Event, ResetCause, ResetReason};
pub use fields::{Block, Field, FieldList, FixedFields, Indexing};
pub use frame::PREFACE;
pub use headers::Headers;
pub use limits::Limits;
pub use output::Output;
pub use ping_policy::PingPolicy;
pub use receiving::ExpectedData;
pub use stream::{QueuedStream, StreamId, Tag};
pub use violation::Violation;
