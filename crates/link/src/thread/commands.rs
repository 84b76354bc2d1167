//! Requests of the handle, and planned events.

use std::cmp::Reverse;
use std::io;
use std::sync::mpsc::TryRecvError;
use std::time::{Duration, Instant};

use super::{ConnectionKey, LinkThread, Request, Timer, find};
use crate::command::Command;
use crate::connection::CloseReason;
use crate::direction::Direction;
use crate::options::{Cut, Loss};
use crate::shape::Transmitter;
use crate::stats::Stats;

impl LinkThread {
    /// Answers pending requests. Returns false on a quit request.
    pub(super) fn handle_requests(&mut self) -> bool {
        // Fails if there was no wake-up, as at the start.
        let _ = self.wake.read();
        loop {
            // The requester may have stopped waiting.
            match self.requests.try_recv() {
                Ok(Request::Command(command, response)) => drop(response.send(self.execute(command))),
                Ok(Request::Stats(response)) => drop(response.send(Box::new(self.stats()))),
                Ok(Request::Quit) | Err(TryRecvError::Disconnected) => return false,
                Err(TryRecvError::Empty) => return true,
            }
        }
    }

    /// Executes a command, and returns the number of connections affected.
    fn execute(&mut self, command: Command) -> io::Result<usize> {
        let now = Instant::now();
        match command {
            Command::Stall(lasts) => self.stall(now, lasts),
            Command::Resume => self.resume(now),
            Command::Cut(how) => return Ok(self.cut_all(how)),
            Command::Refuse => self.listening_socket.close(),
            Command::Accept => {
                if self.listening_socket.reopen()? {
                    self.watch_listener()?;
                }
            }
            Command::Delay(delay) => {
                self.wire.path.delay = delay;
                self.wire.propagation.delay = delay;
            }
            Command::Jitter(jitter) => {
                self.wire.path.jitter = jitter;
                self.wire.propagation.jitter = jitter;
            }
            Command::Rate(rate) => {
                self.wire.path.rate = rate;
                self.wire.transmitters = [Transmitter::new(rate), Transmitter::new(rate)];
                for direction in Direction::BOTH {
                    self.wake_waiting(direction);
                }
            }
            Command::Reset => self.wire.observer.reset(now),
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

    pub(super) fn start_planned_stall(&mut self, due: Instant) {
        let Some(plan) = self.stall else { return };
        // Relative to the planned time, so that planned stalls do not drift.
        self.stall(due, plan.lasts);
        if let Some(every) = plan.every {
            self.timers.push(Reverse((due + every, Timer::StallStarts)));
        }
    }

    pub(super) fn resume(&mut self, now: Instant) {
        if !std::mem::take(&mut self.wire.stalled) {
            return;
        }
        self.stall_id += 1;
        self.wire.resumed = now;
        for key in std::mem::take(&mut self.stalled_connects) {
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
            Cut::Reset => self.remove(key, CloseReason::Reset),
            Cut::Silent => {
                if connection.cut_silently(&mut self.wire, Instant::now()) {
                    self.remove(key, CloseReason::Ended);
                }
            }
        }
    }

    /// Cuts a connection in the way set for connection loss.
    pub(super) fn cut_by_loss_option(&mut self, key: ConnectionKey) {
        let Loss { how, .. } = self.loss;
        self.cut(key, how);
    }

    /// Closes a connection that ended without a cut.
    pub(super) fn close(&mut self, key: ConnectionKey, reason: CloseReason) {
        let Some(connection) = find(&mut self.connections, key) else { return };
        let counts = &mut self.wire.observer.counts;
        match reason {
            // Already counted as failed or cut.
            _ if connection.is_refused || connection.is_silent() => {}
            CloseReason::Ended => counts.ended += 1,
            CloseReason::Reset | CloseReason::AllowanceSpent => counts.reset += 1,
        }
        self.remove(key, reason);
    }

    fn remove(&mut self, key: ConnectionKey, reason: CloseReason) {
        self.connections.remove(key.index).close(&mut self.wire, reason, Instant::now());
    }

    fn stats(&self) -> Stats {
        let now = Instant::now();
        let (wire, path) = (&self.wire, &self.wire.path);
        let open = self.connections.iter().map(|(_, connection)| (connection.accepted, &connection.idle));
        Stats {
            schema: "thalweg.link/1",
            listen: self.listening_socket.address.to_string(),
            to: self.to.to_string(),
            delay_ns: path.delay.as_nanos() as u64,
            jitter: path.jitter.to_string(),
            rate_bytes_per_s: path.rate.map(|rate| rate.bytes_per_second().get()),
            buffer_bytes: wire.buffer_bytes as u64,
            window_ns: wire.observer.window(now).as_nanos() as u64,
            stalled: wire.stalled,
            refusing: self.listening_socket.listener().is_none(),
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
