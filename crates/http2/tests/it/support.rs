//! A builder of frames, and a connection under test with its events and output.
use std::time::{Duration, Instant};

use thalweg_http2::frame::{self, FRAME_HEADER_LEN, Flags, FrameHeader, GoAway, Kind, PREFACE, Setting};
use thalweg_http2::hpack::{Decoder, Encoder};
use thalweg_http2::{
    Block, Config, Connection, ConnectionError, ErrorCode, Event, FieldList, Headers, Indexing, Output,
    ResetCause, StreamId,
};

/// The start time of every test. Only differences to it matter.
pub(crate) fn start() -> Instant {
    #[expect(clippy::disallowed_methods, reason = "no other way to get an Instant")]
    Instant::now()
}

pub(crate) fn fields(pairs: &[(&str, &str)]) -> FieldList {
    let mut list = FieldList::new();
    for (name, value) in pairs {
        list.push(name.as_bytes(), value.as_bytes(), Indexing::Insert);
    }
    list
}

pub(crate) const POST: &[(&str, &str)] = &[
    (":method", "POST"),
    (":scheme", "http"),
    (":path", "/s/m"),
    (":authority", "test"),
    ("te", "trailers"),
];
pub(crate) const OK: &[(&str, &str)] = &[(":status", "200"), ("content-type", "application/grpc")];
pub(crate) const TRAILERS: &[(&str, &str)] = &[("grpc-status", "0")];

pub(crate) fn id(stream: u32) -> StreamId {
    StreamId::new(stream)
}

/// Frames of a peer, in sequence.
#[derive(Default)]
pub(crate) struct Frames {
    bytes: Vec<u8>,
    encoder: Encoder,
}

impl Frames {
    pub(crate) fn new() -> Frames {
        Frames::default()
    }

    /// Returns a client's first frames: the preface, SETTINGS, and the acknowledgement of the server's.
    pub(crate) fn client() -> Frames {
        Frames::new().raw(PREFACE).settings(&[]).frame(Kind::Settings, Flags::ACK, 0, b"")
    }

    /// Returns a server's first frames.
    pub(crate) fn server() -> Frames {
        Frames::new().settings(&[]).frame(Kind::Settings, Flags::ACK, 0, b"")
    }

    pub(crate) fn raw(mut self, bytes: &[u8]) -> Frames {
        self.bytes.extend_from_slice(bytes);
        self
    }

    pub(crate) fn frame(mut self, kind: Kind, flags: Flags, stream: u32, payload: &[u8]) -> Frames {
        frame::emit(kind, flags, id(stream), payload, &mut self.bytes);
        self
    }

    pub(crate) fn settings(mut self, entries: &[Setting]) -> Frames {
        frame::settings(entries, &mut self.bytes);
        self
    }

    /// Encodes the header block of the next HEADERS.
    pub(crate) fn block(&mut self, pairs: &[(&str, &str)]) -> Vec<u8> {
        let mut block = Vec::new();
        self.encoder.encode(Block { fixed: None, extra: &fields(pairs) }, &mut block);
        block
    }

    pub(crate) fn headers(mut self, stream: u32, end_stream: bool, pairs: &[(&str, &str)]) -> Frames {
        let block = self.block(pairs);
        let flags = Flags::END_HEADERS.with_if(end_stream, Flags::END_STREAM);
        self.frame(Kind::Headers, flags, stream, &block)
    }

    /// Adds a request without a body.
    pub(crate) fn request(self, stream: u32) -> Frames {
        self.headers(stream, true, POST)
    }

    /// Adds a request whose body follows.
    pub(crate) fn open_request(self, stream: u32) -> Frames {
        self.headers(stream, false, POST)
    }

    pub(crate) fn data(self, stream: u32, end_stream: bool, bytes: &[u8]) -> Frames {
        self.frame(Kind::Data, Flags::NONE.with_if(end_stream, Flags::END_STREAM), stream, bytes)
    }

    pub(crate) fn padded_data(self, stream: u32, end_stream: bool, bytes: &[u8], padding: u8) -> Frames {
        let payload = [&[padding], bytes, &vec![0; padding as usize]].concat();
        let flags = Flags::PADDED.with_if(end_stream, Flags::END_STREAM);
        self.frame(Kind::Data, flags, stream, &payload)
    }

    pub(crate) fn rst_stream(mut self, stream: u32, code: ErrorCode) -> Frames {
        frame::rst_stream(id(stream), code, &mut self.bytes);
        self
    }

    pub(crate) fn window_update(mut self, stream: u32, increment: u32) -> Frames {
        frame::window_update(id(stream), increment, &mut self.bytes);
        self
    }

