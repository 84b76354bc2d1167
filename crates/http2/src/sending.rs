//! State of the output, and framing.

use crate::fields::Block;
use crate::flow::{SendWindow, WINDOW_DEFAULT};
use crate::frame::{FRAME_HEADER_LEN, Flags, FrameHeader, Kind, MAX_FRAME_SIZE_MIN};
use crate::hpack::Encoder;
use crate::output::Output;
use crate::ready_queue::ReadyQueue;
use crate::send_queue::{Queued, QueuedItems};
use crate::stream::{Scheduled, Stream, StreamId};
use crate::stream_table::StreamKey;

/// Maximum DATA frame in bytes while several streams have something to send, even if the peer accepts more. Bounds how
/// long a small message waits for a large one.
const SHARED_DATA_LEN_MAX: u32 = 64 << 10;

/// Maximum DATA frame in bytes of a stream that is alone. It is a part of what is framed ahead of the socket anyway
/// ([`Config::output_target`](crate::Config::output_target)), so later streams wait no longer.
const LONE_DATA_LEN_MAX: u32 = 128 << 10;

/// Number of streams that may be open before the peer's SETTINGS arrive (RFC 9113 §6.5.2 recommends that peers allow no
/// less).
const STREAMS_ASSUMED: u32 = 100;

/// State of the sending side.
#[derive(Debug)]
pub(crate) struct Sending {
    pub(crate) output: Output,
    pub(crate) encoder: Encoder,
    pub(crate) items: QueuedItems,
    /// Memory in bytes kept alive by pieces taken for writing.
    pub(crate) writing_memory: usize,
    pub(crate) ready: ReadyQueue,
    /// The connection's window.
    pub(crate) window: SendWindow,
    last_data: LastData,
    pub(crate) peer: PeerSettings,
}

/// The peer's SETTINGS.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PeerSettings {
    pub(crate) max_concurrent_streams: u32,
    pub(crate) initial_window: u32,
    pub(crate) max_frame_size: u32,
    pub(crate) max_header_list_size: u32,
}

impl PeerSettings {
    /// Values before the peer's SETTINGS arrive.
    const INITIAL: PeerSettings = PeerSettings {
        max_concurrent_streams: STREAMS_ASSUMED,
        initial_window: WINDOW_DEFAULT,
        max_frame_size: MAX_FRAME_SIZE_MIN,
        max_header_list_size: u32::MAX,
    };

    #[inline]
    fn data_len_max(self, is_alone: bool) -> usize {
        self.max_frame_size.min(if is_alone { LONE_DATA_LEN_MAX } else { SHARED_DATA_LEN_MAX }) as usize
    }
}

/// The last DATA frame. While it is at the end of the output, more data of its stream is added to it, so that many
/// small messages share one frame.
#[derive(Clone, Copy, Debug)]
struct LastData {
    stream: StreamId,
    /// Offsets of its frame header and its end in the output's buffer.
    header_at: usize,
    end: usize,
    len: usize,
}

impl LastData {
    const NONE: LastData = LastData { stream: StreamId::CONNECTION, header_at: 0, end: usize::MAX, len: 0 };
}

impl Sending {
    pub(crate) fn new() -> Sending {
        Sending {
            output: Output::default(),
            encoder: Encoder::new(),
            items: QueuedItems::default(),
            writing_memory: 0,
            ready: ReadyQueue::default(),
            window: SendWindow::new(WINDOW_DEFAULT),
            last_data: LastData::NONE,
            peer: PeerSettings::INITIAL,
        }
    }

    /// Returns whether a DATA frame of `len` bytes may bypass the queues, if its stream allows it, without taking
    /// window from waiting streams.
    #[inline]
    pub(crate) fn can_bypass_queues(&self, len: usize, output_target: usize) -> bool {
        len <= self.window.available()
            && len <= self.peer.data_len_max(false)
            && self.output.len() < output_target
            && (len == 0 || !self.ready.has_blocked())
    }

    /// Returns whether there is output to take.
    #[inline]
    pub(crate) fn has_output(&self) -> bool {
        !self.output.is_empty() || self.has_next()
    }

