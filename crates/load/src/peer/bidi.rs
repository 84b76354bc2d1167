//! A stream both ways, pipelined: messages go out ahead of the replies that come back, as far as a window allows.

use std::pin::Pin;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};
use std::sync::atomic::{AtomicBool, AtomicU64, fence};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker, ready};

use futures_core::Stream;
use thalweg::{Request, Status, outbound};

use super::call::{Call, Replies, Worker, ended_early, request};
use super::run::Start;
use super::stride::stride;
use crate::record::{CallType, Handing};
use crate::services::proto::SimpleRequest;

/// Payload bytes of a bidi stream that may await their replies.
pub const BIDI_OUTSTANDING_BYTES: usize = 1 << 20;
/// Messages of a bidi stream that may await their replies. 4096 empty ones are 20 KiB on the wire.
pub const BIDI_OUTSTANDING_MESSAGES_MAX: usize = 4096;
/// A stream of the largest messages is pipelined too.
const OUTSTANDING_MESSAGES_MIN: usize = 2;

/// One stream until the run is over. Its messages are timed from their hand-over to the reply with the same ordinal.
pub(super) async fn bidi_stream(call: &Call, worker: &Worker) -> Result<(), Status> {
    let stride = stride(call.kind, call.size);
    let pipeline = Arc::new(Pipeline::new(window(call.kind, call.size), stride));
    let requests = Requests {
        request: request(call.size, call.size),
        worker: worker.clone(),
        pipeline: pipeline.clone(),
        sent: 0,
        left: 0,
    };
    let replies = match call.handing {
        Handing::InPlace => call.client.streaming_call(Request::new(requests.in_place())).await?,
        Handing::Owned => call.client.streaming_call(Request::new(requests)).await?,
    };
    let mut replies = Replies::new(replies.into_inner(), call);

    let mut received: u64 = 0;
    let mut timed = Timed::default();
    let ended = loop {
        match replies.next().await {
            Ok(true) => {
                if received.is_multiple_of(stride) {
                    timed.record(worker);
                    let now_ns = worker.run.now_ns();
                    timed = Timed { sent_ns: pipeline.sent_ns(received), received_ns: now_ns, count: 0 };
                    worker.progress.waits_since(now_ns);
                }
                timed.count += 1;
                received += 1;
                pipeline.received(received);
            }
            Ok(false) if pipeline.has_ended_at(received) => break Ok(()),
            Ok(false) => break Err(ended_early()),
            Err(status) => break Err(status),
        }
    };
    timed.record(worker);
    ended?;
    if received == 0 {
        // The run was over before the first message: nothing was asked of the server.
        return Ok(());
    }
    worker.run.shard().recorder.call();
    Ok(())
}

/// Returns how many messages of a stream with payloads of `size` bytes may await their replies.
pub fn window(kind: CallType, size: usize) -> u64 {
    if kind == CallType::PingPong {
        return 1;
    }
    let fitting = BIDI_OUTSTANDING_BYTES / size.max(1);
    fitting.clamp(OUTSTANDING_MESSAGES_MIN, BIDI_OUTSTANDING_MESSAGES_MAX) as u64
}

/// A stride whose first reply has come.
#[derive(Default)]
struct Timed {
    /// When its first message was handed over; `None` when it does not count.
    sent_ns: Option<u64>,
    received_ns: u64,
    /// Its replies so far.
    count: u64,
}

impl Timed {
    /// All messages of a stride count with the latency of its first.
    fn record(&self, worker: &Worker) {
        if let (Some(sent_ns), 1..) = (self.sent_ns, self.count) {
            let (latency_ns, ended_ns) = (self.received_ns.saturating_sub(sent_ns), worker.run.now_ns());
            if worker.run.holds(ended_ns) {
                worker.run.shard().record(latency_ns, self.count, ended_ns);
            }
        }
    }
}

/// What the sending and the receiving end of one stream know of each other.
#[derive(Debug)]
struct Pipeline {
    window: u64,
    stride: u64,
    /// Replies so far. Written by the receiver alone.
    received: AtomicU64,
    /// Messages of the whole stream, once it has ended; before, `u64::MAX`. Written by the sender alone.
    total: AtomicU64,
    /// When the first message of each stride under way was handed over, 0 for a stride that does not count.
    stamps_ns: Box<[AtomicU64]>,
    /// The sender has found the window full.
    waiting: AtomicBool,
    waker: Mutex<Option<Waker>>,
}

impl Pipeline {
    fn new(window: u64, stride: u64) -> Self {
        // Strides under way: those that fill the window, the one begun and the one half answered.
        let strides = window / stride + 2;
        Self {
            window,
            stride,
            received: AtomicU64::new(0),
            total: AtomicU64::new(u64::MAX),
            stamps_ns: (0..strides).map(|_| AtomicU64::new(0)).collect(),
            waiting: AtomicBool::new(false),
            waker: Mutex::new(None),
        }
    }

    fn stamp(&self, ordinal: u64) -> &AtomicU64 {
        &self.stamps_ns[(ordinal / self.stride) as usize % self.stamps_ns.len()]
    }

