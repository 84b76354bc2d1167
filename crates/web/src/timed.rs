//! HTTP/2 request bodies with a time limit: [`Timed`].

use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body as _, Frame};
use thalweg_engine::{Code, RawBody, Status};
use tokio::time::{Instant, Sleep, sleep_until};

/// Time spent waiting for a part of a body. The clock stops while the service does not read.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Waiting {
    came: u64,
    waited: Duration,
    since: Option<Instant>,
}

/// Bytes of a part that extend its time limit by one second.
const BYTES_PER_S: u64 = 1024;

impl Waiting {
    /// Records `len` received bytes.
    pub(crate) fn came(&mut self, len: usize, now: Instant) {
        self.came += len as u64;
        self.waited += self.since.take().map_or(Duration::ZERO, |since| now - since);
    }

    /// Records that a read is pending.
    pub(crate) fn waits(&mut self, now: Instant) {
        self.since.get_or_insert(now);
    }

    /// Returns the state for the next part, whose read may be pending already.
    pub(crate) fn anew(&self, now: Instant) -> Waiting {
        Waiting { since: self.since.map(|_| now), ..Waiting::default() }
    }

    pub(crate) fn is_waiting(&self) -> bool {
        self.since.is_some()
    }

    /// Returns the deadline while a read is pending; `time` is the limit of a part without any bytes.
    pub(crate) fn ends(&self, time: Duration) -> Option<Instant> {
        let allowed = time + Duration::from_secs(self.came / BYTES_PER_S);
        Some(self.since? + allowed.saturating_sub(self.waited))
    }
}

#[cold]
pub(crate) fn too_slow() -> Status {
    Status::new(Code::Cancelled, "receiving the body took too long")
}

/// A body with a time limit.
pub(crate) struct Timed {
    body: RawBody,
    time: Duration,
    /// Whether the headers declare the length: the limit then applies to the whole body.
    has_length: bool,
    /// The part needed to make progress.
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
        // Discards the rest of the body.
        self.body = RawBody::default();
        Poll::Ready(Some(Err(too_slow())))
    }
}