    pub(crate) fn ping(mut self, ack: bool, payload: [u8; 8]) -> Frames {
        frame::ping(ack, payload, &mut self.bytes);
        self
    }

    pub(crate) fn goaway(mut self, last_stream: u32, code: ErrorCode) -> Frames {
        GoAway { last_stream: id(last_stream), code }.emit(b"why", &mut self.bytes);
        self
    }

    pub(crate) fn take(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.bytes)
    }
}

/// An owned event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum OwnedEvent {
    Headers(u32, bool, Vec<(String, String)>),
    Informational(u32, u16),
    Trailers(u32, Vec<(String, String)>),
    Data(u32, bool, Vec<u8>),
    Reset(u32, ResetCause),
    Writable(u32),
    StreamsFree,
    GoAway(u32, ErrorCode, Vec<u8>),
    Pong([u8; 8]),
    DecodeBudgetSpent,
}

fn pairs(headers: &Headers) -> Vec<(String, String)> {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let pseudo = [(":method", headers.method()), (":path", headers.path())];
    let pseudo = pseudo.into_iter().filter_map(|(name, value)| Some((name.to_owned(), text(value?))));
    let status = headers.status().map(|status| (":status".to_owned(), status.to_string()));
    pseudo.chain(status).chain(headers.iter().map(|field| (text(field.name), text(field.value)))).collect()
}

/// A frame sent by the connection under test.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SentFrame {
    pub(crate) kind: Kind,
    pub(crate) flags: Flags,
    pub(crate) stream: u32,
    pub(crate) payload: Vec<u8>,
}

impl SentFrame {
    pub(crate) fn is(&self, kind: Kind, stream: u32) -> bool {
        self.kind == kind && self.stream == stream
    }

    pub(crate) fn ends_stream(&self) -> bool {
        matches!(self.kind, Kind::Data | Kind::Headers) && self.flags.contains(Flags::END_STREAM)
    }

    /// Returns the number in an RST_STREAM or a WINDOW_UPDATE.
    pub(crate) fn number(&self) -> u32 {
        u32::from_be_bytes(self.payload[..4].try_into().unwrap())
    }
}

pub(crate) fn parse_frames(mut bytes: &[u8]) -> Vec<SentFrame> {
    bytes = bytes.strip_prefix(&PREFACE[..]).unwrap_or(bytes);
    let mut frames = Vec::new();
    while let Some((header, rest)) = bytes.split_first_chunk::<FRAME_HEADER_LEN>() {
        let header = FrameHeader::parse(header);
        let (payload, rest) = rest.split_at(header.len as usize);
        let FrameHeader { kind, flags, stream, .. } = header;
        frames.push(SentFrame { kind, flags, stream: stream.get(), payload: payload.to_vec() });
        bytes = rest;
    }
    assert!(bytes.is_empty(), "output ends within a frame");
    frames
}

/// A connection whose driver releases DATA immediately and records all events.
pub(crate) struct Subject {
    pub(crate) connection: Connection,
    pub(crate) now: Instant,
    pub(crate) events: Vec<OwnedEvent>,
    /// Whether DATA is released as it arrives.
    pub(crate) releases: bool,
    input: Vec<u8>,
    output: Output,
}

impl Subject {
    fn new(make: fn(Config, Instant) -> Connection, config: Config) -> Subject {
        let now = start();
        let connection = make(config, now);
        Subject {
            connection,
            now,
            events: Vec::new(),
            releases: true,
            input: Vec::new(),
            output: Output::default(),
        }
    }

    /// Creates a server whose client has sent its preface; the output is empty.
    pub(crate) fn server(config: Config) -> Subject {
        let mut subject = Subject::new(Connection::server, config);
        subject.feed(&mut Frames::client()).unwrap();
        subject.sent();
        subject
    }

    /// Creates a client whose server has sent its SETTINGS; the output is empty, and no event is pending.
    pub(crate) fn client(config: Config) -> Subject {
        let mut subject = Subject::new(Connection::client, config);
        subject.feed(&mut Frames::server()).unwrap();
        subject.sent();
        subject.events.clear();
        subject
    }

    pub(crate) fn bare_server(config: Config) -> Subject {
        Subject::new(Connection::server, config)
    }

    pub(crate) fn bare_client(config: Config) -> Subject {
        Subject::new(Connection::client, config)
    }

    /// Opens a stream with a complete request.
    pub(crate) fn open(&mut self) -> StreamId {
        self.connection.open(tag(0), block(&fields(POST)), true).unwrap()
    }

