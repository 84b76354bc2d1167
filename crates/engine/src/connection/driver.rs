//! The task that moves a connection's bytes: drain what has arrived, let what became ready run, write once.

mod ending;
mod output_buffer;
mod read;
mod read_buffer;
mod rounds;

use std::future::Future;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use thalweg_http2::{ConnectionError, Event, ExpectedData, Output};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::{Instant, Sleep};

use super::shared::Connection;
use super::state::{OPENED_UNSENT_MAX, State};
use super::unlocked::Deferred;
use crate::buffers;
use crate::memory_budget::Turn;
use crate::scheduler::{BusyPoll, CallersFirst, ReadChunks, Work};
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
