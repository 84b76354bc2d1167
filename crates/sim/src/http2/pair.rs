//! Two connections in virtual time, for directed tests.

use std::ops::{Index, IndexMut};
use std::time::{Duration, Instant};

use thalweg_http2::{
    Block, Config, Connection, ConnectionError, ErrorCode, Event, FieldList, Headers, Indexing, Output,
    ResetCause, StreamId, Tag,
};

use super::monitor::Monitor;
use super::plan::WorldPlan;
use super::{Both, Side};
use crate::link::{LinkPlan, Pipe, Read};
use crate::random::Random;

/// Default transit time of a byte.
const DELAY: Duration = Duration::from_millis(1);
/// More steps than any test takes: more means an endless loop.
const STEPS_MAX: usize = 1_000_000;

/// A client and a server, with a link and a clock.
///
/// The test drives both ends: it calls their connections, lets time pass with [`drive`](Pair::drive), and inspects what
/// they received. The wire is checked like in a random world.
///
/// ```
/// use thalweg_sim::http2::{Pair, ReceivedEvent};
///
/// let mut pair = Pair::default();
/// let (client, server) = pair.connect();
/// let stream = pair[client].open(true);
/// pair.drive();
/// let [ReceivedEvent::Headers { stream: received, end_stream: true, .. }] = pair[server].received() else { panic!() };
/// assert_eq!(*received, stream);
/// ```
#[derive(Debug)]
pub struct Pair {
    ends: Both<Endpoint>,
    /// The directions of the link, by writer.
    pipes: Both<Pipe>,
    monitor: Monitor,
    random: Random,
    start: Instant,
    now: Duration,
}

impl Default for Pair {
    fn default() -> Pair {
        Pair::new(Config::default(), Config::default())
    }
}

impl Pair {
    /// Creates a pair on a link with a delay of one millisecond each way, without splitting or capacity limit.
    pub fn new(client: Config, server: Config) -> Pair {
        Pair::on_links([LinkPlan::steady(DELAY); 2], [client, server], Random::new(0))
    }

    /// Creates a pair with the settings and the link of the random world of `seed`. To reproduce a failed seed, a
    /// directed test starts here and repeats the drivers' actions in the trace.
    pub fn of_seed(seed: u64) -> Pair {
        let mut random = Random::new(seed);
        let WorldPlan { links, drivers } = WorldPlan::random(&mut random);
        Pair::on_links(links, drivers.map(|driver| driver.config), random)
    }

    /// Sets the link's delay for each direction.
    #[must_use]
    pub fn delayed(mut self, delay: Duration) -> Pair {
        self.pipes = Both([LinkPlan::steady(delay); 2].map(Pipe::new));
        self
    }

    fn on_links(links: [LinkPlan; 2], [client, server]: [Config; 2], random: Random) -> Pair {
        let start = Instant::now();
        let monitor = Monitor::new(&client, &server);
        let ends = [Connection::client(client, start), Connection::server(server, start)].map(|connection| {
            Endpoint {
                connection,
                releases: true,
                received: Vec::new(),
                error: None,
                input: Vec::new(),
                output: Output::default(),
            }
        });
        let pipes = Both(links.map(Pipe::new));
        Pair { ends: Both(ends), pipes, monitor, random, start, now: Duration::ZERO }
    }

    /// Exchanges SETTINGS. Returns the indices of the ends: client, then server.
    ///
    /// # Panics
    ///
    /// If one of the ends reports an error.
    pub fn connect(&mut self) -> (Side, Side) {
        self.drive();
        for side in Side::BOTH {
            let end = &mut self.ends[side];
            assert!(end.error.is_none() && end.connection.settings_received(), "{side:?}: {:?}", end.error);
            // Received SETTINGS, and the streams they allow, are not worth an event.
            end.received.retain(|received| *received != ReceivedEvent::StreamsFree);
        }
        (Side::Client, Side::Server)
    }

    /// Lets time pass until nothing moves.
    ///
    /// # Panics
    ///
    /// If the pair does not settle, or violates the protocol on the wire.
    pub fn drive(&mut self) {
        for _ in 0..STEPS_MAX {
            if self.move_bytes() {
                continue;
            }
            let Some(next) = self.next_event_time() else { return };
            self.now = self.now.max(next);
            self.handle_timeouts();
        }
        panic!("the pair does not settle");
    }

