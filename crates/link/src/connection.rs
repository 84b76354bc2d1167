//! One connection through the link: two sockets, and the bytes in transit between them.

use std::io::{self, IoSlice, Read};
use std::net::Shutdown;
use std::time::{Duration, Instant};

use socket2::Socket;

use crate::direction::Direction;
use crate::observe::{IdleTracker, Observer};
use crate::options::Path;
use crate::queue::{BlockPool, Queue, Transfer};
use crate::shape::{Admission, Propagation, Transmitter};

/// State shared by all connections of a link.
#[derive(Debug)]
pub(crate) struct Wire {
    pub(crate) path: Path,
    pub(crate) propagation: Propagation,
    pub(crate) transmitters: [Transmitter; 2],
    /// Derived from `path`.
    pub(crate) buffer_bytes: usize,
    pub(crate) blocks: BlockPool,
    pub(crate) observer: Observer,
    pub(crate) stalled: bool,
    /// End of the last stall. Bytes due before it could not leave earlier.
    pub(crate) resumed: Instant,
}

/// A socket and its readiness.
#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "independent is a separate readiness flag of the kernel")]
pub(crate) struct Side {
    /// `None` before a connection is opened.
    pub(crate) socket: Option<Socket>,
    pub(crate) is_unix: bool,
    /// A read may find something. Edge-triggered: stays set until a read finds nothing.
    pub(crate) readable: bool,
    /// A write may find space.
    pub(crate) writable: bool,
    /// The peer has stopped sending or failed; bytes sent before can still be read.
    pub(crate) hung_up: bool,
    /// The socket was reset, so waiting for it is pointless.
    pub(crate) failed: bool,
    /// When the socket became writable again.
    pub(crate) space_since: Instant,
}

/// End of a direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PipeEnd {
    /// After all preceding bytes, as FIN.
    Finish,
    /// Even if the receiver does not read, by RST.
    Reset,
}

/// One direction.
#[derive(Debug)]
struct Pipe {
    queue: Queue,
    end: Option<(PipeEnd, Instant)>,
    /// Whether the end has been forwarded.
    is_finished: bool,
    /// End of the handshake; earlier bytes wait for it.
    opens_at: Instant,
    last_release: Instant,
}

impl Pipe {
    fn opening_at(opens_at: Instant) -> Self {
        Self { queue: Queue::new(), end: None, is_finished: false, opens_at, last_release: opens_at }
    }
}

/// Two sockets, and the bytes in transit between them.
#[derive(Debug)]
pub(crate) struct Connection {
    /// Unique within a link, unlike the reused table indices.
    pub(crate) id: u64,
    pub(crate) accepted: Instant,
    sides: [Side; 2],
    pipes: [Pipe; 2],
    pub(crate) idle: IdleTracker,
    pub(crate) schedules: [Schedule; 2],
    /// Cut silently: nothing is forwarded.
    is_silent: bool,
    /// Whether the server side is or was connected.
    is_server_connected: bool,
    /// Whether the server could not be reached.
    pub(crate) is_refused: bool,
    /// Remaining bytes to forward.
    allowance: Option<u64>,
    /// Index of the server address being tried.
    pub(crate) attempt: usize,
}

/// Scheduling state of a direction.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Schedule {
    /// In the ready queue.
    pub(crate) is_ready: bool,
    /// Waits for its transmitter.
    pub(crate) awaits_transmitter: bool,
    /// Its earliest timer.
    pub(crate) alarm: Option<Instant>,
}

/// Follow-up of a pumped direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PumpOutcome {
    /// Pump again, after the other directions.
    pub(crate) again: bool,
    /// Time when something is due.
    pub(crate) at: Option<Instant>,
    /// Time until which the transmitter's queue is full.
    pub(crate) transmitter_full_until: Option<Instant>,
    /// The receiving side has no space; watch for writability.
    pub(crate) wants_space: bool,
    /// Pump the other direction, too.
    pub(crate) pump_other: bool,
    /// The connection is over.
    pub(crate) close_reason: Option<CloseReason>,
}

