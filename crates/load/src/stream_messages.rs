//! Counts the messages of a stream when they come, whenever it ends.

use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Instant;

use crate::tally::Shards;
use crate::traffic::{Batch, Replies};
use crate::unanswered::{Answered, Unanswered};

/// Batch that are counted at once, at the most.
const AT_ONCE_MAX: usize = 64;

/// Where the messages of a worker's streams are counted. Each worker has its own: a counter of references that all
/// threads change would be fetched from one processor to another with each stream.
#[derive(Debug)]
pub(crate) struct Counting {
    pub(crate) shards: Arc<Shards>,
    /// When the run's clock began.
    pub(crate) base: Instant,
}

/// The messages of one stream, which both of its directions count.
#[derive(Debug)]
pub(crate) struct StreamMessages {
    counting: Arc<Counting>,
    pub(crate) began: Instant,
    /// What comes then is counted, ns since the stream began.
    counted: Range<u64>,
    /// Of a stream whose responses answer its requests one by one.
    unanswered: Option<Mutex<Paired>>,
    /// So many of its requests may await their responses.
    outstanding: u64,
    /// A message could not be made, and the stream ended before it.
    fault: OnceLock<String>,
}

/// What both directions of a bidi stream know.
#[derive(Debug)]
struct Paired {
    requests: Unanswered,
    /// Of the direction that sends, where it waits for responses.
    sender: Option<Waker>,
}

impl StreamMessages {
    /// `counted` is when messages are counted, ns of the run's clock.
    pub(crate) fn new(
        counting: &Arc<Counting>,
        counted: &Range<u64>,
        is_paired: bool,
        outstanding: Option<u64>,
    ) -> Self {
        let began = Instant::now();
        let before_ns = began.saturating_duration_since(counting.base).as_nanos() as u64;
        Self {
            counting: counting.clone(),
            began,
            counted: counted.start.saturating_sub(before_ns)..counted.end.saturating_sub(before_ns),
            unanswered: is_paired.then(|| Mutex::new(Paired { requests: Unanswered::new(), sender: None })),
            outstanding: outstanding.unwrap_or(u64::MAX),
            fault: OnceLock::new(),
        }
    }

    /// Since the stream began.
    pub(crate) fn now_ns(&self) -> u64 {
        self.began.elapsed().as_nanos() as u64
    }

    /// A request of so many bytes is sent now, and was to be sent at `due_ns`.
    pub(crate) fn send(&self, bytes: u64, due_ns: u64, now_ns: u64) {
        if let Some(mut paired) = self.unanswered() {
            paired.requests.send(due_ns);
        }
        if self.counted.contains(&now_ns) {
            self.counting.shards.own().count_request(bytes);
        }
    }

    /// Ready when another request may be sent.
    pub(crate) fn poll_room(&self, cx: &Context<'_>) -> Poll<()> {
        if self.outstanding == u64::MAX {
            return Poll::Ready(());
        }
        let Some(mut paired) = self.unanswered() else { return Poll::Ready(()) };
        if paired.requests.count() < self.outstanding {
            return Poll::Ready(());
        }
        paired.sender = Some(cx.waker().clone());
        Poll::Pending
    }

    /// A response has come: the request that it answers.
    fn answer(&self) -> Option<Answered> {
        let mut paired = self.unanswered()?;
        let answered = paired.requests.answer();
        // Often enough to keep the stream full, seldom enough that requests go out together.
        let enough = self.outstanding - (self.outstanding / 4).max(1);
        if paired.sender.is_some() && paired.requests.count() <= enough {
            let sender = paired.sender.take();
            drop(paired);
            sender.into_iter().for_each(Waker::wake);
        }
        answered
    }

    /// There is no next message.
    pub(crate) fn fail(&self, why: String) {
        // The stream has ended with the first.
        let _ = self.fault.set(why);
    }

    /// Why there was no next message, where it could not be made.
    pub(crate) fn fault(&self) -> Option<&str> {
        self.fault.get().map(String::as_str)
    }

    fn unanswered(&self) -> Option<MutexGuard<'_, Paired>> {
        Some(self.unanswered.as_ref()?.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Counts the responses of a stream.
pub(crate) struct Received<'s> {
    stream: &'s StreamMessages,
    /// All of the stream.
    pub(crate) total: u64,
    batch: Batch,
    /// When the last of them came, ns since the stream began.
    last_ns: u64,
}

impl<'s> Received<'s> {
    pub(crate) fn of(stream: &'s StreamMessages) -> Self {
        Self { stream, total: 0, batch: Batch::default(), last_ns: 0 }
    }

    /// A response of so many bytes has come. It is counted when there is none at hand behind it.
    pub(crate) fn push(&mut self, bytes: u64) {
        let now_ns = self.stream.now_ns();
        let batch = &mut self.batch;
        if self.total == 0 {
            batch.first_ns = Some(now_ns);
        }
        if let Some(Answered { at_ns, count }) = self.stream.answer() {
            batch.replies.push(Replies { took_ns: now_ns.saturating_sub(at_ns), count });
        }
        batch.count += 1;
        batch.bytes += bytes;
        self.total += 1;
        self.last_ns = now_ns;
        if batch.count >= AT_ONCE_MAX as u64 {
            self.count();
        }
    }

    /// Counts what has come.
    pub(crate) fn count(&mut self) {
        let Self { stream, batch, last_ns, .. } = self;
        if batch.count > 0 && stream.counted.contains(last_ns) {
            stream.counting.shards.own().count_responses(batch);
        }
        (batch.count, batch.bytes, batch.first_ns) = (0, 0, None);
        batch.replies.clear();
    }
}

/// However a stream ends, what has come is counted.
impl Drop for Received<'_> {
    fn drop(&mut self) {
        self.count();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
    use std::task::Wake;

    use super::*;

    #[derive(Default)]
    struct Woken(AtomicU32);

    impl Wake for Woken {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Relaxed);
        }
    }

    #[test]
    fn requests_wait_for_responses_where_as_many_are_outstanding() {
        let counting = Arc::new(Counting { shards: Arc::new(Shards::new(1, 1)), base: Instant::now() });
        let woken = Arc::new(Woken::default());
        let waker = Waker::from(woken.clone());
        let cx = Context::from_waker(&waker);
        for (outstanding, enough) in [(1, 1), (8, 2)] {
            let stream = StreamMessages::new(&counting, &(0..u64::MAX), true, Some(outstanding));
            for _ in 0..outstanding {
                assert!(stream.poll_room(&cx).is_ready());
                stream.send(1, 0, 0);
            }
            assert!(stream.poll_room(&cx).is_pending());
            let before = woken.0.load(Relaxed);
            for _ in 1..enough {
                stream.answer();
            }
            assert_eq!(woken.0.load(Relaxed), before, "woken too early, of {outstanding}");
            stream.answer();
            assert_eq!(woken.0.load(Relaxed), before + 1, "of {outstanding}");
            assert!(stream.poll_room(&cx).is_ready());
        }
        let unlimited = StreamMessages::new(&counting, &(0..u64::MAX), true, None);
        (0..10_000).for_each(|_| unlimited.send(1, 0, 0));
        assert!(unlimited.poll_room(&cx).is_ready());
    }
}
