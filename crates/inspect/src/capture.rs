//! gRPC calls in a packet capture, as `tcpdump` and Wireshark write it: pcap or pcapng, of Ethernet, Linux's cooked
//! capture, loopback and raw IP.
//!
//! [`read`] takes packets as they come and gives each [`Call`] when it has ended. What the capture does not have is
//! said, and not guessed: a connection that began before it cannot be followed, as HPACK's tables are not known, nor
//! can a direction of which bytes are missing. TLS is opened by [`read_with_keys`], with the secrets of a [`KeyLog`].
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
//! A packet goes this way: `container` takes it out of the file, `segment` finds the TCP segment in it, `connections`
//! whose it is, `reassembly` puts the direction's bytes in order, `protocol` sees what is spoken, `frames` and
//! `exchange` follow HTTP/2, and `messages` cuts its DATA into gRPC's messages.
//!
//! Memory is bounded by [`Limits`], whatever the capture holds.

mod call;
mod connections;
mod container;
mod exchange;
mod frames;
mod limits;
mod messages;
mod protocol;
mod reassembly;
mod segment;
mod summary;
mod tls;
mod transcript;

use std::io::Read;

pub use call::{Call, End, Fields, Message, Peer, Side};
pub use container::{CaptureError, is_capture};
pub use limits::Limits;
pub use summary::Summary;
pub use tls::{KeyLog, KeyLogError};

use connections::Connections;
use segment::Parsed;

/// Reads a capture to its end, and gives `each` call as soon as it has ended, those that have not at the capture's end.
/// It stops when `each` gives false.
///
/// # Errors
///
/// If the input is no capture. One that is broken or cut off somewhere is read up to there:
/// [`Summary::problem`] says so.
pub fn read(
    input: impl Read + Send,
    limits: &Limits,
    each: impl FnMut(Call) -> bool,
) -> Result<Summary, CaptureError> {
    read_with_keys(input, limits, &KeyLog::default(), each)
}

/// Reads a capture as [`read`] does, and opens the TLS connections whose secrets are in `keys`.
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
    let mut goes_on = true;
    let problem = container::packets(input, |packet| {
        summary.packets += 1;
        summary.cut_packets += u64::from(packet.cut > 0);
        match segment::parse(&packet) {
            Parsed::Segment(segment) => connections.take(&segment, &mut summary, &mut calls),
            Parsed::Fragment => summary.fragments += 1,
            Parsed::UnknownLink(link) => {
                summary.unknown_links += 1;
                summary.unknown_link = Some(link);
            }
            Parsed::Other => {}
        }
        goes_on = calls.drain(..).all(&mut each);
        goes_on
    })?;
    summary.problem = problem;
    if goes_on {
        connections.end(&mut summary, &mut calls);
        calls.drain(..).all(&mut each);
    }
    Ok(summary)
}
