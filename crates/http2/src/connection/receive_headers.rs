//! Header blocks (RFC 9113 §4.3, §6.2, §6.10, §8): requests, responses, trailers.

use std::mem;
use std::time::Instant;

use super::{Connection, Role};
use crate::error::{ConnectionError, ErrorCode, Fault, StreamError};
use crate::event::Event;
use crate::fields::{Block, FieldList, Indexing};
use crate::flow::{ReceiveWindow, SendWindow};
use crate::frame::{self, Flags, FrameHead, Priority, unpad};
use crate::head_cache::Decoded;
use crate::headers::{HeadKind, Summary};
use crate::send_queue::SendQueue;
use crate::stream::{State, Stream, StreamId, Tag, Turn};
use crate::stream_table::{Absent, Key};

/// What a HEADERS frame says beside its header block.
#[derive(Clone, Copy, Debug)]
struct BlockHead {
    stream: StreamId,
    end_stream: bool,
    /// The stream depends on itself, which is an error (RFC 7540 §5.3.1).
    self_dependent: bool,
}

/// A header block of which CONTINUATION frames are still to come.
#[derive(Debug)]
pub(super) struct Gathering {
    head: BlockHead,
    continuations: u32,
}

/// What a gathered block's buffer may keep when the block is done, in bytes.
const GATHERED_KEPT_MAX: usize = 1024;

const REUSED_ID: ConnectionError =
    ConnectionError::protocol("HEADERS on a stream identifier that was passed over");
const BEHIND_END: StreamError = StreamError::new(ErrorCode::StreamClosed, "HEADERS behind END_STREAM");
const WRONG_LENGTH: StreamError = StreamError::protocol("the body's length differs from `content-length`");