    fn sent_ns(&self, ordinal: u64) -> Option<u64> {
        // A reply has come for it, so the stamp was written before; the library's hand-overs order the two.
        Some(self.stamp(ordinal).load(Relaxed)).filter(|&sent_ns| sent_ns > 0)
    }

    fn has_ended_at(&self, received: u64) -> bool {
        self.total.load(Acquire) == received
    }

    /// The receiver has `count` replies. A waiting sender is woken at every quarter of the window: often enough to
    /// keep the stream full, seldom enough that messages still go out in batches.
    fn received(&self, count: u64) {
        self.received.store(count, Release);
        if count.is_multiple_of((self.window / 4).max(1)) {
            // Orders the store above before the load below, as `poll_room` does the other way round: one of the two
            // sees what the other wrote, so a sender never waits for a receiver that has not seen it.
            fence(SeqCst);
            if self.waiting.load(Relaxed) {
                self.waiting.store(false, Relaxed);
                if let Some(waker) = self.waker.lock().unwrap_or_else(PoisonError::into_inner).take() {
                    waker.wake();
                }
            }
        }
    }

    /// Ready when another message may be sent after `sent`.
    fn poll_room(&self, sent: u64, cx: &Context<'_>) -> Poll<()> {
        let full = || sent - self.received.load(Acquire) >= self.window;
        if full() {
            *self.waker.lock().unwrap_or_else(PoisonError::into_inner) = Some(cx.waker().clone());
            self.waiting.store(true, Relaxed);
            fence(SeqCst);
            if full() {
                return Poll::Pending;
            }
        }
        Poll::Ready(())
    }
}

/// The sending end.
struct Requests {
    request: SimpleRequest,
    worker: Worker,
    pipeline: Arc<Pipeline>,
    sent: u64,
    /// Messages of the present stride that are still to come.
    left: u64,
}

impl Requests {
    /// Begins a stride. False when the run is over.
    fn next_stride(&mut self) -> bool {
        let now_ns = self.worker.run.now_ns();
        let (left, stamp_ns) = match self.worker.run.start(now_ns, self.pipeline.stride) {
            Start::Over => (0, 0),
            Start::WarmUp => (self.pipeline.stride, 0),
            Start::Counted(count) => (count, now_ns.max(1)),
        };
        self.left = left;
        if left > 0 {
            self.pipeline.stamp(self.sent).store(stamp_ns, Relaxed);
        }
        left > 0
    }
}

impl Requests {
    /// Ready when another message is to be sent: false when the run is over.
    #[inline]
    fn poll_next_is_due(&mut self, cx: &Context<'_>) -> Poll<bool> {
        ready!(self.pipeline.poll_room(self.sent, cx));
        if self.left == 0 && !self.next_stride() {
            self.pipeline.total.store(self.sent, Release);
            return Poll::Ready(false);
        }
        self.left -= 1;
        self.sent += 1;
        Poll::Ready(true)
    }

    /// The same, sent from where they are.
    fn in_place(mut self) -> outbound::Requests<SimpleRequest> {
        outbound::Requests::new(move |cx, pack| {
            while ready!(self.poll_next_is_due(cx)) {
                if !pack.push(&self.request) {
                    return Poll::Pending;
                }
            }
            Poll::Ready(())
        })
    }
}

impl Stream for Requests {
    type Item = SimpleRequest;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<SimpleRequest>> {
        let is_due = ready!(self.poll_next_is_due(cx));
        Poll::Ready(is_due.then(|| self.request.clone()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(size: usize, expected: u64) {
        assert_eq!(window(CallType::BidiStream, size), expected, "{size} bytes");
        assert_eq!(window(CallType::PingPong, size), 1, "{size} bytes");
    }

    #[test]
    fn the_window_is_bounded_in_bytes_and_in_messages() {
        check(0, 4096);
        check(256, 4096);
        check(1024, 1024);
        check(64 << 10, 16);
        check(1 << 20, 2);
        check(4 << 20, 2);
    }

    #[test]
    fn a_full_window_waits_and_is_woken_by_replies() {
        let pipeline = Pipeline::new(8, 1);
        let cx = Context::from_waker(Waker::noop());
        assert!(pipeline.poll_room(7, &cx).is_ready());
        assert!(pipeline.poll_room(8, &cx).is_pending());
        assert!(pipeline.waiting.load(Relaxed));
        pipeline.received(1);
        assert!(pipeline.waiting.load(Relaxed), "woken for one reply");
        pipeline.received(2);
        assert!(!pipeline.waiting.load(Relaxed), "not woken for a quarter of the window");
        assert!(pipeline.poll_room(8, &cx).is_ready());
    }

    #[test]
    fn stamps_of_all_outstanding_strides_are_kept_apart() {
        let pipeline = Pipeline::new(64, 16);
        for ordinal in (0..=64).step_by(16) {
            pipeline.stamp(ordinal).store(ordinal + 1, Relaxed);
        }
        for ordinal in (0..=64).step_by(16) {
            assert_eq!(pipeline.sent_ns(ordinal), Some(ordinal + 1));
        }
    }
}
