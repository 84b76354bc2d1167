//! A connection's driver: follows the contract, and otherwise acts randomly.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use bytes::Bytes;
use thalweg_http2::{
    Block, Config, Connection, ErrorCode, Event, FieldList, Indexing, OpenError, Output, StreamId, Tag,
};

use super::Side;
use super::ledger::{self, Ledger};
use super::plan::{self, DriverPlan};
use crate::pattern;
use crate::random::Random;
use crate::trace::Trace;

/// State shared by all parts of a world during an event.
pub(super) struct Scene<'a> {
    pub(super) now: Duration,
    pub(super) start: Instant,
    pub(super) random: Random,
    pub(super) trace: &'a mut Trace,
    pub(super) ledger: Ledger,
}

impl Scene<'_> {
    pub(super) fn instant(&self) -> Instant {
        self.start + self.now
    }

    pub(super) fn note(&mut self, side: Side, what: &str, stream: u32, number: usize) {
        self.trace.note(self.now, side, what, u64::from(stream), number as u64);
    }
}

/// One end: the connection, and its driver with all pending work.
#[derive(Debug)]
pub(super) struct Peer {
    pub(super) side: Side,
    pub(super) connection: Connection,
    pub(super) phase: Phase,
    /// Time of the driver's next action.
    pub(super) next_act: Option<Duration>,
    /// Bytes taken from the connection that are being written.
    pub(super) output: Output,
    plan: DriverPlan,
    /// The other side's limits.
    other_config: Config,
    input: Vec<u8>,
    sending: BTreeMap<u32, Outbound>,
    unreleased: BTreeMap<u32, usize>,
    waits_for_stream: bool,
    /// The world is quiet and only the windows are probed: drivers do nothing else.
    probing: bool,
    /// Bytes that the output may have beyond its target since it was last taken.
    output_slack: usize,
}

/// Whether the driver still uses the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    Open,
    /// It has closed the connection: the rest of the output is written, then nothing more.
    Closing,
    Over,
}

/// Maximum length of the connection's DATA frames, if the peer accepts that, in bytes.
const DATA_LEN_MAX: usize = 128 << 10;
/// Length of a control frame, and the most output caused by a received frame, in bytes.
const CONTROL_LEN_MAX: usize = 40;

impl Peer {
    pub(super) fn new(side: Side, plan: DriverPlan, other_config: &Config, now: Instant) -> Peer {
        let connection = match side {
            Side::Client => Connection::client(plan.config.clone(), now),
            Side::Server => Connection::server(plan.config.clone(), now),
        };
        Peer {
            side,
            connection,
            phase: Phase::Open,
            next_act: Some(Duration::ZERO),
            output: Output::default(),
            plan: DriverPlan {
                streams_to_open: if side == Side::Client { plan.streams_to_open } else { 0 },
                ..plan
            },
            other_config: other_config.clone(),
            input: Vec::new(),
            sending: BTreeMap::new(),
            unreleased: BTreeMap::new(),
            waits_for_stream: false,
            probing: false,
            output_slack: 4 * CONTROL_LEN_MAX,
        }
    }

    /// The connection's deadline in this world's time.
    pub(super) fn deadline(&self, scene: &Scene<'_>) -> Option<Duration> {
        match self.phase {
            Phase::Open => self.connection.timeout().map(|at| at - scene.start),
            Phase::Closing | Phase::Over => None,
        }
    }

    pub(super) fn config(&self) -> &Config {
        &self.plan.config
    }

    /// Whether everything was sent, although the connection was not closed.
    pub(super) fn is_flushed(&self) -> bool {
        let flushed = self.output.is_empty() && !self.connection.wants_write();
        self.phase != Phase::Over && flushed && self.connection.is_drained()
    }

    /// Processes received bytes after those left from the last time.
    pub(super) fn receive(&mut self, arrived: &[u8], scene: &mut Scene<'_>) {
        let arrived = self.receive_data_in_place(arrived, scene);
        let mut input = std::mem::take(&mut self.input);
        input.extend_from_slice(arrived);
        self.output_slack += 3 * arrived.len();
        let mut rest = &input[..];
        self.poll_events(&mut rest, scene);
        self.input = rest.to_vec();
        let kept_max = self.plan.config.max_frame_size as usize + thalweg_http2::frame::FRAME_HEADER_LEN;
        assert!(self.input.len() < kept_max, "{} bytes are kept", self.input.len());
        self.plan_act(scene);
    }

