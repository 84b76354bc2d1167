//! A pipelined bidirectional stream: messages are sent ahead of the replies, up to a window.

use std::pin::Pin;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};
use std::sync::atomic::{AtomicBool, AtomicU64, fence};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};

use tokio_stream::Stream;
use tonic::Status;

use super::CallType;
use super::channel::Client;
use super::run::Start;
use super::stride::stride;
use super::worker::{Call, Worker, check_size, ended_early, request};
use crate::proto::SimpleRequest;

/// Maximum payload bytes awaiting replies.
const OUTSTANDING_BYTES: usize = 1 << 20;
/// Maximum messages awaiting replies.
const OUTSTANDING_MESSAGES_MAX: usize = 4096;
/// Streams of the largest messages are pipelined too.
const OUTSTANDING_MESSAGES_MIN: usize = 2;

/// Runs one stream until the run is over. A message's latency is from hand-over to the reply with the same ordinal.
pub async fn bidi_stream(call: Call, client: &mut Client, worker: &Worker) -> Result<(), Status> {
    let (stride, window) = match call.kind {
        // Each round trip is timed.
        CallType::PingPong => (1, 1),
        _ => (stride(call.size), window(call.size)),
    };
    let pipeline = Arc::new(Pipeline::new(window, stride));
    let requests = Requests {
        request: request(call.size, call.size),
        worker: worker.clone(),
        pipeline: pipeline.clone(),
        sent: 0,
        remaining: 0,
    };
    let mut responses = client.streaming_call(requests).await?.into_inner();

    let mut received: u64 = 0;
    let mut timed = Timed::default();
    let ended = loop {
        match responses.message().await {
            Ok(Some(response)) => {
                if let Err(status) = check_size(&response, call.size) {
                    break Err(status);
                }
                if received.is_multiple_of(stride) {
                    let now_ns = worker.run.now_ns();
                    timed.record(worker, now_ns);
                    timed = Timed { sent_ns: pipeline.sent_ns(received), received_ns: now_ns, count: 0 };
                    worker.progress.waits_since(now_ns);
                }
                timed.count += 1;
                received += 1;
                pipeline.received(received);
            }
            Ok(None) if pipeline.has_ended_at(received) => break Ok(()),
            Ok(None) => break Err(ended_early()),
            Err(status) => break Err(status),
        }
    };
    timed.record(worker, worker.run.now_ns());
    ended?;
    if received == 0 {
        // The run was over before the first message, so nothing was sent.
        return Ok(());
    }
    worker.run.shard(worker.index).recorder.calls += 1;
    Ok(())
}

/// Maximum number of messages awaiting replies.
fn window(size: usize) -> u64 {
    let fitting = OUTSTANDING_BYTES / size.max(1);
    fitting.clamp(OUTSTANDING_MESSAGES_MIN, OUTSTANDING_MESSAGES_MAX) as u64
}

/// A stride whose first reply has arrived.
#[derive(Default)]
struct Timed {
    /// Hand-over time of its first message; `None` during the warm-up of a run by number.
    sent_ns: Option<u64>,
    received_ns: u64,
    /// Replies so far.
    count: u64,
}

impl Timed {
    /// Records the latency of the stride's first message for all of its messages, at the end of the last.
    fn record(&self, worker: &Worker, now_ns: u64) {
        if let (Some(sent_ns), 1..) = (self.sent_ns, self.count)
            && worker.run.is_measured(now_ns)
        {
            let latency_ns = self.received_ns.saturating_sub(sent_ns);
            worker.run.shard(worker.index).record(latency_ns, self.count, now_ns);
        }
    }
}

/// State shared by the sender and the receiver of a stream.
struct Pipeline {
    window: u64,
    stride: u64,
    /// Replies so far.
    received: AtomicU64,
    /// Messages of the whole stream once it has ended; `u64::MAX` before.
    total: AtomicU64,
    /// Hand-over time of the first message of each stride in flight; 0 during the warm-up of a run by number.
    stamps_ns: Box<[AtomicU64]>,
    /// The sender has found the window full.
    waiting: AtomicBool,
    waker: Mutex<Option<Waker>>,
}

impl Pipeline {
    fn new(window: u64, stride: u64) -> Self {
        // Strides in flight: those that fill the window, the current one and the partly answered one.
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
        // The stamp was written before the message was sent, and so before its reply.
        Some(self.stamp(ordinal).load(Relaxed)).filter(|&sent_ns| sent_ns > 0)
    }

    fn has_ended_at(&self, received: u64) -> bool {
        self.total.load(Acquire) == received
    }

    /// Records `count` replies in total. Wakes a waiting sender at every quarter of the window: often enough to keep
    /// the stream full, rarely enough that messages still go out in batches.
    fn received(&self, count: u64) {
        self.received.store(count, Release);
        if count.is_multiple_of((self.window / 4).max(1)) {
            // Pairs with the fence in `poll_room`: at least one side sees the other's write, so no wake-up is lost.
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

/// The sender.
struct Requests {
    request: SimpleRequest,
    worker: Worker,
    pipeline: Arc<Pipeline>,
    sent: u64,
    /// Unsent messages of the current stride.
    remaining: u64,
}

impl Requests {
    /// Starts a stride. Returns false when the run is over.
    fn next_stride(&mut self) -> bool {
        let now_ns = self.worker.run.now_ns();
        let (remaining, stamp_ns) = match self.worker.run.start(now_ns, self.pipeline.stride) {
            Start::Over => (0, 0),
            Start::WarmUp => (self.pipeline.stride, 0),
            Start::Counted(count) => (count, now_ns.max(1)),
        };
        self.remaining = remaining;
        if remaining > 0 {
            self.pipeline.stamp(self.sent).store(stamp_ns, Relaxed);
        }
        remaining > 0
    }
}

impl Stream for Requests {
    type Item = SimpleRequest;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<SimpleRequest>> {
        if self.pipeline.poll_room(self.sent, cx).is_pending() {
            return Poll::Pending;
        }
        if self.remaining == 0 && !self.next_stride() {
            self.pipeline.total.store(self.sent, Release);
            return Poll::Ready(None);
        }
        self.remaining -= 1;
        self.sent += 1;
        Poll::Ready(Some(self.request.clone()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn window_is_bounded_in_bytes_and_messages() {
        let windows = [0, 1024, 64 << 10, 1 << 20, 4 << 20].map(window);
        assert_eq!(windows, [4096, 1024, 16, 2, 2]);
    }

    #[test]
    fn full_window_waits_and_is_woken_by_responses() {
        let pipeline = Pipeline::new(8, 1);
        let cx = Context::from_waker(Waker::noop());
        assert!(pipeline.poll_room(7, &cx).is_ready());
        assert!(pipeline.poll_room(8, &cx).is_pending());
        pipeline.received(1);
        assert!(pipeline.waiting.load(Relaxed), "woken for one reply");
        pipeline.received(2);
        assert!(!pipeline.waiting.load(Relaxed), "not woken for a quarter of the window");
        assert!(pipeline.poll_room(8, &cx).is_ready());
    }
}
