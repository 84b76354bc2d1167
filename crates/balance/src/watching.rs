//! When a channel opens the streams on which it watches its servers.

use std::time::{Duration, Instant};

use thalweg_core::Code;

/// A stream on which a server reports something as long as a connection lasts: its health (gRFC A17), or its load
/// (gRFC A51).
///
/// ```text
///   poll ──► Open ──on_message()*──► on_end(status) ──► again after the backoff; at once if there was a message
///                                          └─UNIMPLEMENTED─► never on this connection
/// ```
#[derive(Clone, Debug, Default)]
pub struct Watching {
    state: State,
    /// Streams in a row that ended without a message.
    failures: u32,
}

/// Result of [`Watching::poll`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WatchingStep {
    /// A stream is opened. [`Watching::on_end`] ends it, also if it could not be opened.
    Open,
    /// The next stream is opened then.
    WaitUntil(Instant),
    /// A stream is open, or none is needed.
    Idle,
}

#[derive(Clone, Copy, Debug, Default)]
enum State {
    /// Without a connection, or with one whose server does not know the method.
    #[default]
    Off,
    Due {
        at: Option<Instant>,
    },
    Open {
        opened_at: Instant,
        has_message: bool,
    },
}

impl Watching {
    /// Notes a new connection: a stream on it is due.
    pub fn on_connected(&mut self) {
        *self = Self { state: State::Due { at: None }, failures: 0 };
    }

    /// Notes that the connection accepts no more calls. Its stream is dropped.
    pub fn on_disconnected(&mut self) {
        self.state = State::Off;
    }

    /// Notes a message, which resets the backoff.
    pub fn on_message(&mut self) {
        self.failures = 0;
        if let State::Open { has_message, .. } = &mut self.state {
            *has_message = true;
        }
    }

    /// Ends a stream. `backoff` returns the delay after the n-th failure in a row, counted from 1.
    ///
    /// After a message the next stream is opened at once, but not before the shortest backoff after the last one: a
    /// server that ends each stream after a message would be called without pause.
    pub fn on_end(&mut self, code: Code, backoff: impl FnOnce(u32) -> Duration, now: Instant) {
        let State::Open { opened_at, has_message } = self.state else { return };
        let (from, failure) = if has_message {
            (opened_at, 1)
        } else {
            self.failures = self.failures.saturating_add(1);
            (now, self.failures)
        };
        self.state = match code {
            Code::Unimplemented => State::Off,
            // A time beyond the clock's range is never reached.
            _ => from.checked_add(backoff(failure)).map_or(State::Off, |at| State::Due { at: Some(at) }),
        };
    }

    /// Returns what to do now.
    pub fn poll(&mut self, now: Instant) -> WatchingStep {
        match self.state {
            State::Due { at: Some(at) } if at > now => WatchingStep::WaitUntil(at),
            State::Due { .. } => {
                self.state = State::Open { opened_at: now, has_message: false };
                WatchingStep::Open
            }
            State::Off | State::Open { .. } => WatchingStep::Idle,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Clone, Copy, Debug)]
    enum Event {
        Poll,
        Connected,
        Disconnected,
        Message,
        End(Code),
    }

    use Event::{Connected, Disconnected, End, Message, Poll};

    /// Takes the steps, each at a time in milliseconds, polls after each, and compares. The backoff is a second for
    /// each failure.
    fn check(steps: &[(u64, Event, &str)]) {
        let (start, mut watching) = (Instant::now(), Watching::default());
        for &(ms, event, expected) in steps {
            let now = start + Duration::from_millis(ms);
            match event {
                Poll => {}
                Connected => watching.on_connected(),
                Disconnected => watching.on_disconnected(),
                Message => watching.on_message(),
                End(code) => watching.on_end(code, |failures| Duration::from_secs(failures.into()), now),
            }
            let step = match watching.poll(now) {
                WatchingStep::Open => "open".to_owned(),
                WatchingStep::WaitUntil(at) => format!("wait {}", (at - start).as_millis()),
                WatchingStep::Idle => "idle".to_owned(),
            };
            assert_eq!(step, expected, "{event:?} at {ms} ms in {steps:?}");
        }
    }

    #[test]
    fn stream_is_opened_once_per_connection() {
        check(&[
            (0, Poll, "idle"),
            (5, Connected, "open"),
            (6, Poll, "idle"),
            (7, Message, "idle"),
            (9000, Disconnected, "idle"),
            (9001, End(Code::Unavailable), "idle"),
            (9500, Connected, "open"),
        ]);
    }

    /// gRFC A17.
    #[test]
    fn failures_back_off_until_a_message() {
        check(&[
            (0, Connected, "open"),
            (10, End(Code::Unavailable), "wait 1010"),
            (1000, Poll, "wait 1010"),
            (1010, Poll, "open"),
            (1020, End(Code::Ok), "wait 3020"),
            (3020, Poll, "open"),
            (3030, Message, "idle"),
            (60_000, End(Code::Internal), "open"),
            (60_010, End(Code::Internal), "wait 61010"),
        ]);
    }

    #[test]
    fn streams_that_end_after_a_message_are_a_backoff_apart() {
        check(&[
            (0, Connected, "open"),
            (10, Message, "idle"),
            (20, End(Code::Unavailable), "wait 1000"),
            (1000, Poll, "open"),
            (1001, Message, "idle"),
            (1002, End(Code::Unavailable), "wait 2000"),
        ]);
    }

    /// gRFCs A17 and A51.
    #[test]
    fn unknown_method_is_not_called_again_on_its_connection() {
        check(&[
            (0, Connected, "open"),
            (10, End(Code::Unimplemented), "idle"),
            (99_999, Poll, "idle"),
            (100_000, Connected, "open"),
        ]);
    }

    #[test]
    fn new_connection_starts_without_backoff() {
        check(&[
            (0, Connected, "open"),
            (10, End(Code::Unavailable), "wait 1010"),
            (20, Disconnected, "idle"),
            (30, Connected, "open"),
            (40, End(Code::Unavailable), "wait 1040"),
        ]);
    }
}