    /// Sometimes reads expected DATA itself. Returns the rest.
    fn receive_data_in_place<'a>(&mut self, arrived: &'a [u8], scene: &mut Scene<'_>) -> &'a [u8] {
        let expected = self.connection.expected_data().filter(|_| arrived.len().is_multiple_of(2));
        let Some(expected) = expected else { return arrived };
        assert!(self.input.is_empty(), "DATA is expected after the remaining input");
        let (bytes, rest) = arrived.split_at(arrived.len().min(expected.len));
        self.output_slack += 3 * bytes.len();
        let end = self.connection.note_direct_data(bytes.len());
        let end_stream = matches!(end, Some(Event::Data { bytes: [], end_stream: true, .. }));
        assert!(end_stream || end.is_none(), "{end:?} of data that was placed");
        if end_stream || !bytes.is_empty() {
            self.on_event(
                Event::Data { stream: expected.stream, tag: expected.tag, bytes, start: 0, end_stream },
                scene,
            );
        }
        rest
    }

    fn poll_events(&mut self, input: &mut &[u8], scene: &mut Scene<'_>) {
        loop {
            let before = *input;
            match self.connection.poll_event(input, scene.instant()) {
                Ok(Some(event)) => {
                    if let Event::Data { bytes, start, .. } = event {
                        assert_eq!(
                            &before[start..start + bytes.len()],
                            bytes,
                            "DATA is not at its stated offset"
                        );
                    }
                    self.on_event(event, scene);
                }
                Ok(None) => return,
                // The error that it was closed with.
                Err(_) if self.phase == Phase::Closing => {
                    *input = &[];
                    return;
                }
                Err(error) => panic!("{:?} accuses an honest peer: {error}", self.side),
            }
        }
    }

    /// Takes output if none is left.
    pub(super) fn take_output(&mut self, scene: &mut Scene<'_>) {
        if !self.output.is_empty() || !self.connection.take_output(&mut self.output) {
            return;
        }
        let bound = self.plan.config.output_target + DATA_LEN_MAX + self.output_slack;
        assert!(self.output.len() <= bound, "{} bytes of output, {bound} expected", self.output.len());
        self.output_slack = 4 * CONTROL_LEN_MAX;
        // Queues may have become writable.
        self.poll_events(&mut &[][..], scene);
        self.plan_act(scene);
    }

    pub(super) fn handle_timeout(&mut self, scene: &mut Scene<'_>) {
        if let Err(error) = self.connection.handle_timeout(scene.instant()) {
            let requested = error.code == ErrorCode::SettingsTimeout;
            assert!(requested, "{:?} accuses an honest peer: {error}", self.side);
            scene.note(self.side, "settings timeout", 0, 0);
            scene.ledger.record_goaway(self.side, error.code);
            self.stop(Phase::Closing, scene);
        }
    }

    /// The other side has closed the connection. If it closed normally, no stream was left open.
    pub(super) fn end_input(&mut self, is_orderly: bool, scene: &mut Scene<'_>) {
        scene.note(self.side, "end of input", 0, usize::from(is_orderly));
        if is_orderly && self.phase == Phase::Open {
            let unended: Vec<_> = scene.ledger.unended(self.side).collect();
            assert!(
                unended.is_empty(),
                "the peer closed cleanly, but {unended:?} are open: {:#?}",
                scene.ledger
            );
        }
        self.stop(Phase::Over, scene);
    }

    /// The connection is drained, and all its streams have ended.
    pub(super) fn finish_drained(&mut self, scene: &mut Scene<'_>) {
        let unended: Vec<_> = scene.ledger.unended(self.side).collect();
        assert!(
            unended.is_empty(),
            "the connection is drained, but {unended:?} are open: {:#?}",
            scene.ledger
        );
        self.stop(Phase::Over, scene);
    }