    /// Returns whether a stream may send.
    #[inline]
    pub(crate) fn has_next(&self) -> bool {
        self.ready.has_next(self.window_open())
    }

    /// Returns whether the connection's window allows DATA.
    #[inline]
    pub(crate) fn window_open(&self) -> bool {
        self.window.available() > 0
    }

    /// Swaps all bytes to write into `out`. Returns whether there are any.
    #[inline]
    pub(crate) fn take_output(&mut self, out: &mut Output) -> bool {
        if self.output.is_empty() {
            self.output.move_discarded_to(out);
            return false;
        }
        std::mem::swap(&mut self.output, out);
        self.writing_memory = self.items.take_framed_memory();
        self.last_data = LastData::NONE;
        true
    }

    /// Queues an item of a stream.
    pub(crate) fn queue(&mut self, key: StreamKey, stream: &mut Stream, item: Queued) {
        self.items.push(&mut stream.queue, item);
        self.schedule(key, stream);
    }

    /// Adds a stream to the ready queue, if it has something to send.
    pub(crate) fn schedule(&mut self, key: StreamKey, stream: &mut Stream) {
        self.ready.schedule(key, stream, &self.items);
    }

    /// Discards everything that a removed stream has queued.
    #[inline]
    pub(crate) fn discard_queued(&mut self, key: StreamKey, stream: &mut Stream) {
        if !stream.queue.is_empty() || stream.scheduled != Scheduled::No {
            self.items.drop_all(&mut stream.queue, &mut self.output);
            self.ready.remove(key, stream);
        }
    }

    /// Discards everything queued, because the connection is over.
    pub(crate) fn clear(&mut self) {
        self.items.clear(&mut self.output);
        self.ready.clear();
    }

    pub(crate) fn shrink(&mut self) {
        self.encoder.shrink();
        self.output.shrink();
        self.items.shrink();
        self.ready.shrink();
    }

    /// Appends a separate DATA frame. The caller has accounted for the stream's window.
    #[inline]
    pub(crate) fn emit_data(&mut self, stream: StreamId, payload: &[u8], end_stream: bool) {
        self.window.consume(payload.len());
        let buffer = self.output.buffer();
        let flags = Flags::NONE.with_if(end_stream, Flags::END_STREAM);
        FrameHeader { len: payload.len() as u32, kind: Kind::Data, flags, stream }.emit(buffer);
        buffer.extend_from_slice(payload);
    }

    /// Starts a DATA frame of `len` bytes, or extends the last one; the payload must follow.
    #[inline]
    pub(crate) fn begin_frame(&mut self, id: StreamId, len: usize) {
        self.window.consume(len);
        let len_max = self.peer.data_len_max(false);
        let buffer = self.output.buffer();
        let last = &mut self.last_data;
        if last.end == buffer.len() && last.stream == id && last.len + len <= len_max {
            last.len += len;
        } else {
            *last = LastData { stream: id, header_at: buffer.len(), end: 0, len };
            buffer.extend_from_slice(&[0; FRAME_HEADER_LEN]);
        }
    }

    /// Fills in the header of the frame started by [`begin_frame`](Self::begin_frame), after its payload was appended.
    #[inline]
    pub(crate) fn finish_frame(&mut self, end_stream: bool) {
        let buffer = self.output.buffer();
        let last = &mut self.last_data;
        last.end = buffer.len();
        let flags = Flags::NONE.with_if(end_stream, Flags::END_STREAM);
        let header = FrameHeader { len: last.len as u32, kind: Kind::Data, flags, stream: last.stream };
        buffer[last.header_at..last.header_at + FRAME_HEADER_LEN].copy_from_slice(&header.to_bytes());
    }

    /// Appends a header block with its frame header. Returns the length of the block.
    #[inline]
    pub(crate) fn emit_headers(&mut self, stream: StreamId, block: Block<'_>, end_stream: bool) -> usize {
        let Some(bytes) = self.encoder.cached(block) else {
            return self.emit_encoded(stream, block, end_stream);
        };
        // Cached blocks are shorter than the smallest permitted maximum frame size.
        let flags = Flags::END_HEADERS.with_if(end_stream, Flags::END_STREAM);
        let header = FrameHeader { len: bytes.len() as u32, kind: Kind::Headers, flags, stream };
        let buffer = self.output.buffer();
        header.emit(buffer);
        buffer.extend_from_slice(bytes);
        bytes.len()
    }

