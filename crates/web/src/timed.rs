//! The body of a request over HTTP/2, which has to come in its time: [`Timed`].

use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body as _, Frame};
use thalweg_engine::{Code, RawBody, Status};
use tokio::time::{Instant, Sleep, sleep_until};

/// A part of a body, and how long has been waited for it. While nobody reads, time stands still.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Waiting {
    came: u64,
    waited: Duration,
    since: Option<Instant>,
}

/// A part may take a second more for so many bytes that have come of it.
const BYTES_PER_S: u64 = 1024;

impl Waiting {
    /// So many bytes have come.
    pub(crate) fn came(&mut self, len: usize, now: Instant) {
        self.came += len as u64;
        self.waited += self.since.take().map_or(Duration::ZERO, |since| now - since);
    }

    /// Somebody would read, and nothing is there.
    pub(crate) fn waits(&mut self, now: Instant) {
        self.since.get_or_insert(now);
    }

    /// For the next part, which may be waited for already.
    pub(crate) fn anew(&self, now: Instant) -> Waiting {
        Waiting { since: self.since.map(|_| now), ..Waiting::default() }
    }

    pub(crate) fn is_waiting(&self) -> bool {
        self.since.is_some()
    }

    /// When it is too late, if somebody waits and there is `time` for a part without anything.
    pub(crate) fn ends(&self, time: Duration) -> Option<Instant> {
        let allowed = time + Duration::from_secs(self.came / BYTES_PER_S);
        Some(self.since? + allowed.saturating_sub(self.waited))
    }
}

#[cold]
pub(crate) fn too_slow() -> Status {
    Status::new(Code::Cancelled, "the request's body took too long to come")
}

/// A body that comes, and has to come in its time.
pub(crate) struct Timed {
    body: RawBody,
    time: Duration,
    /// It is as long as its head says: all of it has its time.
    has_length: bool,
    /// The part that must come.
    part: Option<u64>,
    waiting: Waiting,
    timer: Option<Pin<Box<Sleep>>>,
}

impl Timed {
    pub(crate) fn new(body: RawBody, time: Duration, has_length: bool) -> Self {
        Self { body, time, has_length, part: None, waiting: Waiting::default(), timer: None }
    }

    pub(crate) fn body(&self) -> &RawBody {
        &self.body
    }

    pub(crate) fn awaits(&mut self, part: Option<u64>) {
        if self.part != part {
            self.part = part;
            self.waiting = Waiting::default();
        }
    }

    pub(crate) fn poll_frame(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        let polled = Pin::new(&mut self.body).poll_frame(cx);
        if let Poll::Ready(frame) = polled {
            let piece = frame.as_ref().and_then(|frame| frame.as_ref().ok()?.data_ref());
            self.waiting.came(piece.map_or(0, Bytes::len), Instant::now());
            return Poll::Ready(frame);
        }
        if self.part.is_none() && !self.has_length {
            return Poll::Pending;
        }
        self.waiting.waits(Instant::now());
        let Some(ends) = self.waiting.ends(self.time) else { return Poll::Pending };
        let timer = self.timer.get_or_insert_with(|| Box::pin(sleep_until(ends)));
        if timer.deadline() != ends {
            timer.as_mut().reset(ends);
        }
        ready!(timer.as_mut().poll(cx));
        // Nothing more of it is read.
        self.body = RawBody::default();
        Poll::Ready(Some(Err(too_slow())))
    }
}