/// Why a connection is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CloseReason {
    Ended,
    Reset,
    /// All permitted bytes have been forwarded.
    AllowanceSpent,
}

/// Maximum writes per pump, for fairness between directions.
const WRITES_MAX: usize = 4;

impl Side {
    fn absent(is_unix: bool, now: Instant) -> Self {
        Self {
            socket: None,
            is_unix,
            readable: false,
            writable: false,
            hung_up: false,
            failed: false,
            space_since: now,
        }
    }
}

impl Connection {
    /// Creates a connection from an accepted client socket. `handshake` is the one-way delay, of which opening takes
    /// three.
    pub(crate) fn accepted(
        id: u64,
        socket: Socket,
        are_unix: [bool; 2],
        now: Instant,
        handshake: Duration,
        allowance: Option<u64>,
    ) -> Self {
        // After SYN and SYN-ACK the client may send; after the ACK the server knows of the connection, and may send.
        let pipes = [Pipe::opening_at(now + 2 * handshake), Pipe::opening_at(now + 3 * handshake)];
        let mut client = Side::absent(are_unix[0], now);
        (client.socket, client.readable, client.writable) = (Some(socket), true, true);
        Self {
            id,
            accepted: now,
            sides: [client, Side::absent(are_unix[1], now)],
            pipes,
            schedules: [Schedule::default(); 2],
            idle: IdleTracker::new(now),
            is_silent: false,
            is_server_connected: false,
            is_refused: false,
            allowance,
            attempt: 0,
        }
    }

    /// Sets the server side's socket, which may still be connecting.
    pub(crate) fn set_server(&mut self, socket: Socket) {
        self.sides[1].socket = Some(socket);
    }

    /// Marks the server side as connected.
    pub(crate) fn mark_connected(&mut self, now: Instant) {
        self.is_server_connected = true;
        let server = &mut self.sides[1];
        (server.readable, server.writable, server.space_since) = (true, true, now);
    }

    /// Returns whether no attempt to reach the server is in progress or has succeeded.
    pub(crate) fn awaits_server(&self) -> bool {
        self.sides[1].socket.is_none() && !self.is_silent && !self.is_refused
    }

    /// Returns whether the connection was cut silently.
    pub(crate) fn is_silent(&self) -> bool {
        self.is_silent
    }

    /// Returns whether the server side's socket is still connecting.
    pub(crate) fn is_connecting(&self) -> bool {
        self.sides[1].socket.is_some() && !self.is_server_connected
    }

    pub(crate) fn side(&mut self, index: usize) -> &mut Side {
        &mut self.sides[index]
    }

    /// Cuts the connection silently. Returns whether both ends are already gone.
    pub(crate) fn cut_silently(&mut self, wire: &mut Wire, now: Instant) -> bool {
        self.is_silent = true;
        self.drop_bytes(wire, now);
        self.is_abandoned()
    }

    /// Returns whether both ends have gone after a silent cut.
    pub(crate) fn is_abandoned(&self) -> bool {
        self.is_silent && self.sides.iter().all(|side| side.socket.is_none() || side.hung_up)
    }

    /// Closes the connection, and drops bytes in transit.
    pub(crate) fn close(mut self, wire: &mut Wire, reason: CloseReason, now: Instant) {
        self.drop_bytes(wire, now);
        if reason != CloseReason::Ended {
            for side in &self.sides {
                if let Some(socket) = &side.socket {
                    // Makes closing send RST instead of FIN. Fails for a socket that is already reset.
                    let _ = socket.set_linger(Some(Duration::ZERO));
                }
            }
        }
        wire.observer.record_close(self.accepted, now);
    }

    fn drop_bytes(&mut self, wire: &mut Wire, now: Instant) {
        for direction in Direction::BOTH {
            let dropped = self.pipes[direction as usize].queue.clear(&mut wire.blocks);
            wire.observer.record_removal(direction, &mut self.idle, dropped, now);
        }
    }

