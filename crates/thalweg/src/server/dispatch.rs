//! Runs unary calls: at once, on the connection's own task, when they are quick.
//!
//! Most handlers are ready when first polled. Their answers then join the batch that is about to be written: no task,
//! no wake-up, no queue. One that has to wait moves to a task of its own. A method whose handlers keep the processor
//! long is given tasks from the start, so that one connection's calls don't wait for each other.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use tokio::time::Instant;
use tonic::Status;

use super::endpoint::Route;
use super::handler::{StartUnary, UnaryCall};
use super::respond::{self, Reply};
use super::task::CallTask;
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

/// What to answer once the connection is locked.
pub(super) enum Answer {
    Ran(Pin<Box<dyn UnaryCall>>),
    Failed(Status),
}

/// Runs `call`. Its answer if it is ready; otherwise the call goes on in a task.
pub(super) fn run(
    call: ReadyCall,
    handler: &dyn StartUnary,
    connection: &Arc<Connection>,
    buffer: &[u8],
    clock: &mut Instant,
) -> Option<(Reply, Answer)> {
    let ReadyCall { route, reply, body } = call;
    let wire = match body {
        Body::InPlace { start, len } => Wire::Lent(&buffer[start..start + len]),
        Body::Gathered(wire) => Wire::Gathered(wire),
    };
    let size_max = route.method.options.max_decoding_message_size;
    let started = catch_unwind(AssertUnwindSafe(|| handler.start(&route.head, wire, size_max)));
    let mut running = match started {
        Ok(Ok(running)) => running,
        Ok(Err(status)) => return Some((reply, Answer::Failed(status))),
        Err(_) => return Some((reply, Answer::Failed(panicked()))),
    };
    let pace = &route.method.pace;
    if pace.is_quick() {
        // The waker does nothing: if the handler has to wait, its task polls it again with one that does.
        let mut cx = Context::from_waker(Waker::noop());
        let polled = catch_unwind(AssertUnwindSafe(|| running.as_mut().poll_run(&mut cx)));
        pace.note(clock);
        match polled {
            Ok(Poll::Ready(())) => return Some((reply, Answer::Ran(running))),
            Ok(Poll::Pending) => {}
            Err(_) => return Some((reply, Answer::Failed(panicked()))),
        }
    }
    tokio::spawn(CallTask::unary(Arc::clone(connection), reply, running, &route));
    None
}

pub(super) fn panicked() -> Status {
    Status::internal("the handler panicked")
}

pub(super) fn answer(state: &mut crate::connection::State, reply: &Reply, answer: Answer) {
    match answer {
        Answer::Ran(mut running) => running.as_mut().reply(state, reply),
        Answer::Failed(status) => respond::send_status(state, reply, &status),
    }
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
