//! Receiving header blocks (RFC 9113 §4.3, §6.2, §6.10, §8): requests, responses, trailers.

use std::mem;
use std::time::Instant;

use super::receive::{RemainingInput, expect_frame};
use super::{Connection, Role};
use crate::error::{ConnectionError, ErrorCode, Fault, StreamError};
use crate::event::Event;
use crate::fields::{Block, FieldList, Indexing};
use crate::flow::ReceiveWindow;
use crate::frame::{self, Flags, FrameHeader, Kind, Priority, unpad};
use crate::headers::{HeadersKind, Summary};
use crate::headers_cache::Decoded;
use crate::receiving::BlockInfo;
use crate::stream::{RemoteState, Stream, StreamId, StreamState, Tag};
use crate::stream_table::{Absent, StreamKey};
use crate::violation::Violation;

const REUSED_ID: ConnectionError = ConnectionError::protocol(Violation::HeadersOnSkippedStream);
const AFTER_END: StreamError = StreamError::new(ErrorCode::StreamClosed, Violation::HeadersAfterEnd);
const WRONG_LENGTH: StreamError = StreamError::protocol(Violation::BodyLengthMismatch);

impl Connection {
    #[inline]
    pub(super) fn receive_headers<'a>(
        &mut self,
        header: FrameHeader,
        payload: &[u8],
        remaining: RemainingInput<'_, 'a>,
        now: Instant,
    ) -> Result<Option<Event<'a>>, Fault> {
        if header.stream == StreamId::CONNECTION {
            return Err(ConnectionError::protocol(Violation::HeadersOnConnection).into());
        }
        let mut fragment = unpad(header.flags, payload)?;
        let mut self_dependent = false;
        if header.flags.contains(Flags::PRIORITY) {
            let Some((priority, rest)) = fragment.split_first_chunk() else {
                return Err(ConnectionError::wrong_size(Violation::HeadersPriorityMissing).into());
            };
            self_dependent = Priority::parse(*priority).dependency == header.stream;
            fragment = rest;
        }
        let info = BlockInfo {
            stream: header.stream,
            end_stream: header.flags.contains(Flags::END_STREAM),
            self_dependent,
        };
        if header.flags.contains(Flags::END_HEADERS) {
            return self.receive_block(info, fragment, Some(remaining), now);
        }
        self.receiving.begin_gathering(info, fragment);
        Ok(None)
    }

    /// RFC 9113 §6.10
    pub(super) fn receive_continuation<'a>(
        &mut self,
        header: FrameHeader,
        payload: &[u8],
        now: Instant,
    ) -> Result<Option<Event<'a>>, Fault> {
        if self.receiving.gathering.is_none() {
            return Err(self.stray_continuation(header.stream).into());
        }
        let limits = &self.config.limits;
        let (continuations_max, block_len_max) = (limits.continuations_max, limits.header_block_len_max);
        let gathered = self.receiving.gather(header, payload, continuations_max, block_len_max)?;
        let Some(info) = gathered else { return Ok(None) };
        let block = mem::take(&mut self.receiving.gathered);
        let event = self.receive_block(info, &block, None, now);
        self.receiving.keep_gathered(block);
        // A stream error refers to the HEADERS frame, which is on the same stream.
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

    /// Handles a complete header block. Whatever the state of its stream, it must be decoded to keep the HPACK table in
    /// sync (RFC 9113 §4.3), unless the connection ends.
    #[inline]
    fn receive_block<'a>(
        &mut self,
        info: BlockInfo,
        block: &[u8],
        remaining: Option<RemainingInput<'_, 'a>>,
        now: Instant,
    ) -> Result<Option<Event<'a>>, Fault> {
        let opens = info.stream > self.streams.highest() && info.stream.is_client_initiated();
        if opens && self.role == Role::Server {
            self.budget.pay_for_control_frames(block.len());
            return self.receive_request(info, block, remaining, now);
        }
        let Some((key, stream)) = self.streams.find_mut(info.stream) else {
            return self.block_on_absent(info.stream, block, now).map(|()| None);
        };
        match stream.state.remote {
            RemoteState::AwaitingHeaders => self.receive_response(key, info, block, remaining, now),
            RemoteState::Open | RemoteState::Ended => self.receive_trailers(key, info, block, now),
        }
    }

    /// RFC 9113 §5.1, "closed" and "idle".
    #[cold]
    fn block_on_absent(&mut self, id: StreamId, block: &[u8], now: Instant) -> Result<(), Fault> {
        match self.streams.absent(id) {
            Absent::Idle => Err(ConnectionError::protocol(Violation::HeadersOnUnopenableStream).into()),
            Absent::Skipped => Err(REUSED_ID.into()),
            Absent::Ended => {
                Err(ConnectionError::local(ErrorCode::StreamClosed, Violation::HeadersOnEndedStream).into())
            }
            Absent::ResetByPeer => {
                self.decode_and_discard(block, now)?;
                Err(StreamError::new(ErrorCode::StreamClosed, Violation::HeadersOnResetStream).into())
            }
            Absent::Forgotten => {
                self.decode_and_discard(block, now)?;
                if self.role == Role::Server {
                    // gRPC requests have no trailers. Responses have, and regularly arrive on cancelled streams, so
                    // these are charged by size only.
                    self.budget.control_frame(Violation::HeadersUseless, now)?;
                }
                Ok(())
            }
        }
    }

    #[inline]
    fn decode(&mut self, kind: HeadersKind, block: &[u8]) -> Result<Decoded, ConnectionError> {
        self.receiving.decode(kind, block, self.config.max_header_list_size)
    }

    /// Checks that a block of `block_len` bytes was decoded to an acceptable list.
    #[inline]
    fn check_decoded(&mut self, decoded: Decoded, block_len: usize, now: Instant) -> Result<(), Fault> {
        if decoded == Decoded::Valid { Ok(()) } else { self.check_unusual(decoded, block_len, now) }
    }

    #[cold]
    fn check_unusual(&mut self, decoded: Decoded, block_len: usize, now: Instant) -> Result<(), Fault> {
        self.notify_if_decode_budget_spent();
        self.refuse_decoded(decoded, block_len, now)
    }

    /// Kept separate from the common case of blocks found in the cache.
    #[cold]
    fn notify_if_decode_budget_spent(&mut self) {
        if self.receiving.headers_cache.take_decode_budget_spent() {
            self.pending.push_back(Event::DecodeBudgetSpent);
        }
    }

    #[cold]
    fn refuse_decoded(&mut self, decoded: Decoded, block_len: usize, now: Instant) -> Result<(), Fault> {
        match decoded {
            Decoded::Valid | Decoded::ValidBudgetSpent => Ok(()),
            Decoded::Malformed(reason) => Err(StreamError::protocol(reason).into()),
            Decoded::TooLarge => {
                self.charge_useless(block_len, now)?;
                // gRPC maps this code to RESOURCE_EXHAUSTED, which users expect for headers that are too large.
                Err(StreamError::new(ErrorCode::EnhanceYourCalm, Violation::HeaderListTooLarge).into())
            }
        }
    }

    #[cold]
    fn decode_and_discard(&mut self, block: &[u8], now: Instant) -> Result<(), ConnectionError> {
        self.receiving.decode_and_discard(block)?;
        self.charge_useless(block.len(), now)
    }

    /// Charges the peer for a block that was decoded only to keep the HPACK table in sync. A block with an accepted
    /// list cannot have copied more names than the list contains.
    #[cold]
    fn charge_useless(&mut self, block_len: usize, now: Instant) -> Result<(), ConnectionError> {
        self.budget.useless_block(block_len, self.receiving.decoder.copied_names_len(), now)
    }

    /// Handles a new stream of the client.
    #[inline]
    fn receive_request<'a>(
        &mut self,
        info: BlockInfo,
        block: &[u8],
        remaining: Option<RemainingInput<'_, 'a>>,
        now: Instant,
    ) -> Result<Option<Event<'a>>, Fault> {
        let decoded = self.decode(HeadersKind::Request, block)?;
        self.streams.use_id(info.stream);
        if self.shutdown.is_beyond_goaway(info.stream) {
            // RFC 9113 §6.8: our GOAWAY informs the client.
            self.budget.glitch(Violation::StreamsAfterGoAway, now)?;
            return Ok(None);
        }
        self.check_decoded(decoded, block.len(), now)?;
        if self.streams.len() >= self.config.max_concurrent_streams as usize {
            return Err(
                StreamError::new(ErrorCode::RefusedStream, Violation::ConcurrentStreamsExceeded).into()
            );
        }
        check_self_dependency(info)?;
        let Summary { connect, content_length: body_left, .. } =
            self.receiving.headers_cache.current().summary;
        if connect {
            return self.refuse_connect(info, now).map(|()| None);
        }
        if info.end_stream && body_left.is_some_and(|len| len > 0) {
            return Err(WRONG_LENGTH.into());
        }
        if !info.end_stream
            && let Some(event) = remaining
                .and_then(|remaining| self.take_complete_request(info.stream, body_left, remaining, now))
        {
            return Ok(Some(event));
        }
        let state = StreamState::opened_by_peer(info.end_stream);
        self.streams.insert(self.new_stream(info.stream, Tag(0), state, body_left));
        Ok(Some(Event::Headers { stream: info.stream, tag: Tag(0), end_stream: info.end_stream }))
    }

    /// Opens the stream of a complete request if the next frame ends it and violates no rule. Otherwise that frame is
    /// handled separately.
    #[inline]
    fn take_complete_request<'a>(
        &mut self,
        id: StreamId,
        body_left: Option<u64>,
        remaining: RemainingInput<'_, 'a>,
        now: Instant,
    ) -> Option<Event<'a>> {
        let (bytes, rest) = remaining.expect(Kind::Data, Flags::END_STREAM, id)?;
        let stream = self.new_stream(id, Tag(0), StreamState::opened_by_peer(true), body_left);
        self.take_complete_body(&stream.receive_window, body_left, bytes, now)?;
        self.streams.insert(stream);
        let start = remaining.skip_to(rest);
        Some(Event::CompleteMessage { stream: id, tag: Tag(0), bytes, start })
    }

    /// Accounts for a DATA frame without padding that is the whole body, if it is permitted.
    #[inline]
    fn take_complete_body(
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

    /// Rejects CONNECT with an HTTP response, because tunnels are not supported. Charged as a stream error.
    #[cold]
    fn refuse_connect(&mut self, info: BlockInfo, now: Instant) -> Result<(), Fault> {
        self.budget.stream_error(Violation::ConnectsExceeded, now)?;
        self.budget.count_reply()?;
        let mut not_implemented = FieldList::new();
        not_implemented.push(b":status", b"501", Indexing::Literal);
        self.emit_headers(info.stream, Block { fixed: None, extra: &not_implemented }, true);
        if !info.end_stream {
            frame::rst_stream(info.stream, ErrorCode::NoError, self.sending.output.buffer());
        }
        Ok(())
    }

    /// Handles the headers of a response, final or informational (client).
    #[inline]
    fn receive_response<'a>(
        &mut self,
        key: StreamKey,
        info: BlockInfo,
        block: &[u8],
        remaining: Option<RemainingInput<'_, 'a>>,
        now: Instant,
    ) -> Result<Option<Event<'a>>, Fault> {
        let decoded = self.decode(HeadersKind::Response, block)?;
        self.check_decoded(decoded, block.len(), now)?;
        check_self_dependency(info)?;
        let Some(stream) = self.streams.get_mut(key) else { return Ok(None) };
        let (id, tag) = (stream.id, stream.tag);
        let summary = &self.receiving.headers_cache.current().summary;
        match summary.status {
            // RFC 9113 §8.6
            Some(101) => return Err(StreamError::protocol(Violation::SwitchingProtocols).into()),
            Some(100..=199) if info.end_stream => {
                return Err(StreamError::protocol(Violation::InformationalEndsStream).into());
            }
            // A response may have any number of them (RFC 9113 §8.1), so they earn no credit.
            Some(100..=199) => {
                self.budget.control_frame(Violation::InformationalExceeded, now)?;
                return Ok(Some(Event::Informational { stream: id, tag }));
            }
            _ => {}
        }
        self.budget.pay_for_control_frames(block.len());
        stream.state.remote = RemoteState::Open;
        if info.end_stream {
            // A response to HEAD, 204 and 304 may have a content-length without a body (RFC 9113 §8.1.1).
            self.end_received(key);
        } else {
            stream.body_left = summary.content_length;
            if let Some(event) =
                remaining.and_then(|remaining| self.take_rest_of_response(key, remaining, now))
            {
                return Ok(Some(event));
            }
        }
        Ok(Some(Event::Headers { stream: id, tag, end_stream: info.end_stream }))
    }

    /// Handles body and trailers of a response together with its headers, if they are the next frames and violate no
    /// rule. Otherwise they are handled one by one, as are trailers that are not in the cache.
    #[inline]
    fn take_rest_of_response<'a>(
        &mut self,
        key: StreamKey,
        remaining: RemainingInput<'_, 'a>,
        now: Instant,
    ) -> Option<Event<'a>> {
        let id = key.stream();
        let (bytes, rest) = remaining.expect(Kind::Data, Flags::NONE, id)?;
        let ends = Flags::END_HEADERS.with(Flags::END_STREAM);
        let (block, rest) = expect_frame(rest, Kind::Headers, ends, id)?;
        let &Stream { tag, receive_window, body_left, .. } = self.streams.get(key)?;
        // Smaller frames may be glitches.
        if bytes.len() < self.config.limits.tiny_data_len as usize
            || block.len() > self.config.max_frame_size as usize
            || !self.receiving.headers_cache.find_trailers(&self.receiving.decoder, block)
        {
            return None;
        }
        self.take_complete_body(&receive_window, body_left, bytes, now)?;
        self.budget.pay_for_control_frames(block.len());
        // If the stream stays open, the driver releases this window.
        let _ = self.streams.get_mut(key)?.receive_window.receive(bytes.len() as u32);
        self.end_received(key);
        let start = remaining.skip_to(rest);
        Some(Event::CompleteMessage { stream: id, tag, bytes, start })
    }

    #[inline]
    fn receive_trailers<'a>(
        &mut self,
        key: StreamKey,
        info: BlockInfo,
        block: &[u8],
        now: Instant,
    ) -> Result<Option<Event<'a>>, Fault> {
        let decoded = self.decode(HeadersKind::Trailers, block)?;
        if decoded != Decoded::Valid {
            self.notify_if_decode_budget_spent();
        }
        let Some(stream) = self.streams.get_mut(key) else { return Ok(None) };
        // Reported first for half-closed streams, whatever the block contains.
        if !stream.state.can_receive() {
            return Err(AFTER_END.into());
        }
        if !matches!(decoded, Decoded::Valid | Decoded::ValidBudgetSpent) {
            return self.refuse_decoded(decoded, block.len(), now).map(|()| None);
        }
        let (id, tag) = (stream.id, stream.tag);
        check_self_dependency(info)?;
        if !info.end_stream {
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
fn check_self_dependency(info: BlockInfo) -> Result<(), StreamError> {
    if info.self_dependent { Err(StreamError::protocol(Violation::SelfDependency)) } else { Ok(()) }
}
