//! One connection through the link: two sockets, and what is under way between them.

use std::io::{self, IoSlice, Read};
use std::net::Shutdown;
use std::time::{Duration, Instant};

use socket2::Socket;

use crate::direction::Direction;
use crate::observe::{Observer, Silence};
use crate::options::Path;
use crate::queue::{Blocks, Moved, Queue};
use crate::shape::{Admission, Propagation, Transmitter};

/// What all connections of a link share.
#[derive(Debug)]
pub(crate) struct Wire {
    pub(crate) path: Path,
    pub(crate) propagation: Propagation,
    pub(crate) transmitters: [Transmitter; 2],
    /// What follows from `path`.
    pub(crate) buffer_bytes: usize,
    pub(crate) blocks: Blocks,
    pub(crate) observer: Observer,
    pub(crate) stalled: bool,
    /// When the last stall ended: what was due before could not leave earlier.
    pub(crate) resumed: Instant,
}

/// A socket, and what the kernel said of it.
#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a thing of its own that the kernel tells")]
pub(crate) struct Side {
    /// None while there is no connection yet.
    pub(crate) socket: Option<Socket>,
    pub(crate) is_unix: bool,
    /// There may be something to read. The kernel tells once; it is so until a read finds nothing.
    pub(crate) readable: bool,
    /// A write may find space.
    pub(crate) writable: bool,
    /// It has ended or failed, as far as its sending goes; what it sent before can still be read.
    pub(crate) hung_up: bool,
    /// It was reset: whoever waits for it need not.
    pub(crate) failed: bool,
    /// When a write that had found no space could go on.
    pub(crate) space_since: Instant,
}

/// How a direction ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// After everything before it, as FIN.
    Finish,
    /// Also if the receiver does not read, as RST.
    Reset,
}

/// One direction.
#[derive(Debug)]
struct Pipe {
    queue: Queue,
    end: Option<(End, Instant)>,
    /// The end has been handed on.
    is_finished: bool,
    /// What comes earlier than this waits for the handshake.
    opens: Instant,
    last_release: Instant,
}

impl Pipe {
    fn opening(opens: Instant) -> Self {
        Self { queue: Queue::new(), end: None, is_finished: false, opens, last_release: opens }
    }
}

/// Two sockets, and what is under way between them.
#[derive(Debug)]
pub(crate) struct Connection {
    /// No two connections of a link have the same; indices of its table are used again.
    pub(crate) id: u64,
    pub(crate) accepted: Instant,
    sides: [Side; 2],
    pipes: [Pipe; 2],
    pub(crate) silence: Silence,
    pub(crate) schedules: [Schedule; 2],
    /// Nothing passes any more.
    is_silent: bool,
    /// The server's side is, or was, connected.
    is_reached: bool,
    /// There was no other end.
    pub(crate) is_refused: bool,
    /// How many bytes may still be forwarded.
    allowance: Option<u64>,
    /// Which of the other end's addresses is tried.
    pub(crate) attempt: usize,
}

/// When a direction is pumped next.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Schedule {
    /// It is in the ready queue.
    pub(crate) is_ready: bool,
    /// It waits for its transmitter.
    pub(crate) waits: bool,
    /// The earliest timer that is set for it.
    pub(crate) alarm: Option<Instant>,
}

/// What is to be done for a direction that was pumped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Next {
    /// There is more to do at once, after the others.
    pub(crate) again: bool,
    /// Something is due then.
    pub(crate) at: Option<Instant>,
    /// The transmitter's queue is full until then.
    pub(crate) transmitter_full_until: Option<Instant>,
    /// This side has no space: the kernel must say when it has.
    pub(crate) wants_space: bool,
    /// There is something for the other direction to do.
    pub(crate) other: bool,
    /// It is over.
    pub(crate) over: Option<Over>,
}

/// Why a connection is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Over {
    Ended,
    Reset,
    /// All bytes that were permitted have been forwarded.
    AllowanceSpent,
}

