//! Header blocks (RFC 9113 §4.3, §6.2, §6.10, §8): requests, responses, trailers.

use std::mem;
use std::time::Instant;

use super::receive::{Behind, expect_frame};
use super::{Connection, Role};
use crate::error::{ConnectionError, ErrorCode, Fault, StreamError};
use crate::event::Event;
use crate::fields::{Block, FieldList, Indexing};
use crate::flow::ReceiveWindow;
use crate::frame::{self, Flags, FrameHead, Kind, Priority, unpad};
use crate::head_cache::Decoded;
use crate::headers::{HeadKind, Summary};
use crate::receiving::BlockHead;
use crate::stream::{Remote, State, Stream, StreamId, Tag};
use crate::stream_table::{Absent, Key};
use crate::violation::Violation;

const REUSED_ID: ConnectionError = ConnectionError::protocol(Violation::HeadersOnSkippedStream);
const BEHIND_END: StreamError = StreamError::new(ErrorCode::StreamClosed, Violation::HeadersBehindEnd);
const WRONG_LENGTH: StreamError = StreamError::protocol(Violation::BodyLengthMismatch);

impl Connection {
    #[inline]
    pub(super) fn receive_headers<'a>(
        &mut self,
        head: FrameHead,
        payload: &[u8],
        behind: Behind<'_, 'a>,
        now: Instant,
    ) -> Result<Option<Event<'a>>, Fault> {
        if head.stream == StreamId::CONNECTION {
            return Err(ConnectionError::protocol(Violation::HeadersOnConnection).into());
        }
        let mut fragment = unpad(head.flags, payload)?;
        let mut self_dependent = false;
        if head.flags.contains(Flags::PRIORITY) {
            let Some((priority, rest)) = fragment.split_first_chunk() else {
                return Err(ConnectionError::wrong_size(Violation::HeadersPriorityMissing).into());
            };
            self_dependent = Priority::parse(*priority).dependency == head.stream;
            fragment = rest;
        }
        let block_head = BlockHead {
            stream: head.stream,
            end_stream: head.flags.contains(Flags::END_STREAM),
            self_dependent,
        };
        if head.flags.contains(Flags::END_HEADERS) {
            return self.receive_block(block_head, fragment, Some(behind), now);
        }
        self.receiving.begin_gathering(block_head, fragment);
        Ok(None)
    }

    /// RFC 9113 §6.10
    pub(super) fn receive_continuation<'a>(
        &mut self,
        head: FrameHead,
        payload: &[u8],
        now: Instant,
    ) -> Result<Option<Event<'a>>, Fault> {
        if self.receiving.gathering.is_none() {
            return Err(self.stray_continuation(head.stream).into());
        }
        let limits = &self.config.limits;
        let (continuations_max, block_len_max) = (limits.continuations_max, limits.header_block_len_max);
        let gathered = self.receiving.gather(head, payload, continuations_max, block_len_max)?;
        let Some(block_head) = gathered else { return Ok(None) };
        let block = mem::take(&mut self.receiving.gathered);
        let event = self.receive_block(block_head, &block, None, now);
        self.receiving.keep_gathered(block);
        // A stream error is that of the HEADERS frame, which is on this stream too.
        event
    }

    fn stray_continuation(&self, stream: StreamId) -> ConnectionError {
        let known = self.streams.find(stream).is_some();
        match self.streams.absent(stream) {
            Absent::Ended | Absent::ResetByPeer if !known => {
                ConnectionError::local(ErrorCode::StreamClosed, Violation::ContinuationStray)
            }
            _ => ConnectionError::protocol(Violation::ContinuationStray),
        }
    }

    /// A whole header block. Whatever becomes of its stream, it has to be decoded for the HPACK table's sake
    /// (RFC 9113 §4.3), unless the connection ends.
    #[inline]
    fn receive_block<'a>(
        &mut self,
        head: BlockHead,
        block: &[u8],
        behind: Option<Behind<'_, 'a>>,
        now: Instant,
    ) -> Result<Option<Event<'a>>, Fault> {
        let opens = head.stream > self.streams.highest() && head.stream.is_client_initiated();
        if opens && self.role == Role::Server {
            self.budget.pay_for_control_frames(block.len());
            return self.receive_request(head, block, behind, now);
        }
        let Some((key, stream)) = self.streams.find_mut(head.stream) else {
            return self.block_on_absent(head.stream, block, now).map(|()| None);
        };
        match stream.state.remote {
            Remote::AwaitingHead => self.receive_response(key, head, block, behind, now),
            Remote::Open | Remote::Ended => self.receive_trailers(key, head, block, now),
        }
    }

    /// RFC 9113 §5.1, "closed" and "idle".
    #[cold]
    fn block_on_absent(&mut self, id: StreamId, block: &[u8], now: Instant) -> Result<(), Fault> {
        match self.streams.absent(id) {
            Absent::Idle => Err(ConnectionError::protocol(Violation::HeadersOnForeignStream).into()),
            Absent::Skipped => Err(REUSED_ID.into()),
            Absent::Ended => {
                Err(ConnectionError::local(ErrorCode::StreamClosed, Violation::HeadersOnEndedStream).into())
            }
            Absent::ResetByPeer => {
                self.decode_unread(block, now)?;
                Err(StreamError::new(ErrorCode::StreamClosed, Violation::HeadersOnResetStream).into())
            }
            Absent::Forgotten => {
                self.decode_unread(block, now)?;
                if self.role == Role::Server {
                    // Requests have no trailers in gRPC. Responses have, and meet a stream that was cancelled all the
                    // time: those are paid for by their size alone.
                    self.budget.control_frame(Violation::HeadersUseless, now)?;
                }
                Ok(())
            }
        }
    }

    #[inline]
    fn decode(&mut self, kind: HeadKind, block: &[u8]) -> Result<Decoded, ConnectionError> {
        self.receiving.decode(kind, block, self.config.max_header_list_size)
    }

    /// Sees to it that a block of `block_len` bytes decoded to a list that is accepted.
    #[inline]
    fn check_decoded(&mut self, decoded: Decoded, block_len: usize, now: Instant) -> Result<(), Fault> {
        if decoded == Decoded::Valid { Ok(()) } else { self.check_unusual(decoded, block_len, now) }
    }

    #[cold]
    fn check_unusual(&mut self, decoded: Decoded, block_len: usize, now: Instant) -> Result<(), Fault> {
        self.tell_if_much();
        self.refuse_decoded(decoded, block_len, now)
    }

    /// Out of the way of blocks that need not even be decoded, which most are.
    #[cold]
    fn tell_if_much(&mut self) {
        if self.receiving.heads.take_much() {
            self.pending.push_back(Event::MuchDecoded);
        }
    }

    #[cold]
    fn refuse_decoded(&mut self, decoded: Decoded, block_len: usize, now: Instant) -> Result<(), Fault> {
        match decoded {
            Decoded::Valid | Decoded::ValidAfterMuch => Ok(()),
            Decoded::Malformed(reason) => Err(StreamError::protocol(reason).into()),
            Decoded::TooLarge => {
                self.charge_useless(block_len, now)?;
                // gRPC makes RESOURCE_EXHAUSTED of this code, which is what its users expect of headers that are too
                // large.
                Err(StreamError::new(ErrorCode::EnhanceYourCalm, Violation::HeaderListTooLarge).into())
            }
        }
    }

    #[cold]
    fn decode_unread(&mut self, block: &[u8], now: Instant) -> Result<(), ConnectionError> {
        self.receiving.decode_unread(block)?;
        self.charge_useless(block.len(), now)
    }

    /// Has the peer pay for a block that was decoded for nothing but the HPACK table's sake. One whose list is accepted
    /// has copied no more names than the list holds.
    #[cold]
    fn charge_useless(&mut self, block_len: usize, now: Instant) -> Result<(), ConnectionError> {
        self.budget.useless_block(block_len, self.receiving.decoder.copied_names_len(), now)
    }

    /// The client opens a stream.
    #[inline]
    fn receive_request<'a>(
        &mut self,
        head: BlockHead,
        block: &[u8],
        behind: Option<Behind<'_, 'a>>,
        now: Instant,
    ) -> Result<Option<Event<'a>>, Fault> {
        let decoded = self.decode(HeadKind::Request, block)?;
        self.streams.use_id(head.stream);
        if self.shutdown.is_beyond_goaway(head.stream) {
            // RFC 9113 §6.8: the client sees it in our GOAWAY.
            self.budget.glitch(Violation::StreamsBehindGoAway, now)?;
            return Ok(None);
        }
        self.check_decoded(decoded, block.len(), now)?;
        if self.streams.len() >= self.config.max_concurrent_streams as usize {
            return Err(
                StreamError::new(ErrorCode::RefusedStream, Violation::ConcurrentStreamsExceeded).into()
            );
        }
        check_self_dependency(head)?;
        let Summary { connect, content_length: body_left, .. } = self.receiving.heads.current().summary;
        if connect {
            return self.refuse_connect(head, now).map(|()| None);
        }
        if head.end_stream && body_left.is_some_and(|len| len > 0) {
            return Err(WRONG_LENGTH.into());
        }
        if !head.end_stream
            && let Some(event) =
                behind.and_then(|behind| self.take_whole_request(head.stream, body_left, behind, now))
        {
            return Ok(Some(event));
        }
        let state = State::opened_by_peer(head.end_stream);
        self.streams.insert(self.new_stream(head.stream, Tag(0), state, body_left));
        Ok(Some(Event::Headers { stream: head.stream, tag: Tag(0), end_stream: head.end_stream }))
    }

    /// Opens the stream whose head has come together with what ends it, if the next frame is that, and there is nothing
    /// to say against it: else it is looked at by itself.
    #[inline]
    fn take_whole_request<'a>(
        &mut self,
        id: StreamId,
        body_left: Option<u64>,
        behind: Behind<'_, 'a>,
        now: Instant,
    ) -> Option<Event<'a>> {
        let (bytes, rest) = behind.expect(Kind::Data, Flags::END_STREAM, id)?;
        let stream = self.new_stream(id, Tag(0), State::opened_by_peer(true), body_left);
        self.take_whole_body(&stream.receive_window, body_left, bytes, now)?;
        self.streams.insert(stream);
        let start = behind.skip_to(rest);
        Some(Event::Whole { stream: id, tag: Tag(0), bytes, start })
    }

    /// Accounts for a DATA frame without padding that is all of a body, if it is permitted.
    #[inline]
    fn take_whole_body(
        &mut self,
        window: &ReceiveWindow,
        body_left: Option<u64>,
        bytes: &[u8],
        now: Instant,
    ) -> Option<()> {
        let len = bytes.len() as u32;
        if len > self.config.max_frame_size
            || body_left.is_some_and(|left| left != u64::from(len))
            || !window.takes(len)
        {
            return None;
        }
        if let Some(increment) = self.receiving.window.receive_and_release(len).ok()? {
            self.announce_connection_window(increment, now);
        }
        self.budget.pay_for_control_frames(bytes.len());
        Some(())
    }

    /// There are no tunnels here: the client is told so in HTTP's terms. It costs what a stream error does.
    #[cold]
    fn refuse_connect(&mut self, head: BlockHead, now: Instant) -> Result<(), Fault> {
        self.budget.stream_error(Violation::ConnectsExceeded, now)?;
        self.budget.count_reply()?;
        let mut not_implemented = FieldList::new();
        not_implemented.push(b":status", b"501", Indexing::Literal);
        self.emit_headers(head.stream, Block { fixed: None, extra: &not_implemented }, true);
        if !head.end_stream {
            frame::rst_stream(head.stream, ErrorCode::NoError, self.sending.output.buffer());
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
        behind: Option<Behind<'_, 'a>>,
        now: Instant,
    ) -> Result<Option<Event<'a>>, Fault> {
        let decoded = self.decode(HeadKind::Response, block)?;
        self.check_decoded(decoded, block.len(), now)?;
        check_self_dependency(head)?;
        let Some(stream) = self.streams.get_mut(key) else { return Ok(None) };
        let (id, tag) = (stream.id, stream.tag);
        let summary = &self.receiving.heads.current().summary;
        match summary.status {
            // RFC 9113 §8.6
            Some(101) => return Err(StreamError::protocol(Violation::SwitchingProtocols).into()),
            Some(100..=199) if head.end_stream => {
                return Err(StreamError::protocol(Violation::InformationalEndsStream).into());
            }
            // There may be any number of them before a head (RFC 9113 §8.1): they pay for nothing.
            Some(100..=199) => {
                self.budget.control_frame(Violation::InformationalExceeded, now)?;
                return Ok(Some(Event::Informational { stream: id, tag }));
            }
            _ => {}
        }
        self.budget.pay_for_control_frames(block.len());
        stream.state.remote = Remote::Open;
        if head.end_stream {
            // A response to HEAD, 204 and 304 may say a length and have no body (RFC 9113 §8.1.1).
            self.end_received(key);
        } else {
            stream.body_left = summary.content_length;
            if let Some(event) = behind.and_then(|behind| self.take_rest_of_response(key, behind, now)) {
                return Ok(Some(event));
            }
        }
        Ok(Some(Event::Headers { stream: id, tag, end_stream: head.end_stream }))
    }

    /// Takes body and trailers of a response whose head has come, if the next frames are these and no others, and there
    /// is nothing to say against them: else they are looked at one by one. So are trailers that have to be decoded.
    #[inline]
    fn take_rest_of_response<'a>(
        &mut self,
        key: Key,
        behind: Behind<'_, 'a>,
        now: Instant,
    ) -> Option<Event<'a>> {
        let id = key.stream();
        let (bytes, rest) = behind.expect(Kind::Data, Flags::NONE, id)?;
        let ends = Flags::END_HEADERS.with(Flags::END_STREAM);
        let (block, rest) = expect_frame(rest, Kind::Headers, ends, id)?;
        let &Stream { tag, receive_window, body_left, .. } = self.streams.get(key)?;
        // What is smaller may be a glitch.
        if bytes.len() < self.config.limits.tiny_data_len as usize
            || block.len() > self.config.max_frame_size as usize
            || !self.receiving.heads.find_behind(&self.receiving.decoder, block)
        {
            return None;
        }
        self.take_whole_body(&receive_window, body_left, bytes, now)?;
        self.budget.pay_for_control_frames(block.len());
        // If the stream stays, its owner gives window back for what came.
        let _ = self.streams.get_mut(key)?.receive_window.receive(bytes.len() as u32);
        self.end_received(key);
        let start = behind.skip_to(rest);
        Some(Event::Whole { stream: id, tag, bytes, start })
    }

    #[inline]
    fn receive_trailers<'a>(
        &mut self,
        key: Key,
        head: BlockHead,
        block: &[u8],
        now: Instant,
    ) -> Result<Option<Event<'a>>, Fault> {
        let decoded = self.decode(HeadKind::Trailers, block)?;
        if decoded != Decoded::Valid {
            self.tell_if_much();
        }
        let Some(stream) = self.streams.get_mut(key) else { return Ok(None) };
        // A stream that is half closed hears of that first, whatever is in the block.
        if !stream.state.can_receive() {
            return Err(BEHIND_END.into());
        }
        if !matches!(decoded, Decoded::Valid | Decoded::ValidAfterMuch) {
            return self.refuse_decoded(decoded, block.len(), now).map(|()| None);
        }
        let (id, tag) = (stream.id, stream.tag);
        check_self_dependency(head)?;
        if !head.end_stream {
            return Err(StreamError::protocol(Violation::TrailersWithoutEnd).into());
        }
        if stream.body_left.is_some_and(|left| left > 0) {
            return Err(WRONG_LENGTH.into());
        }
        self.budget.pay_for_control_frames(block.len());
        self.end_received(key);
        Ok(Some(Event::Trailers { stream: id, tag }))
    }
}

#[inline]
fn check_self_dependency(head: BlockHead) -> Result<(), StreamError> {
    if head.self_dependent { Err(StreamError::protocol(Violation::SelfDependency)) } else { Ok(()) }
}
