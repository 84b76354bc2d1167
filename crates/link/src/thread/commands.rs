//! Requests of the handle, and planned events.

use std::cmp::Reverse;
use std::io;
use std::sync::mpsc::TryRecvError;
use std::time::{Duration, Instant};

use super::{ConnectionKey, LinkThread, Request, Timer, find};
use crate::connection::Over;
use crate::control::Control;
use crate::direction::Direction;
use crate::options::{Cut, Loss};
use crate::shape::Transmitter;
use crate::stats::Stats;

impl LinkThread {
    /// Answers pending requests. Returns false on a quit request.
    pub(super) fn answer(&mut self) -> bool {
        // Fails if there was no wake-up, as at the start.
        let _ = self.wake.read();
        loop {
            // The requester may have stopped waiting.
            match self.requests.try_recv() {
                Ok(Request::Control(control, answer)) => drop(answer.send(self.control(control))),
                Ok(Request::Stats(answer)) => drop(answer.send(Box::new(self.stats()))),
                Ok(Request::Quit) | Err(TryRecvError::Disconnected) => return false,
                Err(TryRecvError::Empty) => return true,
            }
        }
    }

    /// Executes a command, and returns the number of connections affected.
    fn control(&mut self, control: Control) -> io::Result<usize> {
        let now = Instant::now();
        match control {
            Control::Stall(lasts) => self.stall(now, lasts),
            Control::Resume => self.resume(now),
            Control::Cut(how) => return Ok(self.cut_all(how)),
            Control::Refuse => self.door.close(),
            Control::Accept => {
                if self.door.reopen()? {
                    self.watch_door()?;
                }
            }
            Control::Delay(delay) => {
                self.wire.path.delay = delay;
                self.wire.propagation.delay = delay;
            }
            Control::Jitter(jitter) => {
                self.wire.path.jitter = jitter;
                self.wire.propagation.jitter = jitter;
            }
            Control::Rate(rate) => {
                self.wire.path.rate = rate;
                self.wire.transmitters = [Transmitter::new(rate), Transmitter::new(rate)];
                for direction in Direction::BOTH {
                    self.call_waiting(direction);
                }
            }
            Control::Reset => self.wire.observer.reset(now),
        }
        self.wire.buffer_bytes = self.wire.path.buffer_bytes();
        Ok(self.connections.len())
    }

    fn stall(&mut self, now: Instant, lasts: Option<Duration>) {
        self.wire.stalled = true;
        self.stall_id += 1;
        if let Some(lasts) = lasts {
            self.timers.push(Reverse((now + lasts, Timer::StallEnds(self.stall_id))));
        }
    }

    pub(super) fn stall_by_plan(&mut self, due: Instant) {
        let Some(plan) = self.stall else { return };
        // Relative to the planned time, so that planned stalls do not drift.
        self.stall(due, plan.lasts);
        if let Some(every) = plan.every {
            self.timers.push(Reverse((due + every, Timer::StallBegins)));
        }
    }

    pub(super) fn resume(&mut self, now: Instant) {
        if !std::mem::take(&mut self.wire.stalled) {
            return;
        }
        self.stall_id += 1;
        self.wire.resumed = now;
        for key in std::mem::take(&mut self.held) {
            self.connect(key);
        }
        for key in self.keys() {
            for direction in Direction::BOTH {
                self.enqueue(key, direction);
            }
        }
    }

    fn keys(&self) -> Vec<ConnectionKey> {
        self.connections
            .iter()
            .map(|(index, connection)| ConnectionKey { index, id: connection.id })
            .collect()
    }

    fn cut_all(&mut self, how: Cut) -> usize {
        let open = self
            .keys()
            .into_iter()
            .filter(|key| self.connections.get(key.index).is_some_and(|connection| !connection.is_silent()));
        let open: Vec<ConnectionKey> = open.collect();
        for key in &open {
            self.cut(*key, how);
        }
        open.len()
    }

    /// Cuts a connection if it still exists.
    pub(super) fn cut(&mut self, key: ConnectionKey, how: Cut) {
        let Some(connection) = find(&mut self.connections, key) else { return };
        if connection.is_silent() {
            return;
        }
        self.wire.observer.counts.cut += 1;
        match how {
            Cut::Reset => self.remove(key, Over::Reset),
            Cut::Silent => {
                if connection.silence(&mut self.wire, Instant::now()) {
                    self.remove(key, Over::Ended);
                }
            }
        }
    }

    /// Cuts a connection in the way set for connection loss.
    pub(super) fn lose(&mut self, key: ConnectionKey) {
        let Loss { how, .. } = self.loss;
        self.cut(key, how);
    }

    /// Closes a connection that ended without a cut.
    pub(super) fn close(&mut self, key: ConnectionKey, over: Over) {
        let Some(connection) = find(&mut self.connections, key) else { return };
        let counts = &mut self.wire.observer.counts;
        match over {
            // Already counted as failed or cut.
            _ if connection.is_refused || connection.is_silent() => {}
            Over::Ended => counts.ended += 1,
            Over::Reset | Over::AllowanceSpent => counts.reset += 1,
        }
        self.remove(key, over);
    }

    fn remove(&mut self, key: ConnectionKey, over: Over) {
        self.connections.remove(key.index).close(&mut self.wire, over, Instant::now());
    }

    fn stats(&self) -> Stats {
        let now = Instant::now();
        let (wire, path) = (&self.wire, &self.wire.path);
        let open = self.connections.iter().map(|(_, connection)| (connection.accepted, &connection.silence));
        Stats {
            schema: "thalweg.link/1",
            listen: self.door.address.to_string(),
            to: self.to.to_string(),
            delay_ns: path.delay.as_nanos() as u64,
            jitter: path.jitter.to_string(),
            rate_bytes_per_s: path.rate.map(|rate| rate.bytes_per_second().get()),
            buffer_bytes: wire.buffer_bytes as u64,
            window_ns: wire.observer.window(now).as_nanos() as u64,
            stalled: wire.stalled,
            refusing: self.door.listener().is_none(),
            connections: wire.observer.counts.clone(),
            up: wire.observer.direction(Direction::Up, now),
            down: wire.observer.direction(Direction::Down, now),
            lateness_ns: wire.observer.lateness(),
            wire: wire.observer.wire(now),
            per_connection: wire.observer.connections(open, now),
            thread: wire.observer.thread(now),
            last_error: self.last_error.clone(),
        }
    }
}
