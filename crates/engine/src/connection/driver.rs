//! The task that moves a connection's bytes: it reads what has arrived, runs what became ready, and writes once.

mod end_message;
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
use crate::status::{Code, Status};

/// The differences between client and server connections: how events are handled, and what runs because of them.
pub(crate) trait Endpoint: Send + Unpin + 'static {
    /// Whether the connection's load is sampled: by a channel for its lanes, never by a server.
    const IS_SAMPLED: bool;
    /// Whether this end is the client.
    const IS_CLIENT: bool;

    /// Handles one event, under the connection's lock. `input_start` is the offset of the event's input in the read
    /// buffer: `start` of a DATA event counts from there.
    fn on_event(&mut self, state: &mut State, event: &Event<'_>, input_start: usize);

    /// Runs what the events of one read made ready, without the lock. `buffer` still holds the bytes that were read.
    /// `has_more`: another chunk of them follows. `polled_at`: when the driver's poll began.
    fn run_ready(&mut self, connection: &Arc<Connection>, buffer: &[u8], has_more: bool, polled_at: Instant);

    /// Returns whether ready work was postponed. It runs when output has left.
    fn is_postponing(&self) -> bool {
        false
    }

    /// Releases spare memory: the connection is idle.
    fn shrink(&mut self) {}
}

/// Maximum number of parts of one vectored write. Linux takes at most 1024 and gains little beyond some dozens.
const PARTS_MAX: usize = 64;
/// Time that a connection closed by us waits for the peer to read the GOAWAY and close, too. Closing at once with
/// unread bytes would make the kernel send RST, which can overtake the GOAWAY.
const LINGER: Duration = Duration::from_secs(1);
/// Time that the last responses of a drained connection wait for a peer that stops reading. A server's shutdown grace
/// period cuts this short.
const FLUSH_STALL_MAX: Duration = Duration::from_secs(30);

/// Drives one connection until it is over. The future itself never fails: calls get the reason why the connection
/// ended as their status.
#[expect(clippy::struct_excessive_bools, reason = "independent flags")]
pub(crate) struct Driver<IO, E> {
    io: IO,
    endpoint: E,
    connection: Arc<Connection>,
    /// An incomplete frame, or the remaining chunks of the last read.
    leftover: Vec<u8>,
    chunks: ReadChunks,
    /// Whether this thread has driven no other connection since this one's last poll.
    is_alone: bool,
    /// Set if the next bytes are the rest of a DATA frame.
    expected: Option<ExpectedData>,
    /// Whether the last read went straight to a large message. Then the next frame header determines where most of
    /// the following bytes belong.
    is_gathering: bool,
    /// Whether the peer's SETTINGS have arrived.
    has_settings: bool,
    /// Bytes being written to the socket.
    output: Output,
    /// Whether there may be output to take; if not, the lock is not taken.
    may_have_output: bool,
    /// Lets callers on several threads run before the driver: see [`CallersFirst`].
    callers_first: CallersFirst,
    /// Connection state when output was last taken under the lock.
    observed: ObservedState,
    /// Tasks deferred by the last read. Empty between two reads.
    deferred: Deferred,
    has_woken: bool,
    /// Bytes read in this poll.
    read_len: usize,
    /// Bytes written that the connection has not been notified of.
    written_len: usize,
    /// Whether postponed calls may run.
    has_room: bool,
    /// Whether calls waited for memory when this poll started.
    has_waiting: bool,
    turn: Turn,
    timer: Option<Pin<Box<Sleep>>>,
    busy_poll: BusyPoll,
    phase: Phase,
    /// When a connection that is no longer open last made progress towards its end.
    stepped_at: Instant,
    work: Work,
    /// When this poll began. The protocol uses it as the current time throughout the poll.
    polled_at: Instant,
}

/// State, besides output, that the driver acts on, as of its last lock. The driver does not sleep if it has changed.
#[derive(Debug, Default, PartialEq)]
struct ObservedState {
    is_drained: bool,
    timeout: Option<std::time::Instant>,
}

impl ObservedState {
    #[inline]
    fn of(state: &State) -> Self {
        Self { is_drained: state.http2.is_drained(), timeout: state.http2.timeout() }
    }
}

#[derive(Debug, PartialEq)]
enum Phase {
    Open,
    /// All frames are queued: flush, shut down our direction, and wait for the peer's end of file.
    Closing,
    /// Our direction is closed; received bytes are dropped.
    Lingering,
}

enum Progress {
    /// Something moved; try again.
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
    /// Creates a driver. Before it sleeps, it busy-polls for `busy_poll`, or adaptively when `None`. Boxed, since a
    /// task stores an awaited future once per enclosing future.
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
            observed: ObservedState::default(),
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

    /// Starts with `bytes` as already received.
    pub(crate) fn with_first(mut self: Box<Self>, bytes: Vec<u8>) -> Box<Self> {
        self.leftover = bytes;
        self
    }

    /// Writes until the output is empty or the socket is full.
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
        let identified = end_message::non_http2_peer(&state, arrived, E::IS_CLIENT);
        let status = match identified {
            Some(what) => Status::local(Code::Unavailable, format!("{}: {what}", self.connection.peer)),
            None => Status::local(
                Code::Unavailable,
                format!("connection to {} lost: {error}", self.connection.peer),
            ),
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
            // The peer may never read the output that precedes the close.
            self.connection.lock().http2.take_discarded(&mut self.output);
            self.output.detach();
        }
        self.phase = phase;
        self.stepped_at = Instant::now();
        self.timer = None;
    }

    /// Handles the protocol's own timeouts: SETTINGS not acknowledged, draining takes too long.
    fn poll_timer(&mut self, cx: &mut Context<'_>) -> Progress {
        if self.phase != Phase::Open {
            return Progress::None;
        }
        let Some(at) = self.observed.timeout.map(Instant::from_std) else {
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

    /// Bounds how long a connection that is no longer open waits for its peer, even one that keeps sending.
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
    /// A runtime that shuts down drops its tasks. Calls on other runtimes must still get a status.
    fn drop(&mut self) {
        let status =
            Status::local(Code::Unavailable, format!("connection to {} was dropped", self.connection.peer));
        let mut state = self.connection.lock();
        if state.ended().is_none() {
            state.end_all(&status);
        }
        drop(state);
        buffers::shrink();
    }
}

/// Appends the available output to `output`. Returns whether there is more.
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
    let opened = std::mem::take(&mut state.opened_unsent);
    if opened > 0 {
        state.opened_at = Some(polled_at);
        if opened >= OPENED_UNSENT_MAX {
            state.admit();
        }
    }
    if E::IS_SAMPLED {
        state.note_taken(polled_at);
    }
    // Output that was taken may have freed space in a stream's queue. Its sender is notified now, not with the next
    // read.
    let now = polled_at.into_std();
    while let Ok(Some(event)) = state.http2.poll_event(&mut &[][..], now) {
        endpoint.on_event(state, &event, 0);
    }
    state.http2.wants_write()
}