    fn stop(&mut self, phase: Phase, scene: &mut Scene<'_>) {
        scene.ledger.end_all(self.side);
        self.phase = phase;
        self.next_act = None;
        self.sending.clear();
        self.unreleased.clear();
    }

    fn on_event(&mut self, event: Event<'_>, scene: &mut Scene<'_>) {
        let side = self.side;
        match event {
            Event::Headers { stream, end_stream, .. } => self.receive_headers(stream, end_stream, scene),
            Event::CompleteMessage { stream, bytes, .. } => {
                self.receive_headers(stream, false, scene);
                self.receive_data(stream, bytes, side == Side::Server, scene);
                if side == Side::Client {
                    self.receive_trailers(stream, scene);
                }
            }
            Event::Informational { stream, .. } => {
                scene.note(side, "informational", stream.get(), 0);
                let hash = ledger::hash_fields(self.connection.fields().iter());
                scene.ledger.receive_headers(side, stream.get(), hash, false);
            }
            Event::Trailers { stream, .. } => self.receive_trailers(stream, scene),
            Event::Data { stream, bytes, end_stream, .. } => {
                self.receive_data(stream, bytes, end_stream, scene);
            }
            Event::Reset { stream, cause, .. } => {
                scene.note(side, "reset", stream.get(), u32::from(cause.code) as usize);
                scene.ledger.check_reset(side, stream.get(), cause);
                assert!(!self.connection.is_open(stream), "stream {stream} is open after its Reset");
                self.forget(stream.get());
            }
            Event::Writable { stream, .. } => {
                scene.note(side, "writable", stream.get(), 0);
                if let Some(outbound) = self.sending.get_mut(&stream.get()) {
                    outbound.blocked = false;
                }
            }
            Event::StreamsFree => self.waits_for_stream = false,
            Event::GoAway { code, debug, .. } => {
                scene.note(side, "goaway", 0, u32::from(code) as usize);
                scene.ledger.check_goaway(side, code, debug);
            }
            Event::Pong { payload } => scene.ledger.check_pong(side, payload),
            other => panic!("an unknown event: {other:?}"),
        }
        self.react(event, scene);
    }

    fn receive_headers(&mut self, stream: StreamId, end_stream: bool, scene: &mut Scene<'_>) {
        scene.note(self.side, "headers", stream.get(), usize::from(end_stream));
        let hash = ledger::hash_fields(self.connection.fields().iter());
        scene.ledger.receive_headers(self.side, stream.get(), hash, end_stream);
        if self.side == Side::Server && !self.probing {
            let outbound = self.outbound(scene);
            self.sending.insert(stream.get(), outbound);
        }
    }

    fn receive_data(&mut self, stream: StreamId, bytes: &[u8], end_stream: bool, scene: &mut Scene<'_>) {
        scene.note(self.side, "data", stream.get(), bytes.len());
        scene.ledger.receive(self.side, stream.get(), bytes, end_stream);
        self.account_received_data(stream, bytes.len(), end_stream);
    }

    fn receive_trailers(&mut self, stream: StreamId, scene: &mut Scene<'_>) {
        scene.note(self.side, "trailers", stream.get(), 0);
        let hash = ledger::hash_fields(self.connection.trailers().iter());
        scene.ledger.receive_headers(self.side, stream.get(), hash, true);
    }

    fn account_received_data(&mut self, stream: StreamId, len: usize, end_stream: bool) {
        if self.plan.releases_at_once {
            self.connection.release(stream, len);
        } else if end_stream {
            self.unreleased.remove(&stream.get());
        } else {
            *self.unreleased.entry(stream.get()).or_default() += len;
        }
    }

    /// Some drivers reset a stream on an event, even between two parts of a frame.
    fn react(&mut self, event: Event<'_>, scene: &mut Scene<'_>) {
        if let Event::Headers { stream, .. }
        | Event::CompleteMessage { stream, .. }
        | Event::Data { stream, .. } = event
            && self.plan.resets
            && !self.probing
            && scene.random.one_in(30)
        {
            self.reset(stream.get(), scene);
        }
    }

