//! Unary gRPC calls with frames encoded once (RFC 9113, RFC 7541).
//!
//! A connection's first call adds its headers to the peer's dynamic table, and later calls refer to these entries, as
//! every client does. Responses are read by frame, without decoding header fields: a successful unary call has exactly
//! one message, a failed one none.

use std::collections::VecDeque;
use std::rc::Rc;

use super::wire::{CompletedCall, Wire, WireError};

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
const FRAME_HEADER_BYTES: usize = 9;
/// Maximum bytes of a call's message: one frame, of a size that every peer accepts (RFC 9113 §4.2).
const FRAME_BYTES_MAX: usize = 16 << 10;
/// Bytes of gRPC's message prefix.
const PREFIX_BYTES: usize = 5;
/// Initial window of a connection, both ways (RFC 9113 §6.9.2).
const WINDOW_BYTES: i64 = 65_535;
/// Increment of the receive window, sent at once, and renewed when half of it is used. 1 GiB is 200 million empty
/// responses.
const WINDOW_OPENED: u32 = 1 << 30;
/// Entries of HPACK's static table; the newest dynamic entry has the next index (RFC 7541 §2.3.3).
const STATIC_ENTRIES: u8 = 61;
/// SETTINGS_HEADER_TABLE_SIZE, and the smallest table that holds the entries of a call.
const HEADER_TABLE_SIZE: u16 = 1;
const HEADER_TABLE_BYTES_MIN: u32 = 512;

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const GOAWAY: u8 = 7;
const WINDOW_UPDATE: u8 = 8;
const END_STREAM: u8 = 1;
const ACK: u8 = 1;
const END_HEADERS: u8 = 4;
const PADDED: u8 = 8;

/// Bytes sent by all connections of a run.
#[derive(Debug)]
pub(super) struct PreparedCall {
    first_header_block: Vec<u8>,
    later_header_block: Vec<u8>,
    /// Message with its prefix.
    message: Vec<u8>,
    /// Expected bytes of a response's message with its prefix; `None` accepts any.
    response_bytes: Option<usize>,
}

impl PreparedCall {
    /// Encodes calls of `path` with this message. Returns `None` if the message needs more than one frame.
    pub(super) fn new(
        authority: &str,
        path: &str,
        message: &[u8],
        response_bytes: Option<usize>,
    ) -> Option<Self> {
        let fields: [(u8, &str, &str); 5] = [
            (4, ":path", path),
            (1, ":authority", authority),
            (0, "te", "trailers"),
            (31, "content-type", "application/grpc"),
            (58, "user-agent", concat!("thalweg-bare/", env!("CARGO_PKG_VERSION"))),
        ];
        // `:method: POST` and `:scheme: http` of the static table.
        let mut first_header_block = vec![0x83, 0x86];
        let mut later_header_block = first_header_block.clone();
        let entries = u8::try_from(fields.len()).ok()?;
        for (place, (index, name, value)) in (0_u8..).zip(fields) {
            // Literal with incremental indexing (RFC 7541 §6.2.1).
            first_header_block.push(0x40 | index);
            if index == 0 {
                string(name, &mut first_header_block);
            }
            string(value, &mut first_header_block);
            later_header_block.push(0x80 | (STATIC_ENTRIES + entries - place));
        }
        let is_small = message.len() + PREFIX_BYTES <= FRAME_BYTES_MAX;
        let mut prefixed = vec![0];
        prefixed.extend(u32::try_from(message.len()).ok()?.to_be_bytes());
        prefixed.extend(message);
        let response_bytes = response_bytes.map(|bytes| bytes + PREFIX_BYTES);
        is_small.then_some(Self { first_header_block, later_header_block, message: prefixed, response_bytes })
    }

    /// Returns the bytes a call takes of the window. A message is no larger than a frame.
    fn sent_bytes(&self) -> i64 {
        i64::from(self.message.len() as u32)
    }
}

/// Encodes a string literal without Huffman coding (RFC 7541 §5.2).
fn string(text: &str, out: &mut Vec<u8>) {
    let mut left = text.len();
    if left < 0x7f {
        out.push(left as u8);
    } else {
        out.push(0x7f);
        left -= 0x7f;
        while left >= 0x80 {
            out.push((left % 0x80) as u8 | 0x80);
            left /= 0x80;
        }
        out.push(left as u8);
    }
    out.extend(text.as_bytes());
}

#[derive(Debug)]
pub(super) struct Grpc {
    prepared: Rc<PreparedCall>,
    next_stream: u32,
    /// Remaining send window.
    window: i64,
    /// Bytes received since the last WINDOW_UPDATE.
    received: u32,
    /// Start times of the calls that wait for the window.
    waiting: VecDeque<u64>,
    open: Vec<OpenCall>,
}

/// A call in flight.
#[derive(Clone, Copy, Debug)]
struct OpenCall {
    stream: u32,
    began_ns: u64,
    /// Bytes received so far of the response's message.
    bytes: usize,
}