    /// Encodes a header block and fills in its frame header; splits a block larger than a frame.
    fn emit_encoded(&mut self, stream: StreamId, block: Block<'_>, end_stream: bool) -> usize {
        let len_max = self.peer.max_frame_size as usize;
        let buffer = self.output.buffer();
        let header_at = buffer.len();
        buffer.extend_from_slice(&[0; FRAME_HEADER_LEN]);
        self.encoder.encode(block, buffer);
        let len = buffer.len() - header_at - FRAME_HEADER_LEN;
        let flags = Flags::END_HEADERS.with_if(end_stream, Flags::END_STREAM);
        let header = FrameHeader { len: len as u32, kind: Kind::Headers, flags, stream };
        if len > len_max {
            split_headers(header, header_at, len_max, buffer);
        } else {
            buffer[header_at..header_at + FRAME_HEADER_LEN].copy_from_slice(&header.to_bytes());
        }
        len
    }

    /// Sends one frame of a stream, as far as the windows allow. Returns the length of its payload, or `None` if the
    /// stream waits for the connection's window.
    pub(crate) fn frame_next(&mut self, key: StreamKey, stream: &mut Stream) -> Option<usize> {
        if let Some(block) = self.items.pop_headers(&mut stream.queue) {
            return Some(self.emit_headers(stream.id, block.as_block(), stream.ends_now()));
        }
        let frame_len_max = self.peer.data_len_max(!self.ready.has_next(true));
        let sendable = stream.queue.bytes().min(frame_len_max).min(stream.send_window.available());
        let len_max = sendable.min(self.window.available());
        if len_max == 0 && sendable > 0 {
            self.ready.block(key, stream);
            return None;
        }
        Some(self.frame_data(stream, len_max))
    }

    /// Frames at most `len_max` bytes from the front of a queue. Returns how many.
    fn frame_data(&mut self, stream: &mut Stream, len_max: usize) -> usize {
        let header_at = self.output.buffer().len();
        self.output.buffer().extend_from_slice(&[0; FRAME_HEADER_LEN]);
        let mut len = 0;
        while let Some(part) = self.items.pop_data(&mut stream.queue, len_max - len) {
            len += part.len();
            self.output.push_payload(part);
            if len == len_max {
                break;
            }
        }
        stream.send_window.consume(len);
        self.window.consume(len);
        let flags = Flags::NONE.with_if(stream.ends_now(), Flags::END_STREAM);
        let header = FrameHeader { len: len as u32, kind: Kind::Data, flags, stream: stream.id };
        let buffer = self.output.buffer();
        buffer[header_at..header_at + FRAME_HEADER_LEN].copy_from_slice(&header.to_bytes());
        len
    }
}

/// Splits a header block that is too long for one frame into HEADERS and CONTINUATIONs with nothing in between (RFC
/// 9113 §6.10). The block is at the end of `out`, after space for the frame header.
#[cold]
fn split_headers(header: FrameHeader, header_at: usize, len_max: usize, out: &mut Vec<u8>) {
    let block = out.split_off(header_at + FRAME_HEADER_LEN);
    out.truncate(header_at);
    let mut rest = &block[..];
    let mut kind = Kind::Headers;
    while !rest.is_empty() {
        let (fragment, remainder) = rest.split_at(rest.len().min(len_max));
        rest = remainder;
        let end_headers = Flags::NONE.with_if(rest.is_empty(), Flags::END_HEADERS);
        // END_STREAM is set on HEADERS.
        let end_stream = header.flags.contains(Flags::END_STREAM) && kind == Kind::Headers;
        let flags = end_headers.with_if(end_stream, Flags::END_STREAM);
        crate::frame::emit(kind, flags, header.stream, fragment, out);
        kind = Kind::Continuation;
    }
}
