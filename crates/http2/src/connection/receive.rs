//! What comes in: frames in place, DATA as it comes.

use std::time::Instant;

use super::Connection;
use super::shutdown::Closed;
use crate::error::{ConnectionError, ErrorCode, Fault, StreamError};
use crate::event::Event;
use crate::frame::padding::{NO_PADDING_LENGTH, TOO_MUCH_PADDING};
use crate::frame::{self, Flags, FrameHead, HEAD_LEN, Kind, PREFACE};
use crate::stream::StreamId;
use crate::stream_table::Absent;

/// What the next byte of input is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Expect {
    /// The client's preface, of which so much has come.
    Preface { matched: usize },
    /// A frame's head.
    Frame,
    /// The rest of a DATA frame.
    Data(Incoming),
}

/// A DATA frame whose head was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Incoming {
    /// `None`: nobody is interested.
    stream: Option<StreamId>,
    data_left: u32,
    padding_left: u32,
    end_stream: bool,
}

impl Connection {
    /// Consumes from the front of `input` and returns the next event.
    ///
    /// `None`: all that can be used is used. What is left in `input`, an incomplete frame other than DATA of at most
    /// `max_frame_size + 9` bytes, is to be presented again with more behind it. DATA is passed on as it comes, frame
    /// complete or not; a DATA frame that lies whole in `input` is one event.
    ///
    /// Events that need no input, such as [`Event::Writable`], come from an empty `input` too.
    ///
    /// # Errors
    ///
    /// The peer broke the protocol or a limit. GOAWAY is in the output; each further call gives the same error.
    #[inline]
    pub fn poll_event<'a>(
        &mut self,
        input: &mut &'a [u8],
        now: Instant,
    ) -> Result<Option<Event<'a>>, ConnectionError> {
        if self.pending.is_empty() && input.is_empty() && self.closed == Closed::No {
            self.batch += 1;
            return Ok(None);
        }
        self.poll_input(input, now)
    }

    fn poll_input<'a>(
        &mut self,
        input: &mut &'a [u8],
        now: Instant,
    ) -> Result<Option<Event<'a>>, ConnectionError> {
        match self.closed {
            Closed::No => {}
            Closed::ByOwner => {
                *input = &[];
                return Ok(None);
            }
            Closed::ByFault(error) => return Err(error),
        }
        if !self.pending.is_empty()
            && let Some(event) = self.next_pending()
        {
            return Ok(Some(event));
        }
        let event = self.receive(input, now);
        match &event {
            Ok(None) => self.batch += 1,
            Ok(Some(_)) => {}
            Err(error) => self.fail(*error),
        }
        event
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

    fn receive<'a>(
        &mut self,
        input: &mut &'a [u8],
        now: Instant,
    ) -> Result<Option<Event<'a>>, ConnectionError> {
        loop {
            let event = match self.expect {
                Expect::Frame => {
                    let Some(head) = self.next_head(input)? else { return Ok(None) };
                    let event = if head.kind == Kind::Data {
                        self.receive_data(head, input, now)
                    } else {
                        self.receive_whole(head, input, now)
                    };
                    match event {
                        Ok(event) => event,
                        Err(Fault::Stream(error)) => self.stream_error(head.stream, error, now)?,
                        Err(Fault::Connection(error)) => return Err(error),
                    }
                }
                Expect::Data(_) | Expect::Preface { .. } if input.is_empty() => return Ok(None),
                Expect::Data(incoming) => self.receive_data_part(incoming, input),
                Expect::Preface { matched } => {
                    self.receive_preface(matched, input)?;
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

    /// RFC 9113 §3.4
    fn receive_preface(&mut self, matched: usize, input: &mut &[u8]) -> Result<(), ConnectionError> {
        let rest = &PREFACE[matched..];
        let len = rest.len().min(input.len());
        let (part, behind) = input.split_at(len);
        if *part != rest[..len] {
            return Err(ConnectionError::protocol(
                "the peer does not speak HTTP/2: the client preface is missing",
            ));
        }
        *input = behind;
        let matched = matched + len;
        self.expect = if matched == PREFACE.len() { Expect::Frame } else { Expect::Preface { matched } };
        Ok(())
    }

    /// The head of the frame at the front of the input, if enough of the frame is there to take it: all of it, or for DATA
    /// all but the payload.
    #[inline]
    fn next_head(&self, input: &[u8]) -> Result<Option<FrameHead>, ConnectionError> {
        let Some((head, behind)) = input.split_first_chunk::<HEAD_LEN>() else {
            return Ok(None);
        };
        let head = FrameHead::parse(head);
        self.check_head(head)?;
        let needed = match head.kind {
            Kind::Data => u32::from(head.flags.contains(Flags::PADDED)).min(head.len),
            _ => head.len,
        };
        Ok((behind.len() >= needed as usize).then_some(head))
    }

    /// Takes a frame that lies whole in the input.
    #[inline]
    fn receive_whole<'a>(
        &mut self,
        head: FrameHead,
        input: &mut &'a [u8],
        now: Instant,
    ) -> Result<Option<Event<'a>>, Fault> {
        let (payload, behind) = input[HEAD_LEN..].split_at(head.len as usize);
        *input = behind;
        match head.kind {
            Kind::Headers => self.receive_headers(head, payload, now),
            Kind::Continuation => self.receive_continuation(head, payload, now),
            Kind::WindowUpdate => self.receive_window_update(head, payload, now),
            Kind::RstStream => self.receive_rst_stream(head, payload, now),
            Kind::Settings => self.receive_settings(head, payload, now),
            Kind::Ping => self.receive_ping(head, payload, now),
            Kind::GoAway => self.receive_goaway(head, payload, now),
            Kind::Priority => self.receive_priority(head, payload, now),
            Kind::PushPromise => {
                Err(ConnectionError::protocol("PUSH_PROMISE, though pushes are disabled").into())
            }
            // RFC 9113 §5.5. DATA is taken elsewhere.
            Kind::Unknown(_) | Kind::Data => {
                Ok(self.control_frame("too many unknown frames", now).map(|()| None)?)
            }
        }
    }

    /// Takes the head of a DATA frame, and what there is of its payload.
    #[inline]
    fn receive_data<'a>(
        &mut self,
        head: FrameHead,
        input: &mut &'a [u8],
        now: Instant,
    ) -> Result<Option<Event<'a>>, Fault> {
        let payload = &input[HEAD_LEN..];
        let padding = padding_of(head, payload)?;
        // The padding's length is read; the rest of the padding comes behind the data.
        *input = &payload[usize::from(head.flags.contains(Flags::PADDED))..];
        let incoming = self.begin_data(head, padding, now)?;
        Ok(self.receive_data_part(incoming, input))
    }

    /// What can be said of a frame by its head alone.
    #[inline]
    fn check_head(&self, head: FrameHead) -> Result<(), ConnectionError> {
        if !self.settings_received && head.kind != Kind::Settings {
            // RFC 9113 §3.4. Whatever speaks HTTP/1 ends up here.
            return Err(ConnectionError::protocol(
                "the peer does not speak HTTP/2: its first frame is not SETTINGS",
            ));
        }
        if head.len > self.config.max_frame_size {
            return Err(ConnectionError::local(
                ErrorCode::FrameSizeError,
                "a frame is larger than max_frame_size",
            ));
        }
        if self.gathering.is_some() && head.kind != Kind::Continuation {
            // RFC 9113 §6.10
            return Err(ConnectionError::protocol("a header block is interrupted by another frame"));
        }
        Ok(())
    }

    /// Accounts for a DATA frame (RFC 9113 §6.1) by its head. `padding` is what is not data, its length byte included.
    fn begin_data(&mut self, head: FrameHead, padding: u32, now: Instant) -> Result<Incoming, Fault> {
        if head.stream == StreamId::CONNECTION {
            return Err(ConnectionError::protocol("DATA on stream 0").into());
        }
        // Padding counts against both windows (RFC 9113 §6.9.1).
        if self.receive_window.receive(head.len).is_err() {
            let reason = "DATA beyond the connection's window";
            return Err(ConnectionError::local(ErrorCode::FlowControlError, reason).into());
        }
        if let Some(increment) = self.receive_window.release(head.len) {
            frame::window_update(StreamId::CONNECTION, increment, self.output.buffer());
        }
        let end_stream = head.flags.contains(Flags::END_STREAM);
        let incoming = Incoming {
            stream: Some(head.stream),
            data_left: head.len - padding,
            padding_left: padding - u32::from(head.flags.contains(Flags::PADDED)),
            end_stream,
        };
        // If the stream is at fault, the frame is read and thrown away.
        self.expect = Expect::Data(Incoming { stream: None, end_stream: false, ..incoming });
        if incoming.data_left < self.config.limits.tiny_data_len && !end_stream {
            self.glitch(1, "too many tiny DATA frames", now)?;
        }
        self.pay_for_control_frames(head.len as usize);
        let Some(key) = self.streams.find(head.stream) else {
            self.data_on_absent(head.stream)?;
            return Ok(Incoming { stream: None, end_stream: false, ..incoming });
        };
        let stream = self.streams.get_mut(key);
        if !stream.state.can_receive() {
            return Err(StreamError::new(ErrorCode::StreamClosed, "DATA behind END_STREAM").into());
        }
        if !stream.head_received {
            return Err(StreamError::protocol("DATA before the response's HEADERS").into());
        }
        if stream.receive_window.receive(head.len).is_err() {
            return Err(
                StreamError::new(ErrorCode::FlowControlError, "DATA beyond the stream's window").into()
            );
        }
        if let Some(left) = &mut stream.body_left {
            let data_len = u64::from(incoming.data_left);
            // RFC 9113 §8.1.1
            if data_len > *left || (end_stream && data_len < *left) {
                return Err(StreamError::protocol("the body's length differs from `content-length`").into());
            }
            *left -= data_len;
        }
        if padding > 0
            && !end_stream
            && let Some(increment) = stream.receive_window.release(padding)
        {
            frame::window_update(head.stream, increment, self.output.buffer());
        }
        Ok(incoming)
    }

    /// RFC 9113 §5.1, "closed" and "idle".
    #[cold]
    fn data_on_absent(&self, id: StreamId) -> Result<(), Fault> {
        match self.streams.absent(id) {
            Absent::Idle => Err(ConnectionError::protocol("DATA on an idle stream").into()),
            Absent::Skipped => Err(ConnectionError::protocol("DATA on a stream that was passed over").into()),
            Absent::Ended => {
                Err(ConnectionError::local(ErrorCode::StreamClosed, "DATA on a stream that has ended").into())
            }
            Absent::ResetByPeer => {
                Err(StreamError::new(ErrorCode::StreamClosed, "DATA on a stream that the peer has reset")
                    .into())
            }
            Absent::Forgotten => Ok(()),
        }
    }

    /// Passes on what the input holds of a DATA frame.
    #[inline]
    fn receive_data_part<'a>(&mut self, mut incoming: Incoming, input: &mut &'a [u8]) -> Option<Event<'a>> {
        let len = input.len().min(incoming.data_left as usize);
        let (bytes, behind) = input.split_at(len);
        incoming.data_left -= len as u32;
        let all_data = incoming.data_left == 0;
        let padding = if all_data { behind.len().min(incoming.padding_left as usize) } else { 0 };
        incoming.padding_left -= padding as u32;
        *input = &behind[padding..];
        let end_stream = incoming.end_stream && all_data;
        if end_stream {
            incoming.end_stream = false;
        }
        self.expect =
            if all_data && incoming.padding_left == 0 { Expect::Frame } else { Expect::Data(incoming) };
        if len == 0 && !end_stream {
            return None;
        }
        // The owner may have reset the stream between two parts of the frame.
        let id = incoming.stream?;
        let key = self.streams.find(id)?;
        let tag = self.streams.get(key).tag;
        if end_stream {
            self.end_received(key);
        }
        Some(Event::Data { stream: id, tag, bytes, end_stream })
    }
}

/// How much of a DATA frame's payload is padding, its length byte included, which must be there.
#[inline]
fn padding_of(head: FrameHead, payload: &[u8]) -> Result<u32, ConnectionError> {
    if !head.flags.contains(Flags::PADDED) {
        return Ok(0);
    }
    let padding = match payload.first() {
        Some(&padding) if head.len > 0 => u32::from(padding) + 1,
        _ => return Err(NO_PADDING_LENGTH),
    };
    if padding > head.len { Err(TOO_MUCH_PADDING) } else { Ok(padding) }
}