    /// Marks the server as unreachable. The client sees a refused connection, two one-way delays after it connected.
    pub(crate) fn mark_refused(&mut self, wire: &Wire, now: Instant) {
        self.is_refused = true;
        self.sides[1].socket = None;
        let pipe = &mut self.pipes[Direction::Down as usize];
        let refused_at = pipe.opens_at.checked_sub(wire.path.delay).unwrap_or(now);
        pipe.end = Some((PipeEnd::Reset, refused_at.max(now)));
        self.pipes[Direction::Up as usize].is_finished = true;
    }

    /// Pumps a direction: reads once, and writes what is due.
    pub(crate) fn pump(&mut self, direction: Direction, wire: &mut Wire) -> PumpOutcome {
        let mut next = PumpOutcome::default();
        if self.is_silent || wire.stalled {
            return next;
        }
        self.fill(direction, wire, &mut next);
        self.drain(direction, wire, &mut next);
        if next.close_reason.is_none() {
            self.finish(direction, &mut next);
        }
        next
    }

    fn fill(&mut self, direction: Direction, wire: &mut Wire, next: &mut PumpOutcome) {
        let source = &mut self.sides[direction.from()];
        let pipe = &mut self.pipes[direction as usize];
        let Some(socket) = source.socket.as_ref().filter(|_| source.readable) else { return };
        if pipe.end.is_some() || pipe.is_finished {
            return;
        }
        let transmitter = &mut wire.transmitters[direction as usize];
        let mut max = pipe.queue.free_space(wire.buffer_bytes);
        if transmitter.rate.is_some() {
            match transmitter.admission(Instant::now()) {
                Admission::Now(bytes) => max = max.min(bytes),
                Admission::At(when) => {
                    next.transmitter_full_until = Some(when);
                    return;
                }
            }
        }
        if max == 0 {
            // Full. The next write pumps it again; a reset does not wait for that.
            if source.failed {
                pipe.end = Some((PipeEnd::Reset, (Instant::now() + wire.path.delay).max(pipe.last_release)));
            }
            return;
        }
        let read = pipe.queue.fill(&mut wire.blocks, max, |slices| match slices {
            [slice] => (&mut &*socket).read(slice),
            slices => (&mut &*socket).read_vectored(slices),
        });
        // Taken after the read: none of its bytes arrived later.
        let now = Instant::now();
        match read {
            Ok(filled) if filled.bytes > 0 => {
                let sent = transmitter.send(now.max(pipe.opens_at), filled.bytes);
                let release = (sent + wire.propagation.draw()).max(pipe.last_release);
                pipe.last_release = release;
                pipe.queue.push(filled.bytes, release);
                let buffered = pipe.queue.len();
                wire.observer.record_arrival(direction, &mut self.idle, filled.bytes, buffered, now);
                // A short read has emptied the socket, and later bytes raise a new event. An end has already been
                // signalled.
                source.readable = !filled.is_short || source.hung_up;
                next.again = source.readable;
            }
            Ok(_) => {
                source.readable = false;
                let release = (now.max(pipe.opens_at) + wire.path.delay).max(pipe.last_release);
                // The socket's error may have been read and cleared before.
                let end = if source.failed { PipeEnd::Reset } else { PipeEnd::Finish };
                pipe.end = Some((end, release));
            }
            Err(error) => match error.kind() {
                io::ErrorKind::WouldBlock => source.readable = false,
                io::ErrorKind::Interrupted => next.again = true,
                _ => {
                    source.readable = false;
                    let release = (now + wire.path.delay).max(pipe.last_release);
                    pipe.end = Some((PipeEnd::Reset, release));
                }
            },
        }
    }

