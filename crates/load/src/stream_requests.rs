//! The requests of one stream, at their times.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use thalweg::bytes::Bytes;
use thalweg::{Raw, Stream};
use tokio::time::Sleep;

use crate::schedule::Schedule;
use crate::stream_messages::StreamMessages;

/// The requests of one stream: as fast as the library takes them, or by a schedule.
pub(crate) struct StreamRequests<I> {
    pub(crate) messages: I,
    pub(crate) stream: Arc<StreamMessages>,
    /// They end then.
    pub(crate) lasts: Option<Duration>,
    pub(crate) times: Option<SendTimes>,
}

/// When messages are sent.
pub(crate) struct SendTimes {
    schedule: Schedule,
    next: u64,
    sleep: Pin<Box<Sleep>>,
    /// Whether the timer was waited for, and when it had come, ns since the stream began.
    waits: bool,
    woke_ns: u64,
}

impl SendTimes {
    pub(crate) fn new(schedule: Schedule) -> Self {
        Self {
            schedule,
            next: 0,
            sleep: Box::pin(tokio::time::sleep(Duration::ZERO)),
            waits: false,
            woke_ns: 0,
        }
    }

    /// When the next message was to be sent, once it may be; `None` if there are never as many.
    ///
    /// The runtime's timer is a millisecond late at the most, and what it makes late counts from when it came. What is
    /// late since the library did not ask, as the server did not read, counts from when it was to be sent.
    fn poll(&mut self, began: Instant, until: Option<Duration>, cx: &mut Context<'_>) -> Poll<Option<u64>> {
        let Some(due) = self.schedule.start_of(self.next as f64) else { return Poll::Ready(None) };
        let due = Duration::from_secs_f64(due.min(1e9));
        let end = until.filter(|until| *until <= due);
        let wake = end.unwrap_or(due);
        if began.elapsed() < wake {
            if !self.waits {
                self.sleep.as_mut().reset((began + wake).into());
                self.waits = true;
            }
            if self.sleep.as_mut().poll(cx).is_pending() {
                return Poll::Pending;
            }
        }
        if self.waits {
            self.waits = false;
            self.woke_ns = began.elapsed().as_nanos() as u64;
        }
        if end.is_some() {
            return Poll::Ready(None);
        }
        self.next += 1;
        Poll::Ready(Some(self.woke_ns.max(due.as_nanos() as u64)))
    }
}

impl<I: Iterator<Item = Result<Bytes, String>> + Unpin> Stream for StreamRequests<I> {
    type Item = Raw;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Raw>> {
        let this = &mut *self;
        let stream = &this.stream;
        ready!(stream.poll_room(cx));
        let due_ns = match &mut this.times {
            Some(times) => match times.poll(stream.began, this.lasts, cx) {
                Poll::Ready(Some(due_ns)) => Some(due_ns),
                Poll::Ready(None) => return Poll::Ready(None),
                Poll::Pending => return Poll::Pending,
            },
            None => None,
        };
        let now_ns = stream.now_ns();
        if this.lasts.is_some_and(|lasts| u128::from(now_ns) >= lasts.as_nanos()) {
            return Poll::Ready(None);
        }
        match this.messages.next() {
            None => Poll::Ready(None),
            Some(Err(why)) => {
                stream.fail(why);
                Poll::Ready(None)
            }
            Some(Ok(message)) => {
                stream.send(message.len() as u64, due_ns.unwrap_or(now_ns), now_ns);
                Poll::Ready(Some(Raw(message)))
            }
        }
    }
}