    /// Elapsed virtual time of the test.
    pub fn elapsed(&self) -> Duration {
        self.now
    }

    /// The current time as passed to the connections.
    pub fn instant(&self) -> Instant {
        self.start + self.now
    }

    /// Lets both sides write and read as much as possible. Returns whether anything moved.
    fn move_bytes(&mut self) -> bool {
        let mut moved = false;
        for side in Side::BOTH {
            moved |= self.write(side);
            moved |= self.read(side);
        }
        moved
    }

    fn write(&mut self, side: Side) -> bool {
        let now = self.instant();
        let end = &mut self.ends[side];
        // The driver's calls may have caused events.
        let mut moved = end.receive(&[], now);
        if end.output.is_empty() && end.connection.take_output(&mut end.output) {
            // Queues may have become writable.
            moved |= end.receive(&[], now);
        }
        let capacity = self.pipes[side].free_space();
        let mut written = Vec::new();
        end.output.copy_to(&mut written);
        written.truncate(capacity);
        if written.is_empty() {
            return moved;
        }
        end.output.advance(written.len());
        self.monitor.observe(side, &written);
        self.pipes[side].write(written.into(), self.now, &mut self.random);
        true
    }

    fn read(&mut self, side: Side) -> bool {
        let mut arrived = Vec::new();
        let pipe = &mut self.pipes[side.other()];
        if pipe.read(&mut arrived, usize::MAX, self.now, &mut self.random) != Read::Some {
            return false;
        }
        let now = self.instant();
        self.ends[side].receive(&arrived, now);
        true
    }

    fn next_event_time(&self) -> Option<Duration> {
        let of_side = |side: Side| {
            let deadline = self.ends[side].connection.timeout().map(|at| at - self.start);
            [self.pipes[side].next_arrival(), deadline].into_iter().flatten()
        };
        Side::BOTH.into_iter().flat_map(of_side).min()
    }

    fn handle_timeouts(&mut self) {
        let now = self.instant();
        for side in Side::BOTH {
            let end = &mut self.ends[side];
            if let Err(error) = end.connection.handle_timeout(now) {
                end.error = Some(error);
            }
        }
    }
}

impl Index<Side> for Pair {
    type Output = Endpoint;

    fn index(&self, side: Side) -> &Endpoint {
        &self.ends[side]
    }
}

impl IndexMut<Side> for Pair {
    fn index_mut(&mut self, side: Side) -> &mut Endpoint {
        &mut self.ends[side]
    }
}

/// One end of a [`Pair`].
#[derive(Debug)]
pub struct Endpoint {
    /// The connection, driven by the test.
    pub connection: Connection,
    /// Whether DATA is released on arrival. True by default.
    pub releases: bool,
    received: Vec<ReceivedEvent>,
    error: Option<ConnectionError>,
    input: Vec<u8>,
    output: Output,
}

impl Endpoint {
    /// Events since [`clear_received`](Endpoint::clear_received), in order.
    pub fn received(&self) -> &[ReceivedEvent] {
        &self.received
    }

    /// Discards the events received so far.
    pub fn clear_received(&mut self) {
        self.received.clear();
    }

    /// The connection error detected at this end, if any.
    pub fn error(&self) -> Option<ConnectionError> {
        self.error
    }

    /// The body received on a stream, and whether END_STREAM was received.
    pub fn body(&self, stream: StreamId) -> (Vec<u8>, bool) {
        let (mut body, mut ended) = (Vec::new(), false);
        for received in &self.received {
            if let ReceivedEvent::Data { stream: of, bytes, end_stream } = received
                && *of == stream
            {
                body.extend_from_slice(bytes);
                ended |= end_stream;
            }
        }
        (body, ended)
    }

    /// Opens a stream with a request's headers.
    ///
    /// # Panics
    ///
    /// If no stream can be opened.
    pub fn open(&mut self, end_stream: bool) -> StreamId {
        let head = fields(&[
            (":method", "POST"),
            (":scheme", "http"),
            (":path", "/service/method"),
            (":authority", "sim"),
        ]);
        let opened = self.connection.open(Tag(0), Block { fixed: None, extra: &head }, end_stream);
        opened.unwrap_or_else(|error| panic!("no stream can be opened: {error}"))
    }

