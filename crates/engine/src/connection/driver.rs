//! The task that moves a connection's bytes: drain what has arrived, let what became ready run, write once.

mod ending;
mod output_buffer;
mod read;
mod read_buffer;

use std::future::Future;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use thalweg_http2::{ConnectionError, Event, ExpectedData, Output};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::{Instant, Sleep};

use super::busy_poll::BusyPoll;
use super::callers_first::CallersFirst;
use super::give_way::give_way;
use super::memory::Room;
use super::read_chunks::{self, ReadChunks};
use super::shared::Connection;
use super::state::{DriverState, OPENED_UNSENT_MAX, State};
use super::unlocked::Deferred;
use super::work::Work;
use crate::buffers;
use crate::memory_budget::Turn;
use crate::status::Status;

/// What tells a client's connection from a server's: who is told of an event, and what runs because of it.
pub(crate) trait Endpoint: Send + Unpin + 'static {
    /// Whether somebody reads what its connection did: a channel takes samples of its lanes, a server of nothing.
    const IS_SAMPLED: bool;
    /// Whether the other end is a server.
    const IS_CLIENT: bool;

    /// Takes note of one event, under the connection's lock. `input_start` is where the input that it was found in
    /// starts in the buffer: the `start` of a DATA event counts from there.
    fn on_event(&mut self, state: &mut State, event: &Event<'_>, input_start: usize);

    /// Runs what the events of one read made ready, without the lock. `buffer` is still what was read; `has_more`:
    /// another part of it is taken in next. `polled_at`: when the driver's poll began.
    fn run_ready(&mut self, connection: &Arc<Connection>, buffer: &[u8], has_more: bool, polled_at: Instant);

    /// Whether something that is ready was not run yet: it is when output has left.
    fn is_postponing(&self) -> bool {
        false
    }

    /// Gives spare memory back: the connection is idle.
    fn shrink(&mut self) {}
}

/// How many reads one poll of the driver does before it lets other tasks run.
const ROUNDS_MAX: usize = 16;
/// How much it reads, in bytes, until those that it has woken have their turn.
const READ_LEN_MAX: usize = 192 * 1024;
/// After so many reads it looks at the clock, which most polls never come to.
const ROUNDS_UNTIMED: usize = 2;
/// How long it goes on then: other connections of this thread wait meanwhile.
const POLL_TIME_MAX: Duration = Duration::from_millis(1);
/// Parts of one vectored write; Linux takes at most 1024 and gains little beyond some dozens.
const PARTS_MAX: usize = 64;
/// How long a connection that was closed by us waits for the peer to read its GOAWAY and close, too. Closing at once
/// with unread bytes would make the kernel send RST, which can overtake the GOAWAY.
const LINGER: Duration = Duration::from_secs(1);
/// How long the last answers of a connection that has been drained wait for a peer that does not read on. A server's
/// shutdown grace cuts this short.
const FLUSH_STALL_MAX: Duration = Duration::from_secs(30);

/// Drives one connection until it is over. As a future it never fails: why the connection ended is told to the calls
/// on it, as their status.
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub(crate) struct Driver<IO, E> {
    io: IO,
    endpoint: E,
    connection: Arc<Connection>,
    /// The beginning of a frame whose rest has not arrived, or what has not been taken in of a batch that is cut.
    leftover: Vec<u8>,
    chunks: ReadChunks,
    /// This thread drove no other connection since this one's last poll.
    is_alone: bool,
    /// What the next bytes are, if they are the rest of a DATA frame.
    expected: Option<ExpectedData>,
    /// The last read went straight to a large message: the next frame's head tells where most of what comes belongs.
    is_gathering: bool,
    /// The other end's SETTINGS have come.
    has_settings: bool,
    /// Bytes on their way into the socket.
    output: Output,
    /// There may be output to take: else the lock is not taken to look.
    may_have_output: bool,
    /// Callers of several threads may wake it: see [`CallersFirst`].
    callers_first: CallersFirst,
    /// What was seen under the lock when output was last looked for.
    seen: Seen,
    /// Empty between two reads: what the last one deferred.
    deferred: Deferred,
    has_woken: bool,
    /// How much this poll has read since it began, in bytes.
    read_len: usize,
    /// How much was written that the connection does not know of, in bytes.
    written_len: usize,
    /// Calls that were postponed may run.
    has_room: bool,
    /// Calls waited for memory when this poll started.
    has_waiting: bool,
    turn: Turn,
    timer: Option<Pin<Box<Sleep>>>,
    busy_poll: BusyPoll,
    phase: Phase,
    /// When a connection that is no longer open last came a step nearer to its end.
    stepped_at: Instant,
    work: Work,
    /// When this poll began: all that happens in it happens then, for the protocol.
    polled_at: Instant,
}