    pub(crate) fn feed(&mut self, frames: &mut Frames) -> Result<(), ConnectionError> {
        let bytes = frames.take();
        self.feed_bytes(&bytes)
    }

    /// Presents received bytes, after those left over.
    pub(crate) fn feed_bytes(&mut self, bytes: &[u8]) -> Result<(), ConnectionError> {
        self.input.extend_from_slice(bytes);
        let input = std::mem::take(&mut self.input);
        let mut rest = &input[..];
        let outcome = self.poll(&mut rest);
        self.input = rest.to_vec();
        outcome
    }

    fn poll(&mut self, rest: &mut &[u8]) -> Result<(), ConnectionError> {
        loop {
            let input = *rest;
            let Some(event) = self.connection.poll_event(rest, self.now)? else { return Ok(()) };
            let headers = self.connection.fields();
            let trailers = self.connection.trailers();
            let event = match event {
                Event::Headers { stream, end_stream, .. } => {
                    OwnedEvent::Headers(stream.get(), end_stream, pairs(headers))
                }
                Event::CompleteMessage { stream, bytes, start, .. } => {
                    assert_eq!(
                        &input[start..start + bytes.len()],
                        bytes,
                        "`start` is not the offset of `bytes`"
                    );
                    self.events.push(OwnedEvent::Headers(stream.get(), false, pairs(headers)));
                    let is_request = headers.method().is_some();
                    let data = OwnedEvent::Data(stream.get(), is_request, bytes.to_vec());
                    let trailers = OwnedEvent::Trailers(stream.get(), pairs(trailers));
                    if self.releases {
                        self.connection.release(stream, bytes.len());
                    }
                    if is_request {
                        data
                    } else {
                        self.events.push(data);
                        trailers
                    }
                }
                Event::Informational { stream, .. } => {
                    OwnedEvent::Informational(stream.get(), headers.status().unwrap())
                }
                Event::Trailers { stream, .. } => OwnedEvent::Trailers(stream.get(), pairs(trailers)),
                Event::Data { stream, bytes, start, end_stream, .. } => {
                    assert!(end_stream || !bytes.is_empty(), "event without content");
                    assert_eq!(
                        &input[start..start + bytes.len()],
                        bytes,
                        "`start` is not the offset of `bytes`"
                    );
                    if self.releases {
                        self.connection.release(stream, bytes.len());
                    }
                    OwnedEvent::Data(stream.get(), end_stream, bytes.to_vec())
                }
                Event::Reset { stream, cause, .. } => OwnedEvent::Reset(stream.get(), cause),
                Event::Writable { stream, .. } => OwnedEvent::Writable(stream.get()),
                Event::StreamsFree => OwnedEvent::StreamsFree,
                Event::GoAway { last_stream, code, debug } => {
                    OwnedEvent::GoAway(last_stream.get(), code, debug.to_vec())
                }
                Event::Pong { payload } => OwnedEvent::Pong(payload),
                Event::DecodeBudgetSpent => OwnedEvent::DecodeBudgetSpent,
                other => panic!("an unknown event: {other:?}"),
            };
            self.events.push(event);
        }
    }

    /// Returns the bytes that the connection wants to write now.
    pub(crate) fn sent_bytes(&mut self) -> Vec<u8> {
        let mut bytes = Vec::new();
        if self.connection.take_output(&mut self.output) {
            assert!(!self.output.is_empty());
            self.output.copy_to(&mut bytes);
            self.output.advance(bytes.len());
        }
        bytes
    }

    /// Returns all frames that the connection wants to write.
    pub(crate) fn sent(&mut self) -> Vec<SentFrame> {
        let mut bytes = Vec::new();
        loop {
            let more = self.sent_bytes();
            if more.is_empty() {
                return parse_frames(&bytes);
            }
            bytes.extend(more);
        }
    }

    pub(crate) fn advance_time(&mut self, time: Duration) {
        self.now += time;
    }
}

pub(crate) fn tag(number: u64) -> thalweg_http2::Tag {
    thalweg_http2::Tag(number)
}

pub(crate) fn block(fields: &FieldList) -> Block<'_> {
    Block { fixed: None, extra: fields }
}

/// Decodes the header blocks that a connection has sent, in order.
pub(crate) struct Blocks(Decoder);

impl Blocks {
    pub(crate) fn new() -> Blocks {
        Blocks(Decoder::new(4096))
    }

    pub(crate) fn decode(&mut self, block: &[u8]) -> Vec<(String, String)> {
        let mut list = FieldList::new();
        self.0.decode(block, 1 << 20, &mut list).unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        list.iter().map(|field| (text(field.name), text(field.value))).collect()
    }
}
