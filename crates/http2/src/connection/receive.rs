//! Receiving frames: parses them in place, and passes DATA on as it arrives.

use std::time::Instant;

use super::Connection;
use crate::error::{ConnectionError, ErrorCode, Fault, StreamError};
use crate::event::Event;
use crate::frame::padding::{NO_PADDING_LENGTH, TOO_MUCH_PADDING};
use crate::frame::{self, FRAME_HEADER_LEN, Flags, FrameHeader, Kind};
use crate::receiving::{DataPart, Expect, ExpectedData, IncomingData};
use crate::shutdown::Closed;
use crate::stream::{RemoteState, Stream, StreamId};
use crate::stream_table::{Absent, StreamKey};
use crate::violation::Violation;

impl Connection {
    /// Consumes bytes from the front of `input` and returns the next event.
    ///
    /// Returns `None` when nothing more can be consumed. The rest of `input` is then an incomplete frame other than
    /// DATA, of at most `max_frame_size + 9` bytes. Present it again together with the bytes that follow. DATA is
    /// passed on as it arrives, whether the frame is complete or not. A DATA frame entirely in `input` is one event.
    ///
    /// Events that need no input, such as [`Event::Writable`], are returned for an empty `input` too.
    ///
    /// # Errors
    ///
    /// The peer violated the protocol or a limit. GOAWAY is in the output; each further call returns the same error.
    #[inline]
    pub fn poll_event<'a>(
        &mut self,
        input: &mut &'a [u8],
        now: Instant,
    ) -> Result<Option<Event<'a>>, ConnectionError> {
        if !self.pending.is_empty() || self.shutdown.is_closed() {
            return self.poll_pending_or_closed(input, now);
        }
        if input.is_empty() {
            return Ok(self.end_batch());
        }
        self.poll_input(input, now)
    }

    /// Returns the next input, if it is known to be DATA of an open stream: the rest of a frame that started in the
    /// last input. The driver may read it directly into its destination and then call
    /// [`note_direct_data`](Connection::note_direct_data), or present it as input as usual.
    #[inline]
    pub fn expected_data(&self) -> Option<ExpectedData> {
        let IncomingData { stream, data_left, .. } = self.receiving.incoming_data()?;
        let stream = stream?;
        if data_left == 0 || self.shutdown.is_closed() {
            return None;
        }
        let tag = self.streams.find_ref(stream)?.tag;
        Some(ExpectedData { stream, tag, len: data_left as usize })
    }

    /// Records that the driver has read `len` bytes of [`expected_data`](Connection::expected_data), at most all of
    /// them. They count as a polled [`Event::Data`]. If END_STREAM came with them, returns that event, without bytes.
    /// Bytes read after them are input as usual.
    ///
    /// Returns `None` if the stream was reset or the connection closed in the meantime.
    pub fn note_direct_data(&mut self, len: usize) -> Option<Event<'static>> {
        let incoming = self.receiving.incoming_data()?;
        if self.shutdown.is_closed() {
            return None;
        }
        debug_assert!(len <= incoming.data_left as usize, "more was read than expected");
        let len = u32::try_from(len).unwrap_or(u32::MAX);
        let data_left = incoming.data_left.saturating_sub(len);
        self.receive_data_part(IncomingData { data_left, ..incoming }, &mut &[][..], 0)
    }

    /// Handles pending events and closed connections.
    #[cold]
    fn poll_pending_or_closed<'a>(
        &mut self,
        input: &mut &'a [u8],
        now: Instant,
    ) -> Result<Option<Event<'a>>, ConnectionError> {
        match self.shutdown.closed {
            Closed::No => {}
            Closed::ByDriver => {
                *input = &[];
                return Ok(None);
            }
            Closed::ByFault(error) => return Err(error),
        }
        match self.next_pending() {
            Some(event) => Ok(Some(event)),
            None => self.poll_input(input, now),
        }
    }

    fn next_pending(&mut self) -> Option<Event<'static>> {
        while let Some(event) = self.pending.pop_front() {
            match event {
                Event::Writable { stream, .. } if !self.is_open(stream) => {}
                _ => return Some(event),
            }
        }
        None
    }

    /// Ends a batch: all usable input has been consumed.
    #[inline]
    fn end_batch(&mut self) -> Option<Event<'static>> {
        self.receiving.batch += 1;
        None
    }

    #[expect(clippy::inline_always, reason = "saves some 20 instructions per frame")]
    #[inline(always)]
    fn poll_input<'a>(
        &mut self,
        input: &mut &'a [u8],
        now: Instant,
    ) -> Result<Option<Event<'a>>, ConnectionError> {
        let event = self.receive(input, now);
        if let Err(error) = &event {
            self.fail(*error);
        }
        event
    }

    #[inline]
    fn receive<'a>(
        &mut self,
        input: &mut &'a [u8],
        now: Instant,
    ) -> Result<Option<Event<'a>>, ConnectionError> {
        let input_len = input.len();
        loop {
            let event = match self.receiving.expect {
                Expect::Frame => {
                    let Some((header, rest)) = input.split_first_chunk::<FRAME_HEADER_LEN>() else {
                        return Ok(self.end_batch());
                    };
                    let header = FrameHeader::parse(header);
                    self.check_frame_header(header)?;
                    let event = if header.kind == Kind::Data {
                        // A DATA frame can be handled with its header and padding length only.
                        if header.flags.contains(Flags::PADDED) && rest.is_empty() && header.len > 0 {
                            return Ok(self.end_batch());
                        }
                        *input = rest;
                        self.receive_data(header, input, input_len, now)
                    } else {
                        let Some((payload, rest)) = rest.split_at_checked(header.len as usize) else {
                            self.check_incomplete_frame(header)?;
                            return Ok(self.end_batch());
                        };
                        *input = rest;
                        match header.kind {
                            Kind::Headers => self.receive_headers(
                                header,
                                payload,
                                RemainingInput { input, input_len },
                                now,
                            ),
                            Kind::WindowUpdate => {
                                self.receive_window_update(header, payload, now).map(|()| None)
                            }
                            _ => self.receive_other_frame(header, payload, now),
                        }
                    };
                    match event {
                        Ok(Some(event)) => return Ok(Some(event)),
                        Ok(None) => None,
                        Err(Fault::Stream(error)) => self.stream_error(header.stream, error, now)?,
                        Err(Fault::Connection(error)) => return Err(error),
                    }
                }
                Expect::Data(_) | Expect::Preface { .. } if input.is_empty() => return Ok(self.end_batch()),
                Expect::Data(incoming) => self.receive_data_part(incoming, input, input_len),
                Expect::Preface { matched } => {
                    self.receiving.receive_preface(matched, input)?;
                    None
                }
            };
            if event.is_some() {
                return Ok(event);
            }
            if !self.pending.is_empty()
                && let Some(event) = self.next_pending()
            {
                return Ok(Some(event));
            }
        }
    }

    /// Bounds the bytes of an incomplete frame that may be buffered.
    #[cold]
    fn check_incomplete_frame(&self, header: FrameHeader) -> Result<(), ConnectionError> {
        let is_block = matches!(header.kind, Kind::Headers | Kind::Continuation);
        if is_block && header.len as usize > self.config.limits.header_block_len_max {
            return Err(ConnectionError::calm(Violation::HeaderBlockTooLong));
        }
        Ok(())
    }

    /// Kept separate from the frames that calls consist of.
    #[cold]
    fn receive_other_frame<'a>(
        &mut self,
        header: FrameHeader,
        payload: &'a [u8],
        now: Instant,
    ) -> Result<Option<Event<'a>>, Fault> {
        match header.kind {
            Kind::Continuation => self.receive_continuation(header, payload, now),
            Kind::RstStream => self.receive_rst_stream(header, payload, now),
            Kind::Settings => self.receive_settings(header, payload, now),
            Kind::Ping => self.receive_ping(header, payload, now),
            Kind::GoAway => self.receive_goaway(header, payload, now),
            Kind::Priority => self.receive_priority(header, payload, now),
            Kind::PushPromise => Err(ConnectionError::protocol(Violation::PushDisabled).into()),
            // RFC 9113 §5.5. The known ones are handled elsewhere.
            Kind::Unknown(_) | Kind::Data | Kind::Headers | Kind::WindowUpdate => {
                Ok(self.budget.control_frame(Violation::UnknownFramesExceeded, now).map(|()| None)?)
            }
        }
    }

    /// Handles a DATA frame (RFC 9113 §6.1) whose payload starts at the front of `input`, possibly incomplete.
    /// `input_len` is the length of the input of this `poll_event`.
    #[inline]
    fn receive_data<'a>(
        &mut self,
        header: FrameHeader,
        input: &mut &'a [u8],
        input_len: usize,
        now: Instant,
    ) -> Result<Option<Event<'a>>, Fault> {
        let padding = padding_of(header, input)?;
        // The padding length has been read; the padding itself follows the data.
        *input = &input[usize::from(header.flags.contains(Flags::PADDED))..];
        let mut incoming = IncomingData {
            stream: Some(header.stream),
            data_left: header.len - padding,
            padding_left: padding - u32::from(header.flags.contains(Flags::PADDED)),
            end_stream: header.flags.contains(Flags::END_STREAM),
        };
        let key = self.account_for_data(header, padding, now);
        if let Ok(Some(key)) = key
            && padding == 0
            && input.len() >= header.len as usize
        {
            // The common case: the frame is entirely in the input.
            let start = input_len - input.len();
            let (bytes, rest) = input.split_at(header.len as usize);
            *input = rest;
            return Ok(self.emit_data_event(key, bytes, start, incoming.end_stream));
        }
        if !matches!(key, Ok(Some(_))) {
            // The frame is read and discarded.
            incoming = IncomingData { stream: None, end_stream: false, ..incoming };
        }
        self.receiving.expect = Expect::Data(incoming);
        key?;
        Ok(self.receive_data_part(incoming, input, input_len))
    }

    /// Checks everything that a frame's header alone can violate.
    #[inline]
    fn check_frame_header(&self, header: FrameHeader) -> Result<(), ConnectionError> {
        if self.handshake.settings_received
            && self.receiving.gathering.is_none()
            && header.len <= self.config.max_frame_size
        {
            return Ok(());
        }
        self.check_unusual_frame_header(header)
    }

    #[cold]
    fn check_unusual_frame_header(&self, header: FrameHeader) -> Result<(), ConnectionError> {
        if !self.handshake.settings_received && header.kind != Kind::Settings {
            // RFC 9113 §3.4. HTTP/1 peers end up here.
            return Err(ConnectionError::protocol(Violation::FirstFrameNotSettings));
        }
        if header.len > self.config.max_frame_size {
            return Err(ConnectionError::wrong_size(Violation::FrameTooLarge));
        }
        if self.receiving.gathering.is_some() && header.kind != Kind::Continuation {
            // RFC 9113 §6.10
            return Err(ConnectionError::protocol(Violation::HeaderBlockInterrupted));
        }
        Ok(())
    }

    /// Accounts for a DATA frame. `padding` includes the padding length byte. Returns its stream, or `None` if the data
    /// is to be discarded.
    #[inline]
    fn account_for_data(
        &mut self,
        header: FrameHeader,
        padding: u32,
        now: Instant,
    ) -> Result<Option<StreamKey>, Fault> {
        // Padding counts against both windows (RFC 9113 §6.9.1).
        let announced = self.receiving.window.receive_and_release(header.len);
        let (Ok(increment), false) = (announced, header.stream == StreamId::CONNECTION) else {
            return Err(connection_data_fault(header.stream).into());
        };
        if let Some(increment) = increment {
            self.announce_connection_window(increment, now);
        }
        let data_len = header.len - padding;
        let end_stream = header.flags.contains(Flags::END_STREAM);
        if data_len < self.config.limits.tiny_data_len && !end_stream {
            self.budget.glitch(Violation::TinyDataExceeded, now)?;
        }
        let Some((key, stream)) = self.streams.find_mut(header.stream) else {
            return self.data_on_absent(header.stream).map(|()| None);
        };
        self.budget.pay_for_control_frames(header.len as usize);
        // Nothing follows the last frame, and the driver does not release it.
        let is_allowed = if end_stream {
            stream.receive_window.takes(header.len)
        } else {
            stream.receive_window.receive(header.len).is_ok()
        };
        if stream.state.remote != RemoteState::Open || !is_allowed {
            return Err(stream_data_fault(stream).into());
        }
        if let Some(left) = &mut stream.body_left {
            let data_len = u64::from(data_len);
            // RFC 9113 §8.1.1
            if data_len > *left || (end_stream && data_len < *left) {
                return Err(StreamError::protocol(Violation::BodyLengthMismatch).into());
            }
            *left -= data_len;
        }
        if padding > 0
            && !end_stream
            && let Some(increment) = stream.receive_window.release(padding)
        {
            frame::window_update(header.stream, increment, self.sending.output.buffer());
        }
        Ok(Some(key))
    }

    /// RFC 9113 §5.1, "closed" and "idle".
    #[cold]
    fn data_on_absent(&self, id: StreamId) -> Result<(), Fault> {
        match self.streams.absent(id) {
            Absent::Idle => Err(ConnectionError::protocol(Violation::DataOnIdleStream).into()),
            Absent::Skipped => Err(ConnectionError::protocol(Violation::DataOnSkippedStream).into()),
            Absent::Ended => {
                Err(ConnectionError::local(ErrorCode::StreamClosed, Violation::DataOnEndedStream).into())
            }
            Absent::ResetByPeer => {
                Err(StreamError::new(ErrorCode::StreamClosed, Violation::DataOnResetStream).into())
            }
            Absent::Forgotten => Ok(()),
        }
    }

    /// Passes on the available part of an incomplete or padded DATA frame.
    fn receive_data_part<'a>(
        &mut self,
        incoming: IncomingData,
        input: &mut &'a [u8],
        input_len: usize,
    ) -> Option<Event<'a>> {
        let start = input_len - input.len();
        let DataPart { stream, bytes, end_stream } = self.receiving.take_data_part(incoming, input);
        // The driver may have reset the stream between two parts of the frame.
        let key = self.streams.find(stream?)?;
        self.emit_data_event(key, bytes, start, end_stream)
    }

    #[inline]
    fn emit_data_event<'a>(
        &mut self,
        key: StreamKey,
        bytes: &'a [u8],
        start: usize,
        end_stream: bool,
    ) -> Option<Event<'a>> {
        if bytes.is_empty() && !end_stream {
            return None;
        }
        let stream = self.streams.get_mut(key)?;
        let event = Event::Data { stream: stream.id, tag: stream.tag, bytes, start, end_stream };
        if end_stream {
            stream.state.remote = RemoteState::Ended;
            if stream.state.is_closed() {
                self.remove(key, Absent::Ended);
            }
        }
        Some(event)
    }
}

