//! gRPC calls in packet captures of `tcpdump` and Wireshark: pcap or pcapng with Ethernet, Linux cooked capture,
//! loopback or raw IP.
//!
//! [`read`] processes packets in order and passes on each [`Call`] when it ends. Missing data is reported, not guessed.
//! Connections whose start is missing cannot be decoded, because HPACK state is unknown, nor can a direction after lost
//! bytes. [`read_with_keys`] decrypts TLS with the secrets of a [`KeyLog`].
//!
//! ```no_run
//! use std::fs::File;
//! use thalweg_inspect::capture::{Limits, read};
//!
//! let summary = read(File::open("calls.pcapng")?, &Limits::default(), |call| {
//!     let method = call.method().unwrap_or_default();
//!     println!("{method}: status {:?}, {} messages back", call.status(), call.response.message_count);
//!     // There may be more.
//!     true
//! })?;
//! println!("{} calls on {} connections of HTTP/2", summary.calls, summary.http2);
//! # Ok::<(), thalweg_inspect::capture::CaptureError>(())
//! ```
//!
//! Stages: `container` reads packets from the file, `segment` finds the TCP segment and `connections` its connection.
//! `reassembly` orders the bytes of a direction. `protocol` detects the protocol, `frames` and `exchange` follow
//! HTTP/2, and `messages` splits DATA into gRPC messages.
//!
//! [`Limits`] bounds memory for any capture.

mod call;
mod connections;
mod container;
mod frames;
mod http2;
mod limits;
mod messages;
mod protocol;
mod reassembly;
mod segment;
mod summary;
mod tls;
mod transcript;

use std::io::Read;

pub use call::{Call, CallDirection, CallEnd, Endpoint, Fields, Message};
pub use container::{CaptureError, is_capture};
pub use limits::Limits;
pub use summary::Summary;
pub use tls::{KeyLog, KeyLogError};

use connections::Connections;
use segment::Parsed;

/// Reads a capture and passes each call to `each` when it ends, or at the end of the capture. Stops when `each` returns
/// false.
///
/// # Errors
///
/// Returns an error if the input is not a capture. A broken or truncated capture is read up to the defect, which
/// [`Summary::problem`] describes.
pub fn read(
    input: impl Read + Send,
    limits: &Limits,
    each: impl FnMut(Call) -> bool,
) -> Result<Summary, CaptureError> {
    read_with_keys(input, limits, &KeyLog::default(), each)
}

/// Reads a capture as [`read`] does, and decrypts TLS connections whose secrets are in `keys`.
///
/// # Errors
///
/// See [`read`].
pub fn read_with_keys(
    input: impl Read + Send,
    limits: &Limits,
    keys: &KeyLog,
    mut each: impl FnMut(Call) -> bool,
) -> Result<Summary, CaptureError> {
    let mut connections = Connections::new(*limits, keys.clone());
    let mut summary = Summary::default();
    let mut calls = Vec::new();
    let mut continues = true;
    let problem = container::packets(input, |packet| {
        summary.packets += 1;
        summary.cut_packets += u64::from(packet.cut > 0);
        match segment::parse(&packet) {
            Parsed::Segment(segment) => connections.push(&segment, &mut summary, &mut calls),
            Parsed::Fragment => summary.fragments += 1,
            Parsed::UnknownLink(link) => {
                summary.unknown_links += 1;
                summary.unknown_link = Some(link);
            }
            Parsed::Other => {}
        }
        continues = calls.drain(..).all(&mut each);
        continues
    })?;
    summary.problem = problem;
    if continues {
        connections.end(&mut summary, &mut calls);
        calls.drain(..).all(&mut each);
    }
    Ok(summary)
}
