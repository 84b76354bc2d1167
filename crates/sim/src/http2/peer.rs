//! A connection's driver: follows the contract, and otherwise acts randomly.

mod actions;

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use thalweg_http2::{Config, Connection, ErrorCode, Event, Output, StreamId};

use super::Side;
use super::ledger::{self, Ledger};
use super::plan::DriverPlan;
use crate::random::Random;
use crate::trace::Trace;
use actions::Outbound;

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
        assert!(self.input.is_empty(), "DATA is expected behind what is left");
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
                            "DATA does not lie where it says"
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
            assert!(unended.is_empty(), "the peer left well, but {unended:?} are open: {:#?}", scene.ledger);
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