    /// Checks that nothing is left to do while the connection lives.
    pub(super) fn assert_idle(&self) {
        assert_eq!(self.connection.active_streams(), 0, "{:?} has unused streams", self.side);
        assert!(self.sending.is_empty(), "stalled: {:?} waits to be writable: {:?}", self.side, self.sending);
        let forgotten = self.waits_for_stream && self.connection.can_open();
        assert!(!forgotten, "stalled: the client was not notified that it can open streams again");
    }
}

/// Remaining output of a driver on a stream.
#[derive(Debug)]
struct Outbound {
    informational: usize,
    headers_sent: bool,
    remaining: usize,
    chunk: usize,
    end_frame: EndFrame,
    /// Until [`Event::Writable`].
    blocked: bool,
}

/// The frame with END_STREAM.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum EndFrame {
    LastData,
    EmptyData,
    Trailers,
}

/// Codes of resets by drivers. REFUSED_STREAM would mean that the request was not processed.
const RESET_CODES: [ErrorCode; 4] =
    [ErrorCode::Cancel, ErrorCode::NoError, ErrorCode::InternalError, ErrorCode::Unknown(0x77)];

impl Peer {
    /// Performs one action of the driver.
    pub(super) fn act(&mut self, scene: &mut Scene<'_>) {
        self.next_act = None;
        if self.phase != Phase::Open {
            return;
        }
        if self.plan.acts > 0 {
            self.plan.acts -= 1;
            self.act_randomly(scene);
            if self.phase != Phase::Open {
                return;
            }
        }
        let stream = |random: &mut Random, count, mut streams: &mut dyn Iterator<Item = u32>| {
            (count > 0).then(|| (&mut streams).nth(random.below(count))).flatten()
        };
        match scene.random.below(4) {
            0 if self.may_open() => self.open(scene),
            1 if !self.unreleased.is_empty() => {
                let count = self.unreleased.len();
                let stream = stream(&mut scene.random, count, &mut self.unreleased.keys().copied());
                if let Some(stream) = stream {
                    self.release(stream, scene);
                }
            }
            _ => {
                let ready: Vec<_> = self.ready().collect();
                let stream = stream(&mut scene.random, ready.len(), &mut ready.into_iter());
                if let Some(stream) = stream {
                    self.send(stream, scene);
                }
            }
        }
        self.plan_act(scene);
    }

    fn act_randomly(&mut self, scene: &mut Scene<'_>) {
        let one_in = |random: &mut Random, n| n > 0 && random.one_in(n);
        if scene.random.one_in(20) {
            let payload = scene.ledger.ping(self.side);
            self.connection.ping(payload);
            self.output_slack += CONTROL_LEN_MAX;
        }
        if self.plan.resets && scene.random.one_in(4) {
            let open: Vec<_> = scene.ledger.unended(self.side).collect();
            if !open.is_empty() {
                self.reset(scene.random.pick(&open), scene);
            }
        }
        if one_in(&mut scene.random, self.plan.drain_one_in) {
            scene.note(self.side, "drain", 0, 0);
            scene.ledger.record_goaway(self.side, ErrorCode::NoError);
            self.connection.drain(scene.instant());
            self.output_slack += 2 * CONTROL_LEN_MAX;
        }
        if one_in(&mut scene.random, self.plan.close_one_in) {
            let code = scene.random.pick(&RESET_CODES);
            scene.note(self.side, "close", 0, u32::from(code) as usize);
            scene.ledger.record_goaway(self.side, code);
            self.connection.close(code, b"enough");
            self.output_slack += 2 * CONTROL_LEN_MAX;
            self.stop(Phase::Closing, scene);
        }
    }

    fn may_open(&self) -> bool {
        self.plan.streams_to_open > 0 && !self.waits_for_stream
    }

    /// Streams on which the driver can send.
    fn ready(&self) -> impl Iterator<Item = u32> {
        self.sending.iter().filter(|(_, outbound)| !outbound.blocked).map(|(&stream, _)| stream)
    }

    /// Schedules the next action if the driver has work.
    pub(super) fn plan_act(&mut self, scene: &mut Scene<'_>) {
        let has_work = self.plan.acts > 0
            || self.may_open()
            || !self.unreleased.is_empty()
            || self.ready().next().is_some();
        if self.phase == Phase::Open && has_work && self.next_act.is_none() {
            let pause = scene.random.size(self.plan.pause_max.as_micros() as usize);
            self.next_act = Some(scene.now + Duration::from_micros(pause as u64));
        }
    }