    fn drain(&mut self, direction: Direction, wire: &mut Wire, next: &mut PumpOutcome) {
        let (source, sink) = source_and_sink(&mut self.sides, direction);
        let pipe = &mut self.pipes[direction as usize];
        let Some(socket) = &sink.socket else { return };
        let earliest = sink.space_since.max(wire.resumed);
        for _ in 0..WRITES_MAX {
            if !sink.writable || pipe.queue.is_empty() {
                return;
            }
            let due = pipe.queue.due(Instant::now());
            let allowed =
                self.allowance.map_or(due, |allowance| due.min(usize::try_from(allowance).unwrap_or(due)));
            if due == 0 {
                return;
            }
            if allowed == 0 {
                next.close_reason = Some(CloseReason::AllowanceSpent);
                return;
            }
            let written = pipe.queue.write_to(allowed, |slices| send(socket, slices));
            let now = Instant::now();
            match written {
                Ok(Transfer { bytes, is_short }) => {
                    let observer = &mut wire.observer;
                    pipe.queue.pop(bytes, &mut wire.blocks, |release| {
                        observer.record_lateness(now.saturating_duration_since(release.max(earliest)));
                    });
                    observer.record_write(direction, &mut self.idle, bytes, now);
                    if let Some(allowance) = &mut self.allowance {
                        *allowance -= bytes as u64;
                    }
                    // There is space for reading again.
                    next.again |= source.readable;
                    if is_short {
                        (sink.writable, next.wants_space) = (false, true);
                        return;
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    (sink.writable, next.wants_space) = (false, true);
                    return;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => {
                    self.handle_lost_receiver(direction, wire, now);
                    next.pump_other = true;
                    return;
                }
            }
        }
        next.again = true;
    }

    /// Handles a receiver that is gone: its RST travels back to the sender.
    fn handle_lost_receiver(&mut self, direction: Direction, wire: &mut Wire, now: Instant) {
        let pipe = &mut self.pipes[direction as usize];
        let dropped = pipe.queue.clear(&mut wire.blocks);
        pipe.end = None;
        pipe.is_finished = true;
        wire.observer.record_removal(direction, &mut self.idle, dropped, now);
        let opposite = &mut self.pipes[direction.other() as usize];
        if !matches!(opposite.end, Some((PipeEnd::Reset, _))) {
            opposite.end = Some((PipeEnd::Reset, (now + wire.path.delay).max(opposite.last_release)));
            // Even if it has already ended: the sender must learn that its bytes are not read.
            opposite.is_finished = false;
        }
    }

    /// Forwards the end if it is due, and schedules the next deadline.
    fn finish(&mut self, direction: Direction, next: &mut PumpOutcome) {
        let now = Instant::now();
        let pipe = &mut self.pipes[direction as usize];
        let sink = &self.sides[direction.to()];
        if let (Some((end, at)), false) = (pipe.end, pipe.is_finished) {
            match end {
                // Writes what the socket accepts first; a receiver that does not read is reset anyway.
                PipeEnd::Reset if at <= now && (pipe.queue.is_empty() || !sink.writable) => {
                    next.close_reason = Some(CloseReason::Reset);
                    return;
                }
                PipeEnd::Finish if at <= now && pipe.queue.is_empty() => {
                    if let Some(socket) = &sink.socket {
                        // Fails for a receiver that is gone, which the other direction notices.
                        let _ = socket.shutdown(Shutdown::Write);
                        pipe.is_finished = true;
                    }
                }
                _ => next.at = (at > now).then_some(at),
            }
        }
        match pipe.queue.next_release() {
            Some(release) if release > now => next.at = Some(next.at.map_or(release, |at| at.min(release))),
            // Became due since the last write.
            Some(_) => next.again |= sink.writable,
            None => {}
        }
        if self.pipes.iter().all(|pipe| pipe.is_finished) {
            next.close_reason = Some(CloseReason::Ended);
        }
    }
}

/// Returns a direction's source and sink.
fn source_and_sink(sides: &mut [Side; 2], direction: Direction) -> (&mut Side, &mut Side) {
    let [client, server] = sides;
    match direction {
        Direction::Up => (client, server),
        Direction::Down => (server, client),
    }
}

/// Sends without SIGPIPE, whatever the process does with that signal.
fn send(socket: &Socket, slices: &[IoSlice<'_>]) -> io::Result<usize> {
    match slices {
        [slice] => socket.send_with_flags(slice, nix::libc::MSG_NOSIGNAL),
        slices => socket.send_vectored_with_flags(slices, nix::libc::MSG_NOSIGNAL),
    }
}
