//! The clock of a world, and the choice of the next event.

use std::time::{Duration, Instant};

use bytes::Bytes;
use thalweg_http2::Config;

use super::ledger::Ledger;
use super::monitor::Monitor;
use super::peer::{Peer, Phase, Scene};
use super::plan::WorldPlan;
use super::{Both, Side};
use crate::link::{Pipe, Read};
use crate::random::Random;
use crate::trace::Trace;

/// More steps than any world takes: more means an endless loop.
const STEPS_MAX: usize = 1_000_000;
/// Maximum slices of a write.
const SLICES_MAX: usize = 5;

/// Two peers and the link between them.
pub(super) struct World {
    random: Random,
    pub(super) peers: Both<Peer>,
    /// The directions, by writer.
    pipes: Both<Pipe>,
    pub(super) monitor: Monitor,
    start: Instant,
    /// Time when the link breaks.
    cut_at: Option<Duration>,
}

/// A possible event.
#[derive(Clone, Copy, Debug)]
enum Step {
    Act(Side),
    Read(Side),
    Write(Side),
    Timeout(Side),
    Close(Side),
    Cut,
}

impl World {
    pub(super) fn new(mut random: Random) -> World {
        let start = Instant::now();
        let WorldPlan { links, drivers: [client, server] } = WorldPlan::random(&mut random);
        let (client_config, server_config) = (client.config.clone(), server.config.clone());
        let peers = Both([
            Peer::new(Side::Client, client, &server_config, start),
            Peer::new(Side::Server, server, &client_config, start),
        ]);
        let pipes = Both(links.map(Pipe::new));
        let cut_at = random.one_in(8).then(|| Duration::from_micros(random.size(5_000_000) as u64));
        let monitor = Monitor::new(&client_config, &server_config);
        World { random, peers, pipes, monitor, start, cut_at }
    }

    /// Runs the world until it is quiet, and checks it. Returns the observed wire.
    pub(super) fn run(mut self, trace: &mut Trace) -> Monitor {
        let (now, random, ledger) = (Duration::ZERO, self.random.clone(), Ledger::default());
        let mut scene = Scene { now, start: self.start, random, trace, ledger };
        self.run_until_quiet(&mut scene);
        self.assert_settled(&scene);
        self.probe(&mut scene);
        self.assert_settled(&scene);
        self.monitor
    }

    /// Checks the invariants of a quiet world.
    fn assert_settled(&self, scene: &Scene<'_>) {
        let phases = Side::BOTH.map(|side| self.peers[side].phase);
        if phases == [Phase::Open; 2] {
            scene.ledger.assert_complete();
            for side in Side::BOTH {
                self.peers[side].assert_idle();
            }
            self.monitor.assert_windows_full();
        } else {
            assert_eq!(phases, [Phase::Over; 2], "stalled: one side left, and the other did not notice");
        }
    }

    pub(super) fn run_until_quiet(&mut self, scene: &mut Scene<'_>) {
        for _ in 0..STEPS_MAX {
            let steps = self.steps(scene);
            if !steps.is_empty() {
                let step = scene.random.pick(&steps);
                self.perform(step, scene);
            } else if let Some(at) = self.next_event_time(scene) {
                scene.now = at;
            } else {
                return;
            }
        }
        panic!("the world does not settle");
    }

    /// All events that are possible now.
    fn steps(&self, scene: &Scene<'_>) -> Vec<Step> {
        let due = |at: Option<Duration>| at.is_some_and(|at| at <= scene.now);
        let mut steps = Vec::with_capacity(8);
        for side in Side::BOTH {
            let peer = &self.peers[side];
            if peer.phase == Phase::Over {
                continue;
            }
            let can = [
                (due(peer.next_act), Step::Act(side)),
                (due(self.pipes[side.other()].next_arrival()), Step::Read(side)),
                (self.can_write(side), Step::Write(side)),
                (due(peer.deadline(scene)), Step::Timeout(side)),
                (peer.is_flushed(), Step::Close(side)),
            ];
            steps.extend(can.into_iter().filter(|(can, _)| *can).map(|(_, step)| step));
        }
        if due(self.cut_at) {
            steps.push(Step::Cut);
        }
        steps
    }

    fn can_write(&self, side: Side) -> bool {
        let peer = &self.peers[side];
        self.pipes[side].free_space() > 0 && (!peer.output.is_empty() || peer.connection.wants_write())
    }

    /// Time of the next possible event.
    fn next_event_time(&self, scene: &Scene<'_>) -> Option<Duration> {
        let of_side = |side: Side| {
            let peer = &self.peers[side];
            let arrival = self.pipes[side.other()].next_arrival();
            let moments = [peer.next_act, arrival, peer.deadline(scene)];
            moments.into_iter().flatten().filter(move |_| peer.phase != Phase::Over)
        };
        // A cut is not work: a quiet world stays quiet without it.
        let next = Side::BOTH.into_iter().flat_map(of_side).min()?;
        Some(self.cut_at.map_or(next, |cut| next.min(cut)))
    }