    /// Opens one more stream.
    pub(super) fn open(&mut self, scene: &mut Scene<'_>) {
        // Every other time it asks for a notification first, instead of being refused.
        if self.plan.streams_to_open.is_multiple_of(2) && self.connection.notify_free_stream() {
            self.waits_for_stream = true;
            return;
        }
        let outbound = self.outbound(scene);
        let mut headers = request_headers();
        plan::push_fields(&mut scene.random, &mut headers);
        let end = outbound.remaining == 0 && outbound.end_frame == EndFrame::LastData;
        let before_settings = !self.connection.settings_received();
        match self.connection.open(Tag(7), Block { fixed: None, extra: &headers }, end) {
            Ok(stream) => {
                let stream = stream.get();
                scene.note(self.side, "open", stream, outbound.remaining);
                scene.ledger.open(stream, before_settings);
                self.account_sent_headers(stream, &headers, end, scene);
                self.plan.streams_to_open = self.plan.streams_to_open.saturating_sub(1);
                if !end {
                    self.sending.insert(stream, Outbound { headers_sent: true, ..outbound });
                }
            }
            Err(OpenError::NoFreeStream) => self.waits_for_stream = true,
            Err(OpenError::GoingAway) => self.plan.streams_to_open = 0,
            Err(OpenError::HeadersTooLarge { .. }) => {
                self.plan.streams_to_open = self.plan.streams_to_open.saturating_sub(1);
            }
            Err(error) => panic!("the client cannot open a stream: {error}"),
        }
    }

    /// Opens a stream that the drivers use only as instructed.
    pub(super) fn open_probe(&mut self, scene: &mut Scene<'_>) -> u32 {
        self.probing = true;
        let headers = request_headers();
        let stream = self
            .connection
            .open(Tag(7), Block { fixed: None, extra: &headers }, false)
            .expect("a free stream");
        scene.ledger.open(stream.get(), false);
        self.account_sent_headers(stream.get(), &headers, false, scene);
        stream.get()
    }

    pub(super) fn expect_probe(&mut self) {
        self.probing = true;
    }

    pub(super) fn respond_to_probe(&mut self, stream: u32, scene: &mut Scene<'_>) {
        self.send_header_block(stream, Some("200"), false, scene);
    }

    fn outbound(&self, scene: &mut Scene<'_>) -> Outbound {
        let body_max = self.plan.body_max.min(plan::body_max(self.other_config.stream_window));
        let remaining = scene.random.size(body_max);
        Outbound {
            informational: usize::from(self.side == Side::Server && scene.random.one_in(5)),
            headers_sent: false,
            remaining,
            // At most about forty pieces: the receiver counts each tiny one as a glitch.
            chunk: (remaining / scene.random.between(1, 40)).max(5),
            end_frame: scene.random.pick(&[EndFrame::LastData, EndFrame::EmptyData, EndFrame::Trailers]),
            blocked: false,
        }
    }

    /// Sends the next part of a stream: headers, a part of the body, or the end.
    fn send(&mut self, stream: u32, scene: &mut Scene<'_>) {
        let Some(outbound) = self.sending.get_mut(&stream) else { return };
        if outbound.informational > 0 {
            outbound.informational -= 1;
            self.send_header_block(stream, Some("103"), false, scene);
        } else if !outbound.headers_sent {
            outbound.headers_sent = true;
            let end = outbound.remaining == 0 && outbound.end_frame == EndFrame::LastData;
            self.send_header_block(stream, Some("200"), end, scene);
        } else if outbound.remaining > 0 || outbound.end_frame != EndFrame::Trailers {
            self.send_body(stream, scene);
        } else {
            self.send_header_block(stream, None, true, scene);
        }
    }

