//! Scheduling of a driver: rounds of writing and reading until nothing moves, then sleep.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::Instant;

use super::{Driver, Endpoint, ObservedState, Phase, Progress, end_message, output_buffer, take_output};
use crate::buffers;
use crate::connection::memory::Room;
use crate::connection::state::DriverState;
use crate::scheduler::tuning::{POLL_TIME_MAX, READ_LEN_MAX, ROUNDS_MAX, ROUNDS_UNTIMED};
use crate::scheduler::{self, Heuristic, Idle, yield_now};
use crate::status::{Code, Status};

impl<IO, E> Driver<IO, E>
where
    IO: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    E: Endpoint,
{
    /// Runs one round: writes, reads, and checks whether the connection is over.
    fn round(&mut self, cx: &mut Context<'_>) -> io::Result<Progress> {
        // The client's first bytes are usually there on a server's first poll. Their responses leave together with
        // SETTINGS.
        if !E::IS_CLIENT
            && !self.has_settings
            && self.phase == Phase::Open
            && matches!(self.read(cx)?, Progress::Made)
        {
            if !self.output.is_empty() {
                // SETTINGS, still blocked by the socket.
                self.take_output();
            }
            return Ok(Progress::Made);
        }
        let wrote = match self.write(cx) {
            Ok(wrote) => wrote,
            Err(error) => {
                // A peer that sends its last bytes and closes rejects our writes, but those bytes can still be read.
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
            if self.observed.is_drained {
                // Nothing more arrives. The close cut off any remaining calls.
                let peer = &self.connection.peer;
                let status = Status::local(Code::Unavailable, format!("connection to {peer} was closed"));
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

    /// Goes to sleep, unless a caller has produced output since it was last taken, or other state has changed.
    fn sleep(&mut self, cx: &Context<'_>) -> bool {
        // A client's waker is taken by the next caller; a server's is mostly still in place.
        let mut waker = E::IS_CLIENT.then(|| cx.waker().clone());
        let mut state = self.connection.lock();
        if waker.is_none() && !state.is_woken_by(cx.waker()) {
            drop(state);
            waker = Some(cx.waker().clone());
            state = self.connection.lock();
        }
        // While our output is blocked, more output can't leave either: the socket wakes the driver. But draining or
        // closing the connection meanwhile starts a timeout.
        let mut has_news = if self.output.is_empty() {
            state.http2.wants_write()
        } else {
            matches!(state.driver, DriverState::Notified)
        };
        let observed = ObservedState::of(&state);
        if observed != self.observed {
            self.observed = observed;
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
        if !self.busy_poll.is_spinning() {
            self.is_alone = scheduler::is_alone(self.identity());
        }
        let mut state = self.connection.lock();
        if E::IS_CLIENT
            && matches!(state.driver, DriverState::Notified)
            && self.connection.in_flight() > 1
            && self.callers_first.yields()
        {
            drop(state);
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        self.callers_first.note_resumed();
        // The socket woke the driver, so callers need not.
        state.driver = DriverState::Running;
        state.polled_at = self.polled_at;
        if !E::IS_CLIENT {
            state.note_written(std::mem::take(&mut self.written_len), self.output.len());
            state.note_growth(std::mem::take(&mut self.read_len));
            self.has_waiting = state.memory.has_waiting();
        }
        let now = self.polled_at.into_std();
        // Checked here as well, since a busy peer may never leave a round without work.
        let overdue = if state.http2.timeout().is_some_and(|at| at <= now) {
            state.http2.handle_timeout(now)
        } else {
            Ok(())
        };
        if E::IS_SAMPLED {
            if self.work.is_due {
                self.work.add_to(&mut state.load, self.polled_at);
            }
            state.notify_watcher(self.polled_at);
        }
        self.observed = ObservedState::of(&state);
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
        self.busy_poll.start_poll();
        let outcome = self.poll_rounds(cx, &mut rounds);
        self.busy_poll.end_poll();
        if E::IS_SAMPLED {
            self.work.note_poll(self.polled_at, rounds);
        }
        outcome
    }

    /// Called when nothing moved. Returns whether to try again before sleeping.
    #[inline]
    fn tries_again(&mut self) -> bool {
        if self.has_waiting || self.endpoint.is_postponing() {
            // They are admitted before the driver sleeps.
            self.busy_poll.stop();
            return false;
        }
        let identity = self.identity();
        let Self { connection, output, is_alone, expected, .. } = self;
        let expects = || output.is_empty() && (!E::IS_CLIENT || connection.in_flight() > 0);
        let idle = Idle { identity, is_amid_message: expected.is_some(), is_alone: *is_alone, expects };
        self.busy_poll.tries_again(idle, std::time::Instant::now)
    }

    /// Returns a number that is unique among the live connections.
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
                        // Tasks woken by this chunk run, and queue their output, before the next chunk.
                        cx.waker().wake_by_ref();
                        return Poll::Pending;
                    }
                    has_woken |= self.has_woken;
                    if has_woken && self.read_len > READ_LEN_MAX && Heuristic::ReadBreak.is_on() {
                        // Readers run while the data is in the processor's cache.
                        return yield_now(cx);
                    }
                }
                Progress::Over => return Poll::Ready(Ok(())),
                Progress::None if self.phase == Phase::Open && self.tries_again() => {
                    self.busy_poll.yield_between_tries(cx);
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
            self.work.yielded_at = Some(Instant::now());
            self.work.is_due = true;
        }
        yield_now(cx)
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
        // A TLS alert is shorter than a frame header, so only the leftover bytes may identify the peer.
        let identified = end_message::non_http2_peer(&state, &self.leftover, E::IS_CLIENT);
        if let (Err(error), None) = (&outcome, identified) {
            connection.measure.note_error(error.kind());
        }
        let message = end_message::text(&connection.peer, &outcome, identified, &state, E::IS_CLIENT);
        let status = Status::local(Code::Unavailable, message);
        state.end_all(&status);
        Poll::Ready(())
    }
}