/// What a driver acts on besides output, as it was when it last had the lock: it does not sleep while that has changed.
#[derive(Debug, Default, PartialEq)]
struct Seen {
    is_drained: bool,
    timeout: Option<std::time::Instant>,
}

impl Seen {
    #[inline]
    fn of(state: &State) -> Self {
        Self { is_drained: state.http2.is_drained(), timeout: state.http2.timeout() }
    }
}

#[derive(Debug, PartialEq)]
enum Phase {
    Open,
    /// Everything has been said: flush, close our direction, and wait for the peer's end of file.
    Closing,
    /// Our direction is closed; what still comes is dropped.
    Lingering,
}

enum Progress {
    /// Went on; try again.
    Made,
    /// Nothing to do until woken.
    None,
    /// The connection is over.
    Over,
}

impl<IO, E> Driver<IO, E>
where
    IO: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    E: Endpoint,
{
    /// In a box, since a task holds what it awaits once for each future on the way there. Before it sleeps it goes on
    /// trying to read for `busy_poll`; without it, where that pays.
    pub(crate) fn new(
        io: IO,
        endpoint: E,
        connection: Arc<Connection>,
        busy_poll: Option<Duration>,
    ) -> Box<Self> {
        let now = Instant::now();
        Box::new(Self {
            io,
            endpoint,
            connection,
            leftover: Vec::new(),
            chunks: ReadChunks::default(),
            is_alone: false,
            expected: None,
            is_gathering: false,
            output: Output::default(),
            may_have_output: false,
            callers_first: CallersFirst::default(),
            seen: Seen::default(),
            has_settings: false,
            deferred: Deferred::default(),
            has_woken: false,
            read_len: 0,
            written_len: 0,
            has_room: false,
            has_waiting: false,
            turn: Turn::default(),
            timer: None,
            busy_poll: BusyPoll::new(busy_poll),
            phase: Phase::Open,
            stepped_at: now,
            work: Work::default(),
            polled_at: now,
        })
    }

    /// As if `bytes` were the beginning of a frame whose rest has not arrived.
    pub(crate) fn with_first(mut self: Box<Self>, bytes: Vec<u8>) -> Box<Self> {
        self.leftover = bytes;
        self
    }

    /// Writes until nothing is left or the socket is full.
    fn write(&mut self, cx: &mut Context<'_>) -> io::Result<Progress> {
        let mut progress = Progress::None;
        loop {
            if self.output.is_empty() {
                if self.may_have_output || self.phase != Phase::Open {
                    self.take_output();
                }
                if self.output.is_empty() {
                    self.output.drop_discarded();
                    return Ok(progress);
                }
            }
            match self.poll_write(cx) {
                Poll::Ready(Ok(0)) => return Err(io::ErrorKind::WriteZero.into()),
                Poll::Ready(Ok(written)) => {
                    self.output.advance(written);
                    self.written_len += written;
                    self.work.has_moved = true;
                    self.busy_poll.note_wrote(written);
                    progress = Progress::Made;
                }
                Poll::Ready(Err(error)) if error.kind() == io::ErrorKind::Interrupted => {}
                Poll::Ready(Err(error)) => return Err(error),
                Poll::Pending => return Ok(progress),
            }
        }
    }

    #[inline]
    fn take_output(&mut self) {
        let mut state = self.connection.lock();
        self.may_have_output = take_output(&mut state, &mut self.output, &mut self.endpoint, self.polled_at);
    }

    #[inline]
    fn poll_write(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        let io = Pin::new(&mut self.io);
        if let Some(bytes) = self.output.as_contiguous() {
            return io.poll_write_vectored(cx, &[IoSlice::new(bytes)]);
        }
        let mut parts = [IoSlice::new(&[]); PARTS_MAX];
        let count = self.output.slices(&mut parts);
        io.poll_write_vectored(cx, &parts[..count])
    }

    fn fail(&mut self, error: &ConnectionError, arrived: &[u8]) {
        let mut state = self.connection.lock();
        let identified = ending::non_http2_peer(&state, arrived, E::IS_CLIENT);
        let status = match identified {
            Some(what) => Status::unavailable(format!("{}: {what}", self.connection.peer)),
            None => Status::unavailable(format!("connection to {} lost: {error}", self.connection.peer)),
        };
        state.end_all(&status);
        drop(state);
        self.may_have_output = true;
        if identified.is_some() {
            tracing::debug!("{}", status.message());
        }
        self.enter(Phase::Closing);
    }

    fn enter(&mut self, phase: Phase) {
        if phase == Phase::Closing {
            // The peer may never read what is before its end.
            self.connection.lock().http2.take_discarded(&mut self.output);
            self.output.detach();
        }
        self.phase = phase;
        self.stepped_at = Instant::now();
        self.timer = None;
    }

    /// The protocol's own timeouts: SETTINGS not acknowledged, draining that takes too long.
    fn poll_timer(&mut self, cx: &mut Context<'_>) -> Progress {
        if self.phase != Phase::Open {
            return Progress::None;
        }
        let Some(at) = self.seen.timeout.map(Instant::from_std) else {
            self.timer = None;
            return Progress::None;
        };
        if self.poll_sleep_until(at, cx).is_pending() {
            return Progress::None;
        }
        let outcome = self.connection.lock().http2.handle_timeout(Instant::now().into_std());
        self.may_have_output = true;
        if let Err(error) = outcome {
            self.fail(&error, &[]);
        }
        Progress::Made
    }

    /// Bounds how long a connection that is no longer open waits for its peer, whatever that keeps sending.
    fn poll_linger(&mut self, cx: &mut Context<'_>) -> Progress {
        let is_over = self.phase == Phase::Lingering || self.connection.lock().http2.is_closed();
        let at = self.stepped_at + if is_over { LINGER } else { FLUSH_STALL_MAX };
        match self.poll_sleep_until(at, cx) {
            Poll::Ready(()) => Progress::Over,
            Poll::Pending => Progress::None,
        }
    }

    fn poll_sleep_until(&mut self, at: Instant, cx: &mut Context<'_>) -> Poll<()> {
        let timer = self.timer.get_or_insert_with(|| Box::pin(tokio::time::sleep_until(at)));
        if timer.deadline() != at {
            timer.as_mut().reset(at);
        }
        timer.as_mut().poll(cx)
    }

    /// One round: write, read, and see whether the connection is over.
    fn round(&mut self, cx: &mut Context<'_>) -> io::Result<Progress> {
        // The client's first bytes are mostly there when a server first looks: what answers them leaves with SETTINGS.
        if !E::IS_CLIENT
            && !self.has_settings
            && self.phase == Phase::Open
            && matches!(self.read(cx)?, Progress::Made)
        {
            if !self.output.is_empty() {
                // SETTINGS, which have waited for the socket.
                self.take_output();
            }
            return Ok(Progress::Made);
        }
        let wrote = match self.write(cx) {
            Ok(wrote) => wrote,
            Err(error) => {
                // A peer that says its last and closes refuses what we write, but what it said is there to be read.
                for _ in 0..ROUNDS_MAX {
                    if matches!(self.read(cx)?, Progress::None) {
                        break;
                    }
                }
                return Err(error);
            }
        };
        if self.endpoint.is_postponing() && (matches!(wrote, Progress::Made) || self.has_room) {
            self.has_room = false;
            self.endpoint.run_ready(&self.connection, &[], false, self.polled_at);
            self.may_have_output = true;
        }
        if self.phase == Phase::Open {
            if self.seen.is_drained {
                // Nothing more comes. Where calls are left, the connection was closed over their heads.
                let peer = &self.connection.peer;
                let status = Status::unavailable(format!("connection to {peer} was closed"));
                self.connection.lock().end_all(&status);
                self.enter(Phase::Closing);
                return Ok(Progress::Made);
            }
            let read = self.read(cx)?;
            if matches!(read, Progress::Made) || (self.may_have_output && self.output.is_empty()) {
                return Ok(Progress::Made);
            }
            return Ok(self.poll_timer(cx));
        }
        if matches!(wrote, Progress::Made) {
            self.stepped_at = Instant::now();
        }
        if matches!(self.poll_linger(cx), Progress::Over) {
            return Ok(Progress::Over);
        }
        if self.phase == Phase::Closing
            && self.output.is_empty()
            && Pin::new(&mut self.io).poll_shutdown(cx)?.is_ready()
        {
            self.enter(Phase::Lingering);
            return Ok(Progress::Made);
        }
        let read = self.read(cx)?;
        let is_made = matches!(wrote, Progress::Made) || matches!(read, Progress::Made);
        Ok(if is_made { Progress::Made } else { Progress::None })
    }

    /// Goes to sleep, unless a caller has left something to write since output was last taken, or there is something
    /// else to see.
    fn sleep(&mut self, cx: &Context<'_>) -> bool {
        // A client's is taken by whoever makes the next call; a server's is mostly still there.
        let mut waker = E::IS_CLIENT.then(|| cx.waker().clone());
        let mut state = self.connection.lock();
        if waker.is_none() && !state.is_woken_by(cx.waker()) {
            drop(state);
            waker = Some(cx.waker().clone());
            state = self.connection.lock();
        }
        // With output of our own still blocked, more of it can't leave either: the socket's waker will come. But the
        // connection may have been drained or closed meanwhile, which sets a time to all waiting.
        let mut has_news = if self.output.is_empty() {
            state.http2.wants_write()
        } else {
            matches!(state.driver, DriverState::Notified)
        };
        let seen = Seen::of(&state);
        if seen != self.seen {
            self.seen = seen;
            has_news = true;
        }
        let mut full = None;
        if !E::IS_CLIENT {
            state.note_written(std::mem::take(&mut self.written_len), self.output.len());
            if self.output.is_empty() {
                state.http2.note_written();
            }
            state.settle_memory();
        }
        if !E::IS_CLIENT && (self.endpoint.is_postponing() || state.memory.has_waiting()) {
            match state.room() {
                Room::Some => {
                    self.has_room = self.endpoint.is_postponing();
                    has_news |= self.has_room;
                }
                Room::OfConnection => {}
                Room::OfServer(budget) => full = Some(budget),
            }
        }
        if has_news {
            state.driver = DriverState::Running;
            self.may_have_output = true;
            return false;
        }
        let before = state.fall_asleep(waker);
        self.chunks.note_sleep();
        if E::IS_SAMPLED && state.http2.is_window_blocked() {
            self.work.blocked_since = Some(Instant::now());
            self.work.is_due = true;
        }
        let shrinks = state.shrunk;
        drop(state);
        drop(before);
        if full.is_some_and(|budget| !budget.wait(&mut self.turn, cx.waker())) {
            cx.waker().wake_by_ref();
        }
        if !E::IS_CLIENT {
            output_buffer::take_back(&mut self.output);
        }
        if shrinks {
            self.output.shrink();
            self.leftover.shrink_to_fit();
            self.deferred.shrink();
            self.endpoint.shrink();
            buffers::shrink();
        }
        true
    }

    fn poll_over(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.polled_at = Instant::now();
        if !self.busy_poll.is_looking() {
            self.is_alone = read_chunks::is_alone(self.identity());
        }
        let mut state = self.connection.lock();
        if E::IS_CLIENT
            && matches!(state.driver, DriverState::Notified)
            && self.connection.in_flight() > 1
            && self.callers_first.go()
        {
            drop(state);
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        self.callers_first.have_gone();
        // Woken by the socket rather than by a caller, it need not be woken by one as well.
        state.driver = DriverState::Running;
        state.polled_at = self.polled_at;
        if !E::IS_CLIENT {
            state.note_written(std::mem::take(&mut self.written_len), self.output.len());
            state.note_growth(std::mem::take(&mut self.read_len));
            self.has_waiting = state.memory.has_waiting();
        }
        let now = self.polled_at.into_std();
        // Here too, for a peer that never lets a round pass without anything to do.
        let overdue = if state.http2.timeout().is_some_and(|at| at <= now) {
            state.http2.handle_timeout(now)
        } else {
            Ok(())
        };
        if E::IS_SAMPLED {
            if self.work.is_due {
                self.work.tell(&mut state.load, self.polled_at);
            }
            state.tell_watcher(self.polled_at);
        }
        self.seen = Seen::of(&state);
        if self.output.is_empty() && (E::IS_CLIENT || self.has_settings) {
            self.may_have_output =
                take_output(&mut state, &mut self.output, &mut self.endpoint, self.polled_at);
        } else {
            self.may_have_output = true;
        }
        drop(state);
        if let Err(error) = overdue {
            self.fail(&error, &[]);
        }
        let mut rounds = 0;
        self.busy_poll.begin_poll();
        let outcome = self.poll_rounds(cx, &mut rounds);
        self.busy_poll.end_poll();
        if E::IS_SAMPLED {
            self.work.note_poll(self.polled_at, rounds);
        }
        outcome
    }

    /// Nothing moved: whether to look again before it sleeps.
    #[inline]
    fn goes_on(&mut self) -> bool {
        if self.has_waiting || self.endpoint.is_postponing() {
            // They are admitted before the driver sleeps.
            self.busy_poll.stop();
            return false;
        }
        let identity = self.identity();
        let Self { connection, output, is_alone, expected, .. } = self;
        self.busy_poll.goes_on(identity, expected.is_some(), *is_alone, || {
            output.is_empty() && (!E::IS_CLIENT || connection.in_flight() > 0)
        })
    }

    /// The number of no other connection while this one lives.
    #[inline]
    fn identity(&self) -> usize {
        Arc::as_ptr(&self.connection).addr()
    }

    fn poll_rounds(&mut self, cx: &mut Context<'_>, rounds: &mut usize) -> Poll<io::Result<()>> {
        self.read_len = 0;
        let mut has_woken = false;
        while *rounds < ROUNDS_MAX {
            if *rounds > ROUNDS_UNTIMED && self.polled_at.elapsed() > POLL_TIME_MAX {
                break;
            }
            *rounds += 1;
            match self.round(cx)? {
                Progress::Made => {
                    if self.chunks.is_between() && self.has_woken {
                        // Whom this chunk woke runs, and leaves what it has to send, before the next.
                        cx.waker().wake_by_ref();
                        return Poll::Pending;
                    }
                    has_woken |= self.has_woken;
                    if has_woken && self.read_len > READ_LEN_MAX {
                        // Who reads a stream runs while what came is in the processor's cache.
                        return give_way(cx);
                    }
                }
                Progress::Over => return Poll::Ready(Ok(())),
                Progress::None if self.phase == Phase::Open && self.goes_on() => {
                    self.busy_poll.give_way(cx);
                    return Poll::Pending;
                }
                Progress::None => {
                    if self.sleep(cx) {
                        return Poll::Pending;
                    }
                }
            }
        }
        if E::IS_SAMPLED {
            self.work.gave_way_at = Some(Instant::now());
            self.work.is_due = true;
        }
        give_way(cx)
    }
}

impl<IO, E> Future for Driver<IO, E>
where
    IO: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    E: Endpoint,
{
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let outcome = ready!(self.poll_over(cx));
        let connection = &self.connection;
        let mut state = connection.lock();
        // A TLS alert is shorter than a frame's head: what said it may be told only by what is left over.
        let identified = ending::non_http2_peer(&state, &self.leftover, E::IS_CLIENT);
        if let (Err(error), None) = (&outcome, identified) {
            connection.measure.note_error(error.kind());
        }
        let message = ending::message(&connection.peer, &outcome, identified, &state, E::IS_CLIENT);
        let status = Status::unavailable(message);
        state.end_all(&status);
        Poll::Ready(())
    }
}

