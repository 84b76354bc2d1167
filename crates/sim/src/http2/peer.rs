//! A connection's driver: follows the contract, and otherwise acts randomly.

mod actions;
mod receive;

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use thalweg_http2::{Config, Connection, Output};

use super::Side;
use super::ledger::Ledger;
use super::plan::{self, DriverPlan};
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

/// Remaining output of a driver on a stream.
#[derive(Debug)]
struct Outbound {
    informational: usize,
    headers_sent: bool,
    remaining: usize,
    chunk: usize,
    end_frame: EndFrame,
    /// Until [`Event::Writable`](thalweg_http2::Event::Writable).
    blocked: bool,
}

/// The frame with END_STREAM.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum EndFrame {
    LastData,
    EmptyData,
    Trailers,
}

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
                streams_wanted: if side == Side::Client { plan.streams_wanted } else { 0 },
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

    fn stop(&mut self, phase: Phase, scene: &mut Scene<'_>) {
        scene.ledger.end_all(self.side);
        self.phase = phase;
        self.next_act = None;
        self.sending.clear();
        self.unreleased.clear();
    }

    fn may_open(&self) -> bool {
        self.plan.streams_wanted > 0 && !self.waits_for_stream
    }

    /// Streams on which the driver can send.
    fn ready(&self) -> impl Iterator<Item = u32> {
        self.sending.iter().filter(|(_, outbound)| !outbound.blocked).map(|(&stream, _)| stream)
    }

    /// Schedules the next action if the driver has work.
    fn plan_act(&mut self, scene: &mut Scene<'_>) {
        let has_work = self.plan.acts > 0
            || self.may_open()
            || !self.unreleased.is_empty()
            || self.ready().next().is_some();
        if self.phase == Phase::Open && has_work && self.next_act.is_none() {
            let pause = scene.random.size(self.plan.pause_max.as_micros() as usize);
            self.next_act = Some(scene.now + Duration::from_micros(pause as u64));
        }
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

    fn forget(&mut self, stream: u32) {
        self.sending.remove(&stream);
        self.unreleased.remove(&stream);
    }

    /// Checks that nothing is left to do while the connection lives.
    pub(super) fn assert_idle(&self) {
        assert_eq!(self.connection.active_streams(), 0, "{:?} has streams that nobody uses", self.side);
        assert!(self.sending.is_empty(), "stalled: {:?} waits to be writable: {:?}", self.side, self.sending);
        let forgotten = self.waits_for_stream && self.connection.can_open();
        assert!(!forgotten, "stalled: nobody told the client that it can open streams again");
    }
}