/// Writes that a direction may make at once, so that others get theirs.
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
    /// `handshake` is the one-way time that opening it takes three of.
    pub(crate) fn accepted(
        id: u64,
        socket: Socket,
        are_unix: [bool; 2],
        now: Instant,
        handshake: Duration,
        allowance: Option<u64>,
    ) -> Self {
        // SYN, SYN-ACK: then the client may send. ACK: then the server knows of it, and may send.
        let pipes = [Pipe::opening(now + 2 * handshake), Pipe::opening(now + 3 * handshake)];
        let mut client = Side::absent(are_unix[0], now);
        (client.socket, client.readable, client.writable) = (Some(socket), true, true);
        Self {
            id,
            accepted: now,
            sides: [client, Side::absent(are_unix[1], now)],
            pipes,
            schedules: [Schedule::default(); 2],
            silence: Silence::new(now),
            is_silent: false,
            is_reached: false,
            is_refused: false,
            allowance,
            attempt: 0,
        }
    }

    /// Gives the server's side its socket, which may be connecting yet.
    pub(crate) fn set_server(&mut self, socket: Socket) {
        self.sides[1].socket = Some(socket);
    }

    /// The server's side is connected.
    pub(crate) fn reached(&mut self, now: Instant) {
        self.is_reached = true;
        let server = &mut self.sides[1];
        (server.readable, server.writable, server.space_since) = (true, true, now);
    }

    /// Nobody has tried to reach the server yet, or only in vain.
    pub(crate) fn awaits_server(&self) -> bool {
        self.sides[1].socket.is_none() && !self.is_silent && !self.is_refused
    }

    /// It was cut, and nobody was told.
    pub(crate) fn is_silent(&self) -> bool {
        self.is_silent
    }

    /// There is a socket for the server's side that is not connected yet.
    pub(crate) fn is_connecting(&self) -> bool {
        self.sides[1].socket.is_some() && !self.is_reached
    }

    pub(crate) fn side(&mut self, index: usize) -> &mut Side {
        &mut self.sides[index]
    }

    /// Nothing passes any more; whether both ends are gone already.
    pub(crate) fn silence(&mut self, wire: &mut Wire, now: Instant) -> bool {
        self.is_silent = true;
        self.drop_bytes(wire, now);
        self.is_abandoned()
    }

    /// After a silent cut: nobody is there any more to be kept waiting.
    pub(crate) fn is_abandoned(&self) -> bool {
        self.is_silent && self.sides.iter().all(|side| side.socket.is_none() || side.hung_up)
    }

    /// Takes leave: what is under way is dropped.
    pub(crate) fn close(mut self, wire: &mut Wire, over: Over, now: Instant) {
        self.drop_bytes(wire, now);
        if over != Over::Ended {
            for side in &self.sides {
                if let Some(socket) = &side.socket {
                    // Closing then sends RST, not FIN. It fails for a socket that is reset already.
                    let _ = socket.set_linger(Some(Duration::ZERO));
                }
            }
        }
        wire.observer.closed(self.accepted, now);
    }

    fn drop_bytes(&mut self, wire: &mut Wire, now: Instant) {
        for direction in Direction::BOTH {
            let dropped = self.pipes[direction as usize].queue.clear(&mut wire.blocks);
            wire.observer.gone(direction, &mut self.silence, dropped, now);
        }
    }

    /// There is no other end: the client hears of it as it would hear of a refused connection, two one-way times after
    /// it asked.
    pub(crate) fn refused(&mut self, wire: &Wire, now: Instant) {
        self.is_refused = true;
        self.sides[1].socket = None;
        let pipe = &mut self.pipes[Direction::Down as usize];
        let answer = pipe.opens.checked_sub(wire.path.delay).unwrap_or(now);
        pipe.end = Some((End::Reset, answer.max(now)));
        self.pipes[Direction::Up as usize].is_finished = true;
    }

    /// Pumps a direction: reads once, and writes what is due.
    pub(crate) fn pump(&mut self, direction: Direction, wire: &mut Wire) -> Next {
        let mut next = Next::default();
        if self.is_silent || wire.stalled {
            return next;
        }
        self.fill(direction, wire, &mut next);
        self.drain(direction, wire, &mut next);
        if next.over.is_none() {
            self.finish(direction, &mut next);
        }
        next
    }

    fn fill(&mut self, direction: Direction, wire: &mut Wire, next: &mut Next) {
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
            // Full. Once something has been written it is pumped again; a reset does not wait for that.
            if source.failed {
                pipe.end = Some((End::Reset, (Instant::now() + wire.path.delay).max(pipe.last_release)));
            }
            return;
        }
        let read = pipe.queue.fill(&mut wire.blocks, max, |slices| match slices {
            [slice] => (&mut &*socket).read(slice),
            slices => (&mut &*socket).read_vectored(slices),
        });
        // After the read: nothing that it brought came later.
        let now = Instant::now();
        match read {
            Ok(filled) if filled.bytes > 0 => {
                let sent = transmitter.send(now.max(pipe.opens), filled.bytes);
                let release = (sent + wire.propagation.draw()).max(pipe.last_release);
                pipe.last_release = release;
                pipe.queue.push(filled.bytes, release);
                let buffered = pipe.queue.len();
                wire.observer.arrived(direction, &mut self.silence, filled.bytes, buffered, now);
                // A short read has emptied the socket; the kernel tells of what comes later. It has told of an end,
                // though.
                source.readable = !filled.is_short || source.hung_up;
                next.again = source.readable;
            }
            Ok(_) => {
                source.readable = false;
                let release = (now.max(pipe.opens) + wire.path.delay).max(pipe.last_release);
                // The error may have been asked for, and be gone with that.
                let end = if source.failed { End::Reset } else { End::Finish };
                pipe.end = Some((end, release));
            }
            Err(error) => match error.kind() {
                io::ErrorKind::WouldBlock => source.readable = false,
                io::ErrorKind::Interrupted => next.again = true,
                _ => {
                    source.readable = false;
                    let release = (now + wire.path.delay).max(pipe.last_release);
                    pipe.end = Some((End::Reset, release));
                }
            },
        }
    }

    fn drain(&mut self, direction: Direction, wire: &mut Wire, next: &mut Next) {
        let (source, sink) = ends(&mut self.sides, direction);
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
                next.over = Some(Over::AllowanceSpent);
                return;
            }
            let written = pipe.queue.write_to(allowed, |slices| send(socket, slices));
            let now = Instant::now();
            match written {
                Ok(Moved { bytes, is_short }) => {
                    let observer = &mut wire.observer;
                    pipe.queue.pop(bytes, &mut wire.blocks, |release| {
                        observer.was_late(now.saturating_duration_since(release.max(earliest)));
                    });
                    observer.left(direction, &mut self.silence, bytes, now);
                    if let Some(allowance) = &mut self.allowance {
                        *allowance -= bytes as u64;
                    }
                    // There is space to read into again.
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
                    self.lost_receiver(direction, wire, now);
                    next.other = true;
                    return;
                }
            }
        }
        next.again = true;
    }

    /// The receiver is gone: its RST travels back to the sender.
    fn lost_receiver(&mut self, direction: Direction, wire: &mut Wire, now: Instant) {
        let pipe = &mut self.pipes[direction as usize];
        let dropped = pipe.queue.clear(&mut wire.blocks);
        pipe.end = None;
        pipe.is_finished = true;
        wire.observer.gone(direction, &mut self.silence, dropped, now);
        let back = &mut self.pipes[direction.other() as usize];
        if !matches!(back.end, Some((End::Reset, _))) {
            back.end = Some((End::Reset, (now + wire.path.delay).max(back.last_release)));
            // Also if it had ended already: the sender must hear that nobody reads.
            back.is_finished = false;
        }
    }

    /// Hands the end on if it is due, and says when something will be.
    fn finish(&mut self, direction: Direction, next: &mut Next) {
        let now = Instant::now();
        let pipe = &mut self.pipes[direction as usize];
        let sink = &self.sides[direction.to()];
        if let (Some((end, at)), false) = (pipe.end, pipe.is_finished) {
            match end {
                // What can be written is written first; who does not read is reset all the same.
                End::Reset if at <= now && (pipe.queue.is_empty() || !sink.writable) => {
                    next.over = Some(Over::Reset);
                    return;
                }
                End::Finish if at <= now && pipe.queue.is_empty() => {
                    if let Some(socket) = &sink.socket {
                        // It fails for a receiver that is gone, of which the other direction hears.
                        let _ = socket.shutdown(Shutdown::Write);
                        pipe.is_finished = true;
                    }
                }
                _ => next.at = (at > now).then_some(at),
            }
        }
        match pipe.queue.next_release() {
            Some(release) if release > now => next.at = Some(next.at.map_or(release, |at| at.min(release))),
            // It fell due since the last write.
            Some(_) => next.again |= sink.writable,
            None => {}
        }
        if self.pipes.iter().all(|pipe| pipe.is_finished) {
            next.over = Some(Over::Ended);
        }
    }
}

/// The side that a direction comes from, and the one that it goes to.
fn ends(sides: &mut [Side; 2], direction: Direction) -> (&mut Side, &mut Side) {
    let [client, server] = sides;
    match direction {
        Direction::Up => (client, server),
        Direction::Down => (server, client),
    }
}

/// Without SIGPIPE, whatever the process does with it.
fn send(socket: &Socket, slices: &[IoSlice<'_>]) -> io::Result<usize> {
    match slices {
        [slice] => socket.send_with_flags(slice, nix::libc::MSG_NOSIGNAL),
        slices => socket.send_vectored_with_flags(slices, nix::libc::MSG_NOSIGNAL),
    }
}
