//! HTTP/2 request bodies with a time limit: [`TimedBody`].

use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body as _, Frame};
use thalweg_engine::{Code, RawBody, Status};
use tokio::time::{Instant, Sleep, sleep_until};

/// Time spent waiting for a part of a body. The clock stops while the service does not read.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PartTimer {
    received: u64,
    waited: Duration,
    since: Option<Instant>,
}

/// Bytes of a part that extend its time limit by one second.
const BYTES_PER_S: u64 = 1024;

impl PartTimer {
    /// Records `len` received bytes.
    pub(crate) fn received(&mut self, len: usize, now: Instant) {
        self.received += len as u64;
        self.waited += self.since.take().map_or(Duration::ZERO, |since| now - since);
    }

    /// Records that a read is pending.
    pub(crate) fn start_waiting(&mut self, now: Instant) {
        self.since.get_or_insert(now);
    }

    /// Returns the state for the next part, whose read may be pending already.
    pub(crate) fn next_part(&self, now: Instant) -> PartTimer {
        PartTimer { since: self.since.map(|_| now), ..PartTimer::default() }
    }

    pub(crate) fn is_waiting(&self) -> bool {
        self.since.is_some()
    }

    /// Returns the deadline while a read is pending; `time` is the limit of a part without any bytes.
    pub(crate) fn deadline(&self, time: Duration) -> Option<Instant> {
        let allowed = time + Duration::from_secs(self.received / BYTES_PER_S);
        Some(self.since? + allowed.saturating_sub(self.waited))
    }
}

#[cold]
pub(crate) fn too_slow() -> Status {
    Status::new(Code::Cancelled, "receiving the body took too long")
}

/// A body with a time limit.
pub(crate) struct TimedBody {
    body: RawBody,
    time: Duration,
    /// Whether the headers declare the length: the limit then applies to the whole body.
    has_length: bool,
    /// The part needed to make progress.
    part: Option<u64>,
    part_timer: PartTimer,
    timer: Option<Pin<Box<Sleep>>>,
}

impl TimedBody {
    pub(crate) fn new(body: RawBody, time: Duration, has_length: bool) -> Self {
        Self { body, time, has_length, part: None, part_timer: PartTimer::default(), timer: None }
    }

    pub(crate) fn body(&self) -> &RawBody {
        &self.body
    }

    pub(crate) fn expect_part(&mut self, part: Option<u64>) {
        if self.part != part {
            self.part = part;
            self.part_timer = PartTimer::default();
        }
    }

    pub(crate) fn poll_frame(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        let polled = Pin::new(&mut self.body).poll_frame(cx);
        if let Poll::Ready(frame) = polled {
            let piece = frame.as_ref().and_then(|frame| frame.as_ref().ok()?.data_ref());
            self.part_timer.received(piece.map_or(0, Bytes::len), Instant::now());
            return Poll::Ready(frame);
        }
        if self.part.is_none() && !self.has_length {
            return Poll::Pending;
        }
        self.part_timer.start_waiting(Instant::now());
        let Some(deadline) = self.part_timer.deadline(self.time) else { return Poll::Pending };
        let timer = self.timer.get_or_insert_with(|| Box::pin(sleep_until(deadline)));
        if timer.deadline() != deadline {
            timer.as_mut().reset(deadline);
        }
        ready!(timer.as_mut().poll(cx));
        // Discards the rest of the body.
        self.body = RawBody::default();
        Poll::Ready(Some(Err(too_slow())))
    }
}