    fn perform(&mut self, step: Step, scene: &mut Scene<'_>) {
        match step {
            Step::Act(side) => self.peers[side].act(scene),
            Step::Read(side) => self.read(side, scene),
            Step::Write(side) => self.write(side, scene),
            Step::Timeout(side) => self.peers[side].handle_timeout(scene),
            Step::Close(side) => {
                scene.note(side, "leave", 0, 0);
                self.pipes[side].close(scene.now);
                self.peers[side].finish_drained(scene);
            }
            Step::Cut => {
                scene.note(Side::Client, "cut", 0, 0);
                self.cut_at = None;
                for side in Side::BOTH {
                    self.pipes[side].cut();
                }
            }
        }
    }

    fn read(&mut self, side: Side, scene: &mut Scene<'_>) {
        let mut arrived = Vec::new();
        let pipe = &mut self.pipes[side.other()];
        match pipe.read(&mut arrived, usize::MAX, scene.now, &mut scene.random) {
            Read::Nothing => {}
            Read::Some => {
                scene.note(side, "read", 0, arrived.len());
                self.peers[side].receive(&arrived, scene);
            }
            Read::End => {
                let is_orderly = !pipe.is_broken() && !self.peers[side.other()].connection.is_closed();
                self.peers[side].end_input(is_orderly, scene);
                self.pipes[side].close(scene.now);
            }
        }
    }

    /// Writes a part of the pending output.
    fn write(&mut self, side: Side, scene: &mut Scene<'_>) {
        let peer = &mut self.peers[side];
        peer.take_output(scene);
        if peer.output.is_empty() {
            // The ready data has no window.
            return;
        }
        let mut slices = [std::io::IoSlice::new(&[]); SLICES_MAX];
        let count = scene.random.between(1, SLICES_MAX);
        let filled = peer.output.slices(&mut slices[..count]);
        let written = slices[..filled].iter().flat_map(|slice| slice.iter().copied());
        let all = scene.random.one_in(2);
        let max = self.pipes[side].free_space();
        let max = if all { max } else { scene.random.between(1, max) };
        let written: Bytes = written.take(max).collect();
        assert!(!written.is_empty(), "{side:?} has output, but no slice of it");
        scene.note(side, "write", 0, written.len());
        peer.output.advance(written.len());
        self.monitor.observe(side, &written);
        self.pipes[side].write(written, scene.now, &mut scene.random);
    }

    /// Writes all of the connection's output, beyond the link's capacity.
    pub(super) fn write_all(&mut self, side: Side, scene: &mut Scene<'_>) {
        loop {
            let peer = &mut self.peers[side];
            peer.take_output(scene);
            let mut written = Vec::new();
            peer.output.copy_to(&mut written);
            if written.is_empty() {
                return;
            }
            peer.output.advance(written.len());
            self.monitor.observe(side, &written);
            self.pipes[side].write(written.into(), scene.now, &mut scene.random);
        }
    }

    /// Opens one more stream and fills the connection's windows in both directions. In a quiet world they must be
    /// complete: exactly the bytes allowed on the wire can be sent.
    fn probe(&mut self, scene: &mut Scene<'_>) {
        let alive = Side::BOTH.iter().all(|&side| self.peers[side].phase == Phase::Open);
        if !alive || !self.peers[Side::Client].connection.can_open() {
            return;
        }
        self.peers[Side::Server].expect_probe();
        let stream = self.peers[Side::Client].open_probe(scene);
        self.run_until_quiet(scene);
        if scene.ledger.is_over(Side::Client, stream) {
            return;
        }
        self.peers[Side::Server].respond_to_probe(stream, scene);
        for side in Side::BOTH {
            self.fill_window(side, stream, scene);
            self.run_until_quiet(scene);
            if scene.ledger.is_over(side, stream) {
                // The link broke meanwhile.
                return;
            }
        }
        for side in Side::BOTH {
            self.peers[side].end(stream, scene);
        }
        self.run_until_quiet(scene);
    }

    fn fill_window(&mut self, side: Side, stream: u32, scene: &mut Scene<'_>) {
        let window = self.monitor.window(side);
        let receiver = &self.peers[side.other()];
        let config = receiver.config();
        if u64::from(config.stream_window) < window || config.buffer_budget < Config::default().buffer_budget
        {
            // The stream's window would end first, or is reduced while much is buffered.
            return;
        }
        let before = self.monitor.sent(side);
        scene.note(side, "probe", stream, window as usize);
        self.peers[side].send_bytes(stream, window as usize + 1, false, scene);
        self.write_all(side, scene);
        assert_eq!(self.monitor.sent(side) - before, window, "{side:?} sends another amount than its window");
    }
}
