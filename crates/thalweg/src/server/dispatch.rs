//! Runs unary calls: at once, on the connection's own task, when they are quick.
//!
//! Most handlers are ready when first polled. Their answers then join the batch that is about to be written: no task,
//! no wake-up, no queue. One that has to wait moves to a task of its own. A method whose handlers keep the processor
//! long is given tasks from the start, so that one connection's calls don't wait for each other.

use std::iter::Peekable;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};
use std::time::Duration;
use std::vec;

use tokio::time::Instant;
use tonic::Status;

use super::endpoint::Route;
use super::handler::Handler;
use super::methods::ServerMethod;
use super::respond::Reply;
use crate::connection::Connection;
use crate::grpc::codec::Wire;

/// A unary call whose request is there.
pub(super) struct ReadyCall {
    pub(super) route: Arc<Route>,
    pub(super) reply: Reply,
    pub(super) body: Body,
}

/// Where the request's message lies, prefix included.
pub(super) enum Body {
    /// In the connection's read buffer: it is decoded from there.
    InPlace { start: usize, len: usize },
    /// It came in pieces.
    Gathered(Vec<u8>),
}

impl Body {
    pub(super) fn wire(self, buffer: &[u8]) -> Wire<'_> {
        match self {
            Body::InPlace { start, len } => Wire::Lent(&buffer[start..start + len]),
            Body::Gathered(wire) => Wire::Gathered(wire),
        }
    }
}

/// The calls that one read has made ready.
pub(super) struct Turn<'a> {
    pub(super) connection: &'a Arc<Connection>,
    /// What was read.
    pub(super) buffer: &'a [u8],
    /// When the handler before was done.
    pub(super) clock: Instant,
    calls: Peekable<vec::Drain<'a, ReadyCall>>,
}

impl<'a> Turn<'a> {
    pub(super) fn new(
        connection: &'a Arc<Connection>,
        buffer: &'a [u8],
        calls: vec::Drain<'a, ReadyCall>,
    ) -> Self {
        Self { connection, buffer, clock: Instant::now(), calls: calls.peekable() }
    }

    /// The next call, if it is one of `method`.
    #[inline]
    pub(super) fn next_of(&mut self, method: &ServerMethod) -> Option<ReadyCall> {
        self.calls.next_if(|call| std::ptr::eq(&raw const *call.route.method, method))
    }

    /// Runs all calls.
    pub(super) fn run(mut self) {
        while let Some(next) = self.calls.peek() {
            let method = Arc::clone(&next.route.method);
            match &method.handler {
                Handler::Unary(handler) => handler.run(&method, &mut self),
                // Only unary calls wait for their request.
                Handler::Streaming(_) => drop(self.calls.next()),
            }
        }
    }
}

pub(super) fn panicked() -> Status {
    Status::internal("the handler panicked")
}

/// How quick a method's handlers are.
///
/// A handler that keeps the processor for more than [`SLOW`] adds to the score, one that does not takes a little away;
/// above the threshold calls get tasks. So a pause of the machine changes nothing, and a method that has become quick
/// comes back.
#[derive(Debug, Default)]
pub(super) struct Pace {
    score: AtomicI32,
}

/// Longer than this, and the other calls of the connection are better off elsewhere. A spawn and its wake-up cost some µs.
const SLOW: Duration = Duration::from_micros(100);
const SLOW_PENALTY: i32 = 16;
/// Two slow calls in a row are enough.
const SCORE_SLOW: i32 = 20;
/// From here it takes some 100 quick calls to come back.
const SCORE_MAX: i32 = 120;

impl Pace {
    pub(super) fn is_quick(&self) -> bool {
        self.score.load(Ordering::Relaxed) < SCORE_SLOW
    }

    /// Takes note of a poll that began at `clock`, and moves `clock` on.
    pub(super) fn note(&self, clock: &mut Instant) {
        let now = Instant::now();
        let took = now - std::mem::replace(clock, now);
        let score = self.score.load(Ordering::Relaxed);
        // Calls of several threads may overwrite each other's note: it is a tendency, not a count.
        if took > SLOW {
            self.score.store((score + SLOW_PENALTY).min(SCORE_MAX), Ordering::Relaxed);
        } else if score > 0 {
            self.score.store(score - 1, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slow_methods_get_tasks_and_come_back() {
        let pace = Pace::default();
        let note = |took: Duration| {
            pace.note(&mut Instant::now().checked_sub(took).expect("the clock is not young"));
        };
        note(Duration::from_millis(5));
        assert!(pace.is_quick(), "one slow call may be the machine's fault");
        note(Duration::from_millis(5));
        assert!(!pace.is_quick());
        (0..SCORE_MAX).for_each(|_| note(Duration::ZERO));
        assert!(pace.is_quick());
    }
}