    fn send_header_block(&mut self, stream: u32, status: Option<&str>, end: bool, scene: &mut Scene<'_>) {
        let mut headers = FieldList::new();
        if let Some(status) = status {
            headers.push(b":status", status.as_bytes(), Indexing::Insert);
        }
        if !self.probing {
            plan::push_fields(&mut scene.random, &mut headers);
        }
        let sent =
            self.connection.send_headers(StreamId::new(stream), Block { fixed: None, extra: &headers }, end);
        sent.unwrap_or_else(|error| panic!("failed to send headers on stream {stream}: {error}"));
        scene.note(self.side, "send head", stream, usize::from(end));
        self.account_sent_headers(stream, &headers, end, scene);
    }

    fn account_sent_headers(&mut self, stream: u32, headers: &FieldList, end: bool, scene: &mut Scene<'_>) {
        scene.ledger.send_headers(self.side, stream, headers, self.other_config.max_header_list_size, end);
        self.output_slack += headers.size() + CONTROL_LEN_MAX;
        if end {
            self.sending.remove(&stream);
        }
    }

    fn send_body(&mut self, stream: u32, scene: &mut Scene<'_>) {
        let Some(outbound) = self.sending.get_mut(&stream) else { return };
        let len = outbound.chunk.min(outbound.remaining);
        outbound.remaining -= len;
        let end = outbound.remaining == 0 && (len == 0 || outbound.end_frame == EndFrame::LastData);
        self.send_bytes(stream, len, end, scene);
        let queued = self.connection.queued(StreamId::new(stream));
        if end {
            self.sending.remove(&stream);
        } else if let Some(outbound) = self.sending.get_mut(&stream) {
            outbound.blocked = queued >= self.plan.config.send_queue_low_water;
        }
    }

    /// Sends the next `len` bytes of the side's body on a stream.
    pub(super) fn send_bytes(&mut self, stream: u32, len: usize, end: bool, scene: &mut Scene<'_>) {
        let sent_bytes = scene.ledger.sent_bytes(self.side, stream);
        let bytes = pattern::slice_of(ledger::body_of(stream, self.side), sent_bytes, len);
        scene.note(self.side, if end { "send last" } else { "send" }, stream, len);
        let id = StreamId::new(stream);
        let in_place = scene.random.one_in(2)
            && self
                .connection
                .send_data_in_place(id, len, end, |out| out.extend_from_slice(&bytes))
                .expect("open");
        if !in_place {
            let sent = self.connection.send_data(id, [bytes], end);
            sent.unwrap_or_else(|error| panic!("failed to send on stream {stream}: {error}"));
        }
        self.output_slack += CONTROL_LEN_MAX;
        scene.ledger.send(self.side, stream, len, end);
    }

    /// Ends a stream without further data.
    pub(super) fn end(&mut self, stream: u32, scene: &mut Scene<'_>) {
        self.connection.send_data(StreamId::new(stream), [Bytes::new()], true).expect("open");
        scene.ledger.send(self.side, stream, 0, true);
    }

    fn release(&mut self, stream: u32, scene: &mut Scene<'_>) {
        let Some(unreleased) = self.unreleased.get_mut(&stream) else { return };
        let len = if scene.random.one_in(2) { *unreleased } else { scene.random.between(1, *unreleased) };
        *unreleased -= len;
        if *unreleased == 0 {
            self.unreleased.remove(&stream);
        }
        scene.note(self.side, "release", stream, len);
        self.connection.release(StreamId::new(stream), len);
        self.output_slack += CONTROL_LEN_MAX;
    }

    fn reset(&mut self, stream: u32, scene: &mut Scene<'_>) {
        if scene.ledger.is_over(self.side, stream) {
            return;
        }
        let code = scene.random.pick(&RESET_CODES);
        scene.note(self.side, "reset it", stream, u32::from(code) as usize);
        scene.ledger.reset(self.side, stream, code);
        self.connection.reset(StreamId::new(stream), code);
        self.output_slack += CONTROL_LEN_MAX;
        self.forget(stream);
    }

    pub(super) fn forget(&mut self, stream: u32) {
        self.sending.remove(&stream);
        self.unreleased.remove(&stream);
    }
}

fn request_headers() -> FieldList {
    let mut headers = FieldList::new();
    for (name, value) in [(":method", "POST"), (":scheme", "http"), (":path", "/a/b"), (":authority", "sim")]
    {
        headers.push(name.as_bytes(), value.as_bytes(), Indexing::Insert);
    }
    headers
}
