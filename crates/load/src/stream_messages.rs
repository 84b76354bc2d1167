//! Counts the messages of a stream when they come, whenever it ends.

use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
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
    unanswered: Option<Mutex<Unanswered>>,
    /// A message could not be made, and the stream ended before it.
    fault: OnceLock<String>,
}

impl StreamMessages {
    /// `counted` is when messages are counted, ns of the run's clock.
    pub(crate) fn new(counting: &Arc<Counting>, counted: &Range<u64>, is_paired: bool) -> Self {
        let began = Instant::now();
        let before_ns = began.saturating_duration_since(counting.base).as_nanos() as u64;
        Self {
            counting: counting.clone(),
            began,
            counted: counted.start.saturating_sub(before_ns)..counted.end.saturating_sub(before_ns),
            unanswered: is_paired.then(|| Mutex::new(Unanswered::new())),
            fault: OnceLock::new(),
        }
    }

    /// Since the stream began.
    pub(crate) fn now_ns(&self) -> u64 {
        self.began.elapsed().as_nanos() as u64
    }

    /// A request of so many bytes is sent now, and was to be sent at `due_ns`.
    pub(crate) fn send(&self, bytes: u64, due_ns: u64, now_ns: u64) {
        if let Some(mut unanswered) = self.unanswered() {
            unanswered.send(due_ns);
        }
        if self.counted.contains(&now_ns) {
            self.counting.shards.own().count_request(bytes);
        }
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

    fn unanswered(&self) -> Option<MutexGuard<'_, Unanswered>> {
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
        if let Some(Answered { at_ns, count }) = self.stream.unanswered().and_then(|mut it| it.answer()) {
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