impl Grpc {
    pub(super) fn new(prepared: Rc<PreparedCall>) -> Self {
        let (waiting, open) = (VecDeque::new(), Vec::new());
        Self { prepared, next_stream: 1, window: WINDOW_BYTES, received: 0, waiting, open }
    }

    fn send(&mut self, began_ns: u64, out: &mut Vec<u8>) {
        let PreparedCall { first_header_block, later_header_block, message, .. } = &*self.prepared;
        let header_block = if self.next_stream == 1 { first_header_block } else { later_header_block };
        frame(HEADERS, END_HEADERS, self.next_stream, header_block, out);
        frame(DATA, END_STREAM, self.next_stream, message, out);
        self.window -= self.prepared.sent_bytes();
        self.open.push(OpenCall { stream: self.next_stream, began_ns, bytes: 0 });
        self.next_stream += 2;
    }

    fn has_room(&self) -> bool {
        self.window >= self.prepared.sent_bytes()
    }

    fn frame(
        &mut self,
        header: FrameHeader,
        payload: &[u8],
        out: &mut Vec<u8>,
        on_completed: &mut dyn FnMut(CompletedCall),
    ) -> Result<(), WireError> {
        let FrameHeader { kind, flags, stream } = header;
        match kind {
            DATA => {
                let padding = if flags & PADDED == 0 { 0 } else { payload.first().map_or(0, |it| *it + 1) };
                self.received += payload.len() as u32;
                if let Some(open) = self.open.iter_mut().find(|open| open.stream == stream) {
                    open.bytes += payload.len().saturating_sub(usize::from(padding));
                }
                if self.received >= WINDOW_OPENED / 2 {
                    frame(WINDOW_UPDATE, 0, 0, &self.received.to_be_bytes(), out);
                    self.received = 0;
                }
                // Without trailers there is no status, so the call has failed.
                self.ended(stream, flags & END_STREAM != 0, |_, _| false, on_completed);
            }
            HEADERS => {
                let is_complete = |expected: Option<usize>, bytes: usize| {
                    expected.map_or(bytes >= PREFIX_BYTES, |expected| bytes == expected)
                };
                self.ended(stream, flags & END_STREAM != 0, is_complete, on_completed);
            }
            RST_STREAM => self.ended(stream, true, |_, _| false, on_completed),
            SETTINGS if flags & ACK == 0 => {
                for setting in payload.chunks_exact(6) {
                    let name = u16::from_be_bytes([setting[0], setting[1]]);
                    let value = u32::from_be_bytes([setting[2], setting[3], setting[4], setting[5]]);
                    if name == HEADER_TABLE_SIZE && value < HEADER_TABLE_BYTES_MIN {
                        return Err(WireError("its header table has no room for the response headers"));
                    }
                }
                frame(SETTINGS, ACK, 0, &[], out);
            }
            PING if flags & ACK == 0 => frame(PING, ACK, 0, payload, out),
            GOAWAY => return Err(WireError("it sent GOAWAY")),
            WINDOW_UPDATE if stream == 0 => {
                let added = payload.first_chunk().map_or(0, |bytes| u32::from_be_bytes(*bytes));
                self.window += i64::from(added & 0x7fff_ffff);
                while self.has_room()
                    && let Some(began_ns) = self.waiting.pop_front()
                {
                    self.send(began_ns, out);
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn ended(
        &mut self,
        stream: u32,
        has_ended: bool,
        is_good: impl Fn(Option<usize>, usize) -> bool,
        on_completed: &mut dyn FnMut(CompletedCall),
    ) {
        let at = self.open.iter().position(|open| open.stream == stream).filter(|_| has_ended);
        if let Some(at) = at {
            let OpenCall { began_ns, bytes, .. } = self.open.swap_remove(at);
            on_completed(CompletedCall { began_ns, is_good: is_good(self.prepared.response_bytes, bytes) });
        }
    }
}

impl Wire for Grpc {
    fn begin(&mut self, out: &mut Vec<u8>) {
        out.extend(PREFACE);
        frame(SETTINGS, 0, 0, &[], out);
        frame(WINDOW_UPDATE, 0, 0, &WINDOW_OPENED.to_be_bytes(), out);
    }

    fn call(&mut self, now_ns: u64, out: &mut Vec<u8>) {
        if self.has_room() { self.send(now_ns, out) } else { self.waiting.push_back(now_ns) }
    }

    fn received(
        &mut self,
        bytes: &[u8],
        out: &mut Vec<u8>,
        on_completed: &mut dyn FnMut(CompletedCall),
    ) -> Result<usize, WireError> {
        let mut done = 0;
        while let Some(header) = bytes[done..].first_chunk::<FRAME_HEADER_BYTES>() {
            let length = u32::from_be_bytes([0, header[0], header[1], header[2]]) as usize;
            let Some(payload) = bytes[done + FRAME_HEADER_BYTES..].get(..length) else { break };
            let stream = u32::from_be_bytes([header[5] & 0x7f, header[6], header[7], header[8]]);
            self.frame(
                FrameHeader { kind: header[3], flags: header[4], stream },
                payload,
                out,
                on_completed,
            )?;
            done += FRAME_HEADER_BYTES + length;
        }
        Ok(done)
    }
}

/// A frame header without its length (RFC 9113 §4.1).
#[derive(Clone, Copy, Debug)]
struct FrameHeader {
    kind: u8,
    flags: u8,
    stream: u32,
}

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8], out: &mut Vec<u8>) {
    let [_, length @ ..] = (payload.len() as u32).to_be_bytes();
    out.extend(length);
    out.extend([kind, flags]);
    out.extend(stream.to_be_bytes());
    out.extend(payload);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn calls() -> Grpc {
        Grpc::new(Rc::new(PreparedCall::new("localhost", "/a.B/C", b"", Some(0)).unwrap()))
    }

    fn frames(parts: &[(u8, u8, u32, &[u8])]) -> Vec<u8> {
        let mut out = Vec::new();
        for &(kind, flags, stream, payload) in parts {
            frame(kind, flags, stream, payload, &mut out);
        }
        out
    }

    /// Checks the responses in `received` and the number of bytes left over. Returns the bytes to send.
    fn check(grpc: &mut Grpc, received: &[u8], responses: &[(u64, bool)], left: usize) -> Vec<u8> {
        let (mut out, mut completed) = (Vec::new(), Vec::new());
        let done =
            grpc.received(received, &mut out, &mut |it| completed.push((it.began_ns, it.is_good))).unwrap();
        assert_eq!((completed.as_slice(), received.len() - done), (responses, left));
        out
    }

    #[test]
    fn call_succeeds_with_one_message_and_trailers() {
        let mut grpc = calls();
        let mut out = Vec::new();
        for began_ns in 1..=4 {
            grpc.call(began_ns, &mut out);
        }
        let message: &[u8] = &[0; PREFIX_BYTES];
        let ends = HEADERS;
        check(&mut grpc, &frames(&[(HEADERS, 4, 1, b"x"), (DATA, 0, 1, message)]), &[], 0);
        check(&mut grpc, &frames(&[(ends, 5, 1, b"x")]), &[(1, true)], 0);
        // No message, a message that is too long, and no trailers.
        check(&mut grpc, &frames(&[(ends, 5, 3, b"x")]), &[(2, false)], 0);
        check(&mut grpc, &frames(&[(DATA, 0, 5, &[0; 6]), (ends, 5, 5, b"x")]), &[(3, false)], 0);
        check(&mut grpc, &frames(&[(RST_STREAM, 0, 7, &[0; 4])]), &[(4, false)], 0);
        // An incomplete frame is left for the next read.
        check(&mut grpc, &frames(&[(HEADERS, 4, 9, b"abc")])[..10], &[], 10);
    }

    #[test]
    fn later_calls_send_indexed_headers() {
        let mut grpc = calls();
        let (mut first, mut second) = (Vec::new(), Vec::new());
        grpc.call(0, &mut first);
        grpc.call(0, &mut second);
        assert!(first.windows(6).any(|bytes| bytes == b"/a.B/C"));
        // Five entries, 66 to 62; the oldest has the highest index.
        assert_eq!(second[9..16], [0x83, 0x86, 0xc2, 0xc1, 0xc0, 0xbf, 0xbe]);
    }

    #[test]
    fn settings_and_ping_are_acknowledged() {
        let mut grpc = calls();
        let ping: &[u8] = b"12345678";
        let requests = frames(&[(SETTINGS, 0, 0, &[]), (SETTINGS, ACK, 0, &[]), (PING, 0, 0, ping)]);
        let sent = check(&mut grpc, &requests, &[], 0);
        assert_eq!(sent, frames(&[(SETTINGS, ACK, 0, &[]), (PING, ACK, 0, ping)]));
        let small = frames(&[(SETTINGS, 0, 0, &[0, 1, 0, 0, 0, 0])]);
        assert!(grpc.received(&small, &mut Vec::new(), &mut |_| ()).is_err());
        assert!(grpc.received(&frames(&[(GOAWAY, 0, 0, &[0; 8])]), &mut Vec::new(), &mut |_| ()).is_err());
    }

    #[test]
    fn sending_stops_at_connection_window() {
        let message = vec![0; 10_000];
        let mut grpc = Grpc::new(Rc::new(PreparedCall::new("a", "/b", &message, None).unwrap()));
        let mut out = Vec::new();
        for began_ns in 0..7 {
            grpc.call(began_ns, &mut out);
        }
        assert_eq!((grpc.open.len(), grpc.waiting.len()), (6, 1));
        let sent = check(&mut grpc, &frames(&[(WINDOW_UPDATE, 0, 0, &10_000_u32.to_be_bytes())]), &[], 0);
        assert!(grpc.waiting.is_empty() && sent.len() > 10_000);
        assert!(PreparedCall::new("a", "/b", &[0; FRAME_BYTES_MAX], None).is_none());
    }
}