impl<IO, E> Drop for Driver<IO, E> {
    /// A runtime that shuts down drops its tasks: calls elsewhere must still hear of it.
    fn drop(&mut self) {
        let status = Status::unavailable(format!("connection to {} was dropped", self.connection.peer));
        let mut state = self.connection.lock();
        if state.ended().is_none() {
            state.end_all(&status);
        }
        drop(state);
        buffers::shrink();
    }
}

/// Takes the output that there is into `output`, behind what that has. Whether there is more than that.
#[inline]
fn take_output<E: Endpoint>(
    state: &mut State,
    output: &mut Output,
    endpoint: &mut E,
    polled_at: Instant,
) -> bool {
    let is_taken = if output.is_empty() {
        state.http2.take_output(output)
    } else {
        state.http2.take_more_output(output)
    };
    if !is_taken {
        return false;
    }
    if std::mem::take(&mut state.opened_unsent) >= OPENED_UNSENT_MAX {
        state.admit();
    }
    if E::IS_SAMPLED {
        state.note_taken(polled_at);
    }
    // What has left a stream's queue may have freed space in it: its sender hears of that now, not with the next read.
    let now = polled_at.into_std();
    while let Ok(Some(event)) = state.http2.poll_event(&mut &[][..], now) {
        endpoint.on_event(state, &event, 0);
    }
    state.http2.wants_write()
}