    /// Responds with status 200 and no body.
    ///
    /// # Panics
    ///
    /// If nothing can be sent on the stream.
    pub fn respond(&mut self, stream: StreamId) {
        let head = fields(&[(":status", "200")]);
        let sent = self.connection.send_headers(stream, Block { fixed: None, extra: &head }, true);
        sent.unwrap_or_else(|error| panic!("stream {stream} cannot be answered: {error}"));
    }

    /// Processes received bytes. Returns whether that caused events.
    fn receive(&mut self, arrived: &[u8], now: Instant) -> bool {
        let mut input = std::mem::take(&mut self.input);
        input.extend_from_slice(arrived);
        let mut rest = &input[..];
        let before = self.received.len();
        loop {
            match self.connection.poll_event(&mut rest, now) {
                Ok(Some(event)) => self.record(&event),
                Ok(None) => break,
                Err(error) => {
                    self.error = Some(error);
                    rest = &[];
                    break;
                }
            }
        }
        self.input = rest.to_vec();
        self.received.len() > before
    }

    fn record(&mut self, event: &Event<'_>) {
        let head = || pairs(self.connection.fields());
        let received = match *event {
            Event::Headers { stream, end_stream, .. } => {
                ReceivedEvent::Headers { stream, fields: head(), end_stream }
            }
            Event::CompleteMessage { stream, bytes, .. } => {
                self.received.push(ReceivedEvent::Headers { stream, fields: head(), end_stream: false });
                if self.releases {
                    self.connection.release(stream, bytes.len());
                }
                let is_request = self.connection.fields().method().is_some();
                let data = ReceivedEvent::Data { stream, bytes: bytes.to_vec(), end_stream: is_request };
                if is_request {
                    data
                } else {
                    self.received.push(data);
                    ReceivedEvent::Trailers { stream, fields: pairs(self.connection.trailers()) }
                }
            }
            Event::Informational { stream, .. } => ReceivedEvent::Informational { stream, fields: head() },
            Event::Trailers { stream, .. } => {
                ReceivedEvent::Trailers { stream, fields: pairs(self.connection.trailers()) }
            }
            Event::Data { stream, bytes, end_stream, .. } => {
                if self.releases {
                    self.connection.release(stream, bytes.len());
                }
                ReceivedEvent::Data { stream, bytes: bytes.to_vec(), end_stream }
            }
            Event::Reset { stream, cause, .. } => ReceivedEvent::Reset { stream, cause },
            Event::Writable { stream, .. } => ReceivedEvent::Writable { stream },
            Event::StreamsFree => ReceivedEvent::StreamsFree,
            Event::GoAway { last_stream, code, .. } => ReceivedEvent::GoAway { last_stream, code },
            Event::Pong { payload } => ReceivedEvent::Pong { payload },
            ref other => panic!("an unknown event: {other:?}"),
        };
        self.received.push(received);
    }
}

/// An owned [`Event`] with the headers that it announces.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "they are those of the event")]
pub enum ReceivedEvent {
    Headers { stream: StreamId, fields: Vec<(String, String)>, end_stream: bool },
    Informational { stream: StreamId, fields: Vec<(String, String)> },
    Trailers { stream: StreamId, fields: Vec<(String, String)> },
    Data { stream: StreamId, bytes: Vec<u8>, end_stream: bool },
    Reset { stream: StreamId, cause: ResetCause },
    Writable { stream: StreamId },
    StreamsFree,
    GoAway { last_stream: StreamId, code: ErrorCode },
    Pong { payload: [u8; 8] },
}

fn pairs(head: &Headers) -> Vec<(String, String)> {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    head.iter().map(|field| (text(field.name), text(field.value))).collect()
}

fn fields(pairs: &[(&str, &str)]) -> FieldList {
    let mut list = FieldList::new();
    for (name, value) in pairs {
        list.push(name.as_bytes(), value.as_bytes(), Indexing::Insert);
    }
    list
}