impl Connection {
    #[inline]
    pub(super) fn receive_headers<'a>(
        &mut self,
        head: FrameHead,
        payload: &[u8],
        now: Instant,
    ) -> Result<Option<Event<'a>>, Fault> {
        if head.stream == StreamId::CONNECTION {
            return Err(ConnectionError::protocol("HEADERS on stream 0").into());
        }
        let mut fragment = unpad(head.flags, payload)?;
        let mut self_dependent = false;
        if head.flags.contains(Flags::PRIORITY) {
            let Some((priority, rest)) = fragment.split_first_chunk() else {
                let reason = "HEADERS too short for its priority";
                return Err(ConnectionError::local(ErrorCode::FrameSizeError, reason).into());
            };
            self_dependent = Priority::parse(priority).dependency == head.stream;
            fragment = rest;
        }
        let block_head = BlockHead {
            stream: head.stream,
            end_stream: head.flags.contains(Flags::END_STREAM),
            self_dependent,
        };
        if head.flags.contains(Flags::END_HEADERS) {
            return self.receive_block(block_head, fragment, now);
        }
        self.gathered.clear();
        self.gathered.extend_from_slice(fragment);
        self.gathering = Some(Gathering { head: block_head, continuations: 0 });
        Ok(None)
    }

    /// RFC 9113 §6.10
    pub(super) fn receive_continuation<'a>(
        &mut self,
        head: FrameHead,
        payload: &[u8],
        now: Instant,
    ) -> Result<Option<Event<'a>>, Fault> {
        let limits = &self.config.limits;
        let Some(gathering) = &mut self.gathering else {
            return Err(self.stray_continuation(head.stream).into());
        };
        if gathering.head.stream != head.stream {
            return Err(ConnectionError::protocol("CONTINUATION on another stream than its HEADERS").into());
        }
        gathering.continuations += 1;
        if gathering.continuations > limits.continuations_max {
            let reason = "too many CONTINUATION frames";
            return Err(ConnectionError::local(ErrorCode::EnhanceYourCalm, reason).into());
        }
        if self.gathered.len() + payload.len() > limits.header_block_len_max {
            let reason = "a header block is too long";
            return Err(ConnectionError::local(ErrorCode::EnhanceYourCalm, reason).into());
        }
        self.gathered.extend_from_slice(payload);
        if !head.flags.contains(Flags::END_HEADERS) {
            return Ok(None);
        }
        let block_head = gathering.head;
        self.gathering = None;
        let mut block = mem::take(&mut self.gathered);
        let event = self.receive_block(block_head, &block, now);
        block.clear();
        block.shrink_to(GATHERED_KEPT_MAX);
        self.gathered = block;
        // A stream error is that of the HEADERS frame, which is on this stream too.
        event
    }

    fn stray_continuation(&self, stream: StreamId) -> ConnectionError {
        let reason = "CONTINUATION without HEADERS before it";
        let known = self.streams.find(stream).is_some();
        match self.streams.absent(stream) {
            Absent::Ended | Absent::ResetByPeer if !known => {
                ConnectionError::local(ErrorCode::StreamClosed, reason)
            }
            _ => ConnectionError::protocol(reason),
        }
    }

    /// A whole header block. Whatever becomes of its stream, it has to be decoded for the HPACK table's sake
    /// (RFC 9113 §4.3), unless the connection ends.
    #[inline]
    fn receive_block<'a>(
        &mut self,
        head: BlockHead,
        block: &[u8],
        now: Instant,
    ) -> Result<Option<Event<'a>>, Fault> {
        self.pay_for_control_frames(block.len());
        let opens = head.stream > self.streams.highest() && head.stream.is_client_initiated();
        if opens && self.role == Role::Server {
            return self.receive_request(head, block);
        }
        let Some(key) = self.streams.find(head.stream) else {
            return self.block_on_absent(head.stream, block).map(|()| None);
        };
        if self.streams.get(key).head_received {
            self.receive_trailers(key, head, block)
        } else {
            self.receive_response(key, head, block, now)
        }
    }

    /// RFC 9113 §5.1, "closed" and "idle".
    #[cold]
    fn block_on_absent(&mut self, id: StreamId, block: &[u8]) -> Result<(), Fault> {
        match self.streams.absent(id) {
            Absent::Idle => {
                Err(ConnectionError::protocol("HEADERS on a stream that the peer may not open").into())
            }
            Absent::Skipped => Err(REUSED_ID.into()),
            Absent::Ended => {
                let reason = "HEADERS on a stream that has ended";
                Err(ConnectionError::local(ErrorCode::StreamClosed, reason).into())
            }
            Absent::ResetByPeer => {
                self.decode(HeadKind::Trailers, block)?;
                Err(StreamError::new(ErrorCode::StreamClosed, "HEADERS on a stream that the peer has reset")
                    .into())
            }
            Absent::Forgotten => {
                self.decode(HeadKind::Trailers, block)?;
                Ok(())
            }
        }
    }

    #[inline]
    fn decode(&mut self, kind: HeadKind, block: &[u8]) -> Result<Decoded, ConnectionError> {
        let list_size_max = self.config.max_header_list_size as usize;
        self.heads.decode(&mut self.decoder, kind, block, list_size_max)
    }

    /// The client opens a stream.
    #[inline]
    fn receive_request<'a>(&mut self, head: BlockHead, block: &[u8]) -> Result<Option<Event<'a>>, Fault> {
        let decoded = self.decode(HeadKind::Request, block)?;
        self.streams.use_id(head.stream);
        if self.is_beyond_goaway(head.stream) {
            // RFC 9113 §6.8: the client sees it in our GOAWAY.
            return Ok(None);
        }
        if self.streams.len() >= self.config.max_concurrent_streams as usize {
            return Err(StreamError::new(ErrorCode::RefusedStream, "too many concurrent streams").into());
        }
        check_decoded(decoded)?;
        check_self_dependency(head)?;
        let Summary { connect, content_length: body_left, .. } = self.heads.current().summary;
        if connect {
            return self.refuse_connect(head).map(|()| None);
        }
        if head.end_stream && body_left.is_some_and(|len| len > 0) {
            return Err(WRONG_LENGTH.into());
        }
        let state = if head.end_stream { State::HalfClosedRemote } else { State::Open };
        let stream = Stream { head_received: true, body_left, ..self.new_stream(head.stream, Tag(0), state) };
        self.streams.insert(stream);
        Ok(Some(Event::Headers { stream: head.stream, tag: Tag(0), end_stream: head.end_stream }))
    }

    pub(super) fn new_stream(&self, id: StreamId, tag: Tag, state: State) -> Stream {
        Stream {
            id,
            tag,
            state,
            send_ended: false,
            answered: false,
            head_received: false,
            above_low_water: false,
            turn: Turn::None,
            send_window: SendWindow::new(self.peer.initial_window),
            receive_window: ReceiveWindow::new(self.stream_window),
            queue: SendQueue::EMPTY,
            body_left: None,
            opened_in: self.batch,
        }
    }

    /// There are no tunnels here: the client is told so in HTTP's terms.
    #[cold]
    fn refuse_connect(&mut self, head: BlockHead) -> Result<(), Fault> {
        self.count_reply()?;
        let mut not_implemented = FieldList::new();
        not_implemented.push(b":status", b"501", Indexing::Literal);
        self.emit_headers(head.stream, Block { fixed: None, extra: &not_implemented }, true);
        if !head.end_stream {
            frame::rst_stream(head.stream, ErrorCode::NoError, self.output.buffer());
        }
        Ok(())
    }

    /// A response's head, final or informational (client).
    #[inline]
    fn receive_response<'a>(
        &mut self,
        key: Key,
        head: BlockHead,
        block: &[u8],
        now: Instant,
    ) -> Result<Option<Event<'a>>, Fault> {
        check_decoded(self.decode(HeadKind::Response, block)?)?;
        check_self_dependency(head)?;
        let stream = self.streams.get_mut(key);
        let (id, tag) = (stream.id, stream.tag);
        if !stream.state.can_receive() {
            return Err(BEHIND_END.into());
        }
        let summary = &self.heads.current().summary;
        match summary.status {
            // RFC 9113 §8.6
            Some(101) => return Err(StreamError::protocol("status 101 does not exist in HTTP/2").into()),
            Some(100..=199) if head.end_stream => {
                return Err(StreamError::protocol("an informational response ends the stream").into());
            }
            Some(100..=199) => {
                self.control_frame("too many informational responses", now)?;
                return Ok(Some(Event::Informational { stream: id, tag }));
            }
            _ => {}
        }
        stream.head_received = true;
        if head.end_stream {
            // A response to HEAD, 204 and 304 may say a length and have no body (RFC 9113 §8.1.1).
            self.end_received(key);
        } else {
            stream.body_left = summary.content_length;
        }
        Ok(Some(Event::Headers { stream: id, tag, end_stream: head.end_stream }))
    }

    #[inline]
    fn receive_trailers<'a>(
        &mut self,
        key: Key,
        head: BlockHead,
        block: &[u8],
    ) -> Result<Option<Event<'a>>, Fault> {
        let decoded = self.decode(HeadKind::Trailers, block)?;
        let stream = self.streams.get(key);
        let (id, tag) = (stream.id, stream.tag);
        // A stream that is half closed hears of that first, whatever is in the block.
        if !stream.state.can_receive() {
            return Err(BEHIND_END.into());
        }
        check_decoded(decoded)?;
        check_self_dependency(head)?;
        if !head.end_stream {
            return Err(StreamError::protocol("trailers do not end the stream").into());
        }
        if stream.body_left.is_some_and(|left| left > 0) {
            return Err(WRONG_LENGTH.into());
        }
        self.end_received(key);
        Ok(Some(Event::Trailers { stream: id, tag }))
    }
}

#[inline]
fn check_decoded(decoded: Decoded) -> Result<(), StreamError> {
    match decoded {
        Decoded::Valid => Ok(()),
        Decoded::Malformed(reason) => Err(StreamError::protocol(reason)),
        // gRPC makes RESOURCE_EXHAUSTED of this code, which is what its users expect of headers that are too
        // large.
        Decoded::TooLarge => Err(StreamError::new(
            ErrorCode::EnhanceYourCalm,
            "the header list is larger than max_header_list_size",
        )),
    }
}

#[inline]
fn check_self_dependency(head: BlockHead) -> Result<(), StreamError> {
    if head.self_dependent { Err(StreamError::protocol("a stream depends on itself")) } else { Ok(()) }
}
