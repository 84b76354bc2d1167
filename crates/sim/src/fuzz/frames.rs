//! Any bytes as frames, to a server or to a client.

use std::time::Instant;

use bytes::Bytes;
use thalweg_http2::frame::{FRAME_HEADER_LEN, FrameHeader, PREFACE};
use thalweg_http2::{
    Block, Config, Connection, ConnectionError, Event, ExpectedData, FieldList, Headers, Indexing, Output,
    ResetReason, StreamId, Tag,
};

use super::features::{Features, INPUT_LEN_MAX, feature};
use crate::http2::{Side, record};
use crate::random::Random;

/// The lowest bit of an input's first byte selects the sender.
const FROM_SERVER: u8 = 1;
/// Streams that a client has open when the frames arrive.
const CLIENT_STREAMS: usize = 8;
/// Number of recorded worlds.
const RECORDED: u64 = 40;

/// Both directions of some worlds.
pub(super) fn corpus() -> Vec<Vec<u8>> {
    let input = |from: Side, mut bytes: Vec<u8>| {
        bytes.insert(0, if from == Side::Server { FROM_SERVER } else { 0 });
        bytes.truncate(INPUT_LEN_MAX);
        bytes
    };
    (0..RECORDED).flat_map(|seed| record(seed).into_iter().map(|(from, bytes)| input(from, bytes))).collect()
}

/// Checks that the outcome does not depend on how the bytes are cut, and that the output consists of frames whatever
/// the driver does.
pub(super) fn target(data: &[u8]) -> Features {
    let Some((&first, input)) = data.split_first() else { return Features::new() };
    let input = &input[..input.len().min(INPUT_LEN_MAX)];
    let from_server = first & FROM_SERVER != 0;
    let mut random = Random::new(feature(data));
    let uncut = Reaction::run(from_server, &[input], None);
    let pieces = cut(&mut random, input);
    let cut = Reaction::run(from_server, &pieces, None);
    assert_eq!(uncut.outcome, cut.outcome, "different outcome when the bytes arrive in pieces");
    let differs = uncut.events.iter().zip(&cut.events).position(|(uncut, cut)| uncut != cut);
    let same = differs.is_none() && uncut.events.len() == cut.events.len();
    assert!(same, "different events when the bytes arrive in pieces, from {differs:?} on");
    Reaction::run(from_server, &pieces, Some(random)).features()
}

fn cut<'a>(random: &mut Random, mut input: &'a [u8]) -> Vec<&'a [u8]> {
    let mut pieces = Vec::new();
    while !input.is_empty() {
        let (piece, rest) = input.split_at(1 + random.size(input.len() - 1));
        pieces.push(piece);
        input = rest;
    }
    pieces
}

/// An event; consecutive DATA of a stream is joined.
#[derive(Debug, PartialEq, Eq, Hash)]
enum SeenEvent {
    Headers { kind: &'static str, stream: u32, fields: u64, end: bool },
    Data { stream: u32, bytes: Vec<u8>, end: bool },
    Other(&'static str, u32, Option<ResetReason>),
}

/// A connection's reaction to its input.
struct Reaction {
    events: Vec<SeenEvent>,
    outcome: Result<(), ConnectionError>,
}

impl Reaction {
    /// Passes `pieces` one by one. With a `Random`, a driver reacts to the events.
    fn run(from_server: bool, pieces: &[&[u8]], mut driver: Option<Random>) -> Reaction {
        let now = Instant::now();
        let config = Config::default().stream_window(2000).output_target(700);
        let mut connection =
            if from_server { Connection::client(config, now) } else { Connection::server(config, now) };
        if from_server {
            let headers =
                fields(&[(":method", "POST"), (":scheme", "http"), (":path", "/"), (":authority", "a")]);
            for number in 0..CLIENT_STREAMS {
                let block = Block { fixed: None, extra: &headers };
                connection.open(Tag(number as u64), block, number % 2 == 0).expect("100 are assumed");
            }
        }
        let mut reaction = Reaction { events: Vec::new(), outcome: Ok(()) };
        let (mut output, mut kept) = (Output::default(), Vec::new());
        let mut sent = Vec::new();
        for piece in pieces {
            let piece = reaction.receive_in_place(&mut connection, piece, driver.as_mut());
            kept.extend_from_slice(piece);
            let mut rest = &kept[..];
            reaction.outcome = reaction.poll(&mut connection, &mut rest, now, driver.as_mut());
            kept = rest.to_vec();
            while connection.take_output(&mut output) {
                output.copy_to(&mut sent);
                output.advance(output.len());
            }
            if reaction.outcome.is_err() {
                break;
            }
        }
        assert_eq!(reaction.outcome.is_err(), connection.is_closed());
        assert_frames(&sent);
        reaction
    }

    /// Sometimes the driver reads expected DATA itself; the events must be the same. Returns the rest.
    fn receive_in_place<'a>(
        &mut self,
        connection: &mut Connection,
        piece: &'a [u8],
        driver: Option<&mut Random>,
    ) -> &'a [u8] {
        let expected = connection.expected_data().filter(|_| piece.len().is_multiple_of(2));
        let Some(expected) = expected else { return piece };
        let (bytes, rest) = piece.split_at(piece.len().min(expected.len));
        let end_stream = connection.note_direct_data(bytes.len()).is_some();
        if end_stream || !bytes.is_empty() {
            let ExpectedData { stream, tag, .. } = expected;
            self.record(connection, &Event::Data { stream, tag, bytes, start: 0, end_stream });
            if let Some(random) = driver {
                act_on(connection, stream, random);
            }
        }
        rest
    }