#[cold]
fn connection_data_fault(stream: StreamId) -> ConnectionError {
    if stream == StreamId::CONNECTION {
        return ConnectionError::protocol(Violation::DataOnConnection);
    }
    ConnectionError::local(ErrorCode::FlowControlError, Violation::ConnectionWindowExceeded)
}

#[cold]
fn stream_data_fault(stream: &Stream) -> StreamError {
    match stream.state.remote {
        RemoteState::AwaitingHeaders => StreamError::protocol(Violation::DataBeforeHeaders),
        RemoteState::Open => StreamError::new(ErrorCode::FlowControlError, Violation::StreamWindowExceeded),
        RemoteState::Ended => StreamError::new(ErrorCode::StreamClosed, Violation::DataAfterEnd),
    }
}

/// The input after the current frame.
pub(super) struct RemainingInput<'b, 'a> {
    input: &'b mut &'a [u8],
    /// Length of the input of this `poll_event`.
    input_len: usize,
}

impl<'a> RemainingInput<'_, 'a> {
    /// Continues with `rest`. Returns the offset of the payload of the frame at the front.
    #[inline]
    pub(super) fn skip_to(self, rest: &'a [u8]) -> usize {
        let start = self.input_len - self.input.len() + FRAME_HEADER_LEN;
        *self.input = rest;
        start
    }

    /// Returns the payload of the frame at the front and the bytes after it, if the frame is complete and exactly as
    /// expected.
    #[inline]
    pub(super) fn expect(&self, kind: Kind, flags: Flags, stream: StreamId) -> Option<(&'a [u8], &'a [u8])> {
        expect_frame(self.input, kind, flags, stream)
    }
}

/// See [`RemainingInput::expect`].
#[inline]
pub(super) fn expect_frame(
    input: &[u8],
    kind: Kind,
    flags: Flags,
    stream: StreamId,
) -> Option<(&[u8], &[u8])> {
    let (header, rest) = input.split_first_chunk::<FRAME_HEADER_LEN>()?;
    let header = FrameHeader::parse(header);
    if header.stream != stream || header.kind != kind || header.flags != flags {
        return None;
    }
    rest.split_at_checked(header.len as usize)
}

/// Returns how much of a DATA frame's payload is padding, including the padding length byte, which must be present.
#[inline]
fn padding_of(header: FrameHeader, payload: &[u8]) -> Result<u32, ConnectionError> {
    if !header.flags.contains(Flags::PADDED) {
        return Ok(0);
    }
    padding_length(header, payload)
}

#[cold]
fn padding_length(header: FrameHeader, payload: &[u8]) -> Result<u32, ConnectionError> {
    let padding = match payload.first() {
        Some(&padding) if header.len > 0 => u32::from(padding) + 1,
        _ => return Err(NO_PADDING_LENGTH),
    };
    if padding > header.len { Err(TOO_MUCH_PADDING) } else { Ok(padding) }
}