    fn poll(
        &mut self,
        connection: &mut Connection,
        rest: &mut &[u8],
        now: Instant,
        mut driver: Option<&mut Random>,
    ) -> Result<(), ConnectionError> {
        while let Some(event) = connection.poll_event(rest, now)? {
            self.record(connection, &event);
            // Without a driver nothing is released: the time of window updates depends on how the bytes are cut.
            if let (
                Some(random),
                Event::Headers { stream, .. }
                | Event::CompleteMessage { stream, .. }
                | Event::Data { stream, .. },
            ) = (&mut driver, event)
            {
                act_on(connection, stream, random);
            }
        }
        Ok(())
    }

    fn record(&mut self, connection: &Connection, event: &Event<'_>) {
        let features = |headers: &Headers| feature(format!("{:?}", headers.iter().collect::<Vec<_>>()));
        let fields = || features(connection.fields());
        let recorded = match *event {
            Event::Headers { stream, end_stream, .. } => SeenEvent::Headers {
                kind: "headers",
                stream: stream.get(),
                fields: fields(),
                end: end_stream,
            },
            Event::CompleteMessage { stream, bytes, .. } => {
                let (tag, start) = (Tag::default(), 0);
                let is_request = connection.fields().method().is_some();
                self.record(connection, &Event::Headers { stream, tag, end_stream: false });
                if is_request || !bytes.is_empty() {
                    self.record(
                        connection,
                        &Event::Data { stream, tag, bytes, start, end_stream: is_request },
                    );
                }
                if !is_request {
                    self.record(connection, &Event::Trailers { stream, tag });
                }
                return;
            }
            Event::Informational { stream, .. } => SeenEvent::Headers {
                kind: "informational",
                stream: stream.get(),
                fields: fields(),
                end: false,
            },
            Event::Trailers { stream, .. } => {
                let fields = features(connection.trailers());
                SeenEvent::Headers { kind: "trailers", stream: stream.get(), fields, end: true }
            }
            Event::Data { stream, bytes, end_stream, .. } => {
                assert!(end_stream || !bytes.is_empty(), "an event that says nothing");
                if let Some(SeenEvent::Data { stream: last, bytes: joined, end }) = self.events.last_mut()
                    && *last == stream.get()
                    && !*end
                {
                    joined.extend_from_slice(bytes);
                    *end = end_stream;
                    return;
                }
                SeenEvent::Data { stream: stream.get(), bytes: bytes.to_vec(), end: end_stream }
            }
            Event::Reset { stream, cause, .. } => SeenEvent::Other("reset", stream.get(), Some(cause.reason)),
            Event::Writable { stream, .. } => SeenEvent::Other("writable", stream.get(), None),
            Event::StreamsFree => SeenEvent::Other("streams free", 0, None),
            Event::GoAway { last_stream, .. } => SeenEvent::Other("goaway", last_stream.get(), None),
            Event::Pong { .. } => SeenEvent::Other("pong", 0, None),
            _ => panic!("an unknown event: {event:?}"),
        };
        self.events.push(recorded);
    }

    /// Pairs of consecutive events, and the outcome.
    fn features(&self) -> Features {
        let kind = |event: &SeenEvent| match event {
            SeenEvent::Headers { kind, end, .. } => (*kind, None, *end),
            SeenEvent::Data { end, .. } => ("data", None, *end),
            SeenEvent::Other(kind, _, reason) => (*kind, *reason, false),
        };
        let pairs = self.events.windows(2).map(|pair| feature((kind(&pair[0]), kind(&pair[1]))));
        pairs.chain([feature(self.outcome.map_err(|error| error.violation))]).collect()
    }
}

/// Sends a short response, resets, or releases window, and ignores the connection's errors.
fn act_on(connection: &mut Connection, stream: StreamId, random: &mut Random) {
    let end = random.one_in(3);
    match random.below(5) {
        0 => {
            let headers = fields(&[(":status", "200"), ("content-type", "application/grpc")]);
            connection.send_headers(stream, Block { fixed: None, extra: &headers }, end).ok();
        }
        1 => {
            connection.send_data(stream, [Bytes::from(vec![7; random.size(5000)])], end).ok();
        }
        2 => connection.release(stream, random.size(70_000)),
        3 if random.one_in(4) => connection.reset(stream, thalweg_http2::ErrorCode::Cancel),
        _ => connection.ping([1; 8]),
    }
}

fn fields(pairs: &[(&str, &str)]) -> FieldList {
    let mut list = FieldList::new();
    for (name, value) in pairs {
        list.push(name.as_bytes(), value.as_bytes(), Indexing::Insert);
    }
    list
}

fn assert_frames(mut sent: &[u8]) {
    sent = sent.strip_prefix(&PREFACE[..]).unwrap_or(sent);
    while let Some((header, rest)) = sent.split_first_chunk::<FRAME_HEADER_LEN>() {
        let len = FrameHeader::parse(header).len as usize;
        sent = rest.get(len..).expect("output ends within a frame");
    }
    assert!(sent.is_empty(), "output ends within a frame header");
}
