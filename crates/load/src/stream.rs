//! One stream: sends its requests on schedule, and counts messages as they are sent and received.
//!
//! Reading the clock takes some 25 ns, and tens of millions of small messages can pass in a second. So messages that
//! are sent or received together are counted as a batch, with one reading of the clock at its first message.

use std::ops::Range;
use std::pin::Pin;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};
use std::sync::atomic::{AtomicBool, AtomicU64, fence};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::task::{Context, Poll, Waker, ready};
use std::time::{Duration, Instant};

use thalweg::{Stream, outbound};
use tokio::time::Sleep;

use crate::form::Source;
use crate::pace::Paced;
use crate::pending_requests::PendingRequests;
use crate::schedule::Schedule;
use crate::traffic::{Batch, TimedMessages, Traffic};
use crate::worker_counters::{BATCH_MESSAGES_MAX, WorkerCounters};

/// Maximum bytes of a batch before another message is added.
const BATCH_BYTES: u64 = 16 << 10;

/// Counting rules of a stream.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Rules {
    /// Whether responses answer requests one by one.
    pub(crate) is_paired: bool,
    /// Maximum requests that await their response.
    pub(crate) outstanding: Option<u64>,
    /// Whether requests count only once the stream has its response.
    pub(crate) counts_at_response: bool,
    /// Whether the stream ends when the run is stopped.
    pub(crate) lasts_to_end: bool,
}

/// State shared by both directions of a stream.
#[derive(Debug)]
pub(crate) struct Messages {
    counters: Arc<WorkerCounters>,
    pub(crate) began_ns: u64,
    /// Time in which messages are counted.
    counted: Range<u64>,
    /// Messages sent and received. Each counter is written by its own direction only.
    sent: AtomicU64,
    received: AtomicU64,
    pending: Option<Mutex<PendingRequests>>,
    outstanding: u64,
    /// Whether the sender waits for responses.
    waits: AtomicBool,
    sender: Mutex<Option<Waker>>,
    lasts_to_end: bool,
    /// Requests that do not count yet.
    deferred: Option<Mutex<(Traffic, Paced)>>,
    /// Whether all requests have been sent.
    is_complete: AtomicBool,
    /// Reason why a request could not be made, which ended the stream.
    fault: OnceLock<String>,
}

impl Messages {
    /// Creates the state of a stream that starts now, whose messages count during `counted`.
    pub(crate) fn new(counters: &Arc<WorkerCounters>, counted: &Range<u64>, rules: Rules) -> Self {
        Self {
            counters: counters.clone(),
            began_ns: counters.now_ns(),
            counted: counted.clone(),
            sent: AtomicU64::new(0),
            received: AtomicU64::new(0),
            pending: rules.is_paired.then(Mutex::default),
            outstanding: rules.outstanding.unwrap_or(u64::MAX),
            waits: AtomicBool::new(false),
            sender: Mutex::default(),
            lasts_to_end: rules.lasts_to_end,
            deferred: rules.counts_at_response.then(Mutex::default),
            is_complete: AtomicBool::new(false),
            fault: OnceLock::new(),
        }
    }

    /// Returns the start of the run's clock.
    pub(crate) fn base(&self) -> Instant {
        self.counters.base
    }

    /// Returns whether the run is stopped, and the stream ends with it.
    fn is_stopped(&self) -> bool {
        self.lasts_to_end && self.counters.stopped.load(Relaxed)
    }

    pub(crate) fn sent(&self) -> u64 {
        self.sent.load(Acquire)
    }

    /// Returns whether all requests have been sent.
    pub(crate) fn is_complete(&self) -> bool {
        self.is_complete.load(Acquire)
    }

    /// Returns why a request could not be made, if so.
    pub(crate) fn fault(&self) -> Option<&str> {
        self.fault.get().map(String::as_str)
    }

    /// Counts the only request of a stream, sent now.
    pub(crate) fn count_only_request(&self, bytes: u64) {
        self.sent.store(1, Release);
        self.is_complete.store(true, Release);
        if self.counted.contains(&self.began_ns) {
            self.counters.shards.own().count_traffic(Traffic::sent(1, bytes));
        }
    }

    /// Counts the deferred requests, once the stream has its response.
    pub(crate) fn count_deferred(&self) {
        if let Some(deferred) = &self.deferred {
            let (traffic, paced) = std::mem::take(&mut *lock(deferred));
            let mut shard = self.counters.shards.own();
            shard.count_traffic(traffic);
            shard.count_paced(&paced);
        }
    }

    fn count_requests(&self, traffic: Traffic, timed: Option<TimedMessages>) {
        match &self.deferred {
            None => {
                let mut shard = self.counters.shards.own();
                shard.count_traffic(traffic);
                if let Some(timed) = timed {
                    shard.count_timed(timed, self.counters.now_ns());
                }
            }
            Some(deferred) => {
                let mut deferred = lock(deferred);
                deferred.0 += traffic;
                if let Some(timed) = timed {
                    deferred.1.record(timed, self.counters.now_ns());
                }
            }
        }
    }

    /// Returns whether another request may follow `sent` requests.
    #[inline]
    fn has_room(&self, sent: u64) -> bool {
        // A server may send more responses than requested.
        sent.saturating_sub(self.received.load(Acquire)) < self.outstanding
    }

    /// Waits until another request may be sent.
    fn poll_room(&self, sent: u64, cx: &Context<'_>) -> Poll<()> {
        if self.has_room(sent) {
            return Poll::Ready(());
        }
        *lock(&self.sender) = Some(cx.waker().clone());
        self.waits.store(true, Relaxed);
        // Orders the store above before the load below; `on_received` does the reverse. One of the two sees the
        // other's write, so a sender never waits for a receiver that has not seen it.
        fence(SeqCst);
        if self.has_room(sent) { Poll::Ready(()) } else { Poll::Pending }
    }

    /// Counts `count` responses. Wakes a waiting sender at each quarter of the outstanding limit: often enough to keep
    /// the stream full, rarely enough that requests are sent together.
    #[inline]
    fn on_received(&self, count: u64) {
        self.received.store(count, Release);
        if self.outstanding < u64::MAX && count.is_multiple_of((self.outstanding / 4).max(1)) {
            fence(SeqCst);
            if self.waits.load(Relaxed) {
                self.waits.store(false, Relaxed);
                if let Some(waker) = lock(&self.sender).take() {
                    waker.wake();
                }
            }
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Sends the requests of a stream, as fast as the library accepts them or by a schedule.
pub(crate) struct Sender<S> {
    source: S,
    messages: Arc<Messages>,
    /// Last start of a batch.
    ends_ns: u64,
    times: Option<SendTimes>,
    /// Whether the time between batches is recorded.
    is_paced: bool,
    sent: u64,
    /// Requests that may still be added to the batch.
    left: u64,
    batch_ns: u64,
    /// Requests of the batch not counted yet.
    traffic: Traffic,
    /// All requests of the batch.
    count: u64,
}

impl<S: Source> Sender<S> {
    /// Creates a sender. `is_paced` is set if no response shows the duration of requests.
    pub(crate) fn new(
        source: S,
        messages: &Arc<Messages>,
        ends_ns: u64,
        times: Option<SendTimes>,
        is_paced: bool,
    ) -> Self {
        let (messages, traffic) = (messages.clone(), Traffic::default());
        Self { source, messages, ends_ns, times, is_paced, sent: 0, left: 0, batch_ns: 0, traffic, count: 0 }
    }

    /// Returns the requests, sent by reference.
    pub(crate) fn in_place(mut self) -> outbound::Requests<S::Request> {
        outbound::Requests::new(move |cx, pack| {
            while ready!(self.poll_due(cx)) {
                let Some(request) = self.next() else { break };
                if !pack.push(request) {
                    // Requests sent later have another time.
                    self.end_batch();
                    return Poll::Pending;
                }
            }
            Poll::Ready(())
        })
    }

    /// Waits until another request is due. Returns false when there are no more.
    #[inline]
    fn poll_due(&mut self, cx: &mut Context<'_>) -> Poll<bool> {
        let is_full = self.traffic.bytes_sent >= BATCH_BYTES;
        if self.left > 0 && !is_full && self.messages.has_room(self.sent) {
            return Poll::Ready(true);
        }
        self.poll_batch(cx)
    }

    fn poll_batch(&mut self, cx: &mut Context<'_>) -> Poll<bool> {
        if self.messages.poll_room(self.sent, cx).is_pending() {
            self.end_batch();
            return Poll::Pending;
        }
        let due_ns = match &mut self.times {
            None => None,
            Some(times) => match times.poll(&self.messages, self.ends_ns, cx) {
                Poll::Ready(Some(due_ns)) => Some(due_ns),
                Poll::Ready(None) => return Poll::Ready(self.finish()),
                Poll::Pending => {
                    self.end_batch();
                    return Poll::Pending;
                }
            },
        };
        let now_ns = self.messages.counters.now_ns();
        self.messages.counters.progress.waits_since(now_ns);
        self.end_batch();
        self.count_batch(Some(now_ns));
        let wanted = if due_ns.is_some() { 1 } else { BATCH_MESSAGES_MAX };
        let is_over = now_ns >= self.ends_ns || self.messages.is_stopped();
        self.left = if is_over { 0 } else { self.messages.counters.take(now_ns, wanted) };
        if self.left == 0 {
            return Poll::Ready(self.finish());
        }
        self.batch_ns = now_ns;
        if let Some(pending) = &self.messages.pending {
            lock(pending).send(self.sent, due_ns.unwrap_or(now_ns));
        }
        Poll::Ready(true)
    }

    /// Takes the next request. Returns `None` if there is none.
    #[inline]
    fn next(&mut self) -> Option<&S::Request> {
        match self.source.next() {
            Some(Ok((request, bytes))) => {
                self.traffic += Traffic::sent(1, bytes);
                self.left -= 1;
                self.sent += 1;
                self.messages.sent.store(self.sent, Release);
                Some(request)
            }
            Some(Err(why)) => {
                // Only the first error matters, as it ends the stream.
                let _ = self.messages.fault.set(why);
                None
            }
            None => {
                self.messages.is_complete.store(true, Release);
                None
            }
        }
    }

    fn finish(&self) -> bool {
        self.messages.is_complete.store(true, Release);
        false
    }

    fn end_batch(&mut self) {
        self.messages.counters.give_back(self.batch_ns, std::mem::take(&mut self.left));
        self.count_batch(None);
    }

    /// Counts the sent part of the batch, and with `next_ns` the time until the next one.
    fn count_batch(&mut self, next_ns: Option<u64>) {
        let traffic = std::mem::take(&mut self.traffic);
        self.count += traffic.sent;
        let counted = &self.messages.counted;
        let timed = next_ns.filter(|next_ns| self.is_paced && self.count > 0 && counted.contains(next_ns));
        let timed =
            timed.map(|next_ns| TimedMessages { took_ns: next_ns - self.batch_ns, count: self.count });
        if next_ns.is_some() {
            self.count = 0;
        }
        let is_counted = counted.contains(&self.batch_ns);
        if is_counted && (traffic.sent > 0 || timed.is_some()) {
            self.messages.count_requests(traffic, timed);
        }
    }
}

/// Counts sent messages however the stream ends.
impl<S> Drop for Sender<S> {
    fn drop(&mut self) {
        if self.traffic.sent > 0 && self.messages.counted.contains(&self.batch_ns) {
            self.messages.count_requests(self.traffic, None);
        }
    }
}

/// Requests passed by value.
impl<S: Source> Stream for Sender<S> {
    type Item = S::Request;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<S::Request>> {
        let is_due = ready!(self.poll_due(cx));
        Poll::Ready(if is_due { self.next().cloned() } else { None })
    }
}

/// Send schedule of messages.
pub(crate) struct SendTimes {
    schedule: Schedule,
    next: u64,
    sleep: Pin<Box<Sleep>>,
    /// Whether the timer was awaited, and when it fired.
    waits: bool,
    woke_ns: u64,
}

impl SendTimes {
    pub(crate) fn new(schedule: Schedule) -> Self {
        let sleep = Box::pin(tokio::time::sleep(Duration::ZERO));
        Self { schedule, next: 0, sleep, waits: false, woke_ns: 0 }
    }

    /// Waits until the next message may be sent, and returns when it was due; `None` if there are no more.
    ///
    /// The runtime's timer is up to 1 ms late, and such a delay does not count: the message is due when the timer
    /// fired. A delay by the library, when the server does not read, counts from the scheduled time.
    fn poll(&mut self, messages: &Messages, ends_ns: u64, cx: &mut Context<'_>) -> Poll<Option<u64>> {
        let Some(due) = self.schedule.start_of(self.next as f64) else { return Poll::Ready(None) };
        let due_ns = messages.began_ns + Duration::from_secs_f64(due.min(1e9)).as_nanos() as u64;
        let wake_ns = due_ns.min(ends_ns);
        if messages.counters.now_ns() < wake_ns {
            if !self.waits {
                self.sleep.as_mut().reset((messages.counters.base + Duration::from_nanos(wake_ns)).into());
                self.waits = true;
            }
            ready!(self.sleep.as_mut().poll(cx));
        }
        if self.waits {
            self.waits = false;
            self.woke_ns = messages.counters.now_ns();
        }
        if ends_ns <= due_ns {
            return Poll::Ready(None);
        }
        self.next += 1;
        Poll::Ready(Some(self.woke_ns.max(due_ns)))
    }
}

/// Counts the responses of a stream.
pub(crate) struct Receiver<'m> {
    messages: &'m Messages,
    /// Whether responses come unsolicited. Then the time between batches is recorded, and their number may end the run.
    is_one_way: bool,
    /// Responses of the whole stream.
    pub(crate) total: u64,
    /// Responses of a one-way stream that may still be counted, and when they were reserved.
    left: u64,
    taken_ns: u64,
    batch_ns: u64,
    batch: Batch,
}

impl<'m> Receiver<'m> {
    /// Creates a receiver. `is_one_way` is set if responses come unsolicited.
    pub(crate) fn new(messages: &'m Messages, is_one_way: bool) -> Self {
        Self { messages, is_one_way, total: 0, left: 0, taken_ns: 0, batch_ns: 0, batch: Batch::default() }
    }

    /// Returns whether another response is wanted.
    #[inline]
    pub(crate) fn wants_more(&mut self) -> bool {
        if !self.is_one_way || self.left > 0 {
            return true;
        }
        let counters = &self.messages.counters;
        if counters.is_limited() {
            // Responses reserved in the warm-up are counted separately.
            self.count();
            self.taken_ns = counters.now_ns();
            self.left = counters.take(self.taken_ns, BATCH_MESSAGES_MAX);
        } else {
            self.left = BATCH_MESSAGES_MAX;
        }
        self.left > 0 && !self.messages.is_stopped()
    }

    /// Adds a response of `bytes` bytes to the batch.
    #[inline]
    pub(crate) fn push(&mut self, bytes: u64) {
        if self.batch.traffic.received == 0 {
            self.begin_batch();
        }
        self.batch.traffic.received += 1;
        self.batch.traffic.bytes_received += bytes;
        self.total += 1;
        self.left = self.left.saturating_sub(1);
        self.messages.on_received(self.total);
        let Traffic { received, bytes_received, .. } = self.batch.traffic;
        if received == BATCH_MESSAGES_MAX || bytes_received >= BATCH_BYTES {
            self.count();
        }
    }

    fn begin_batch(&mut self) {
        let counters = &self.messages.counters;
        let now_ns = counters.now_ns();
        counters.progress.waits_since(now_ns);
        if self.total == 0 {
            self.batch.first_ns = Some(now_ns - self.messages.began_ns);
        }
        if self.is_one_way && self.total > 0 {
            let count = std::mem::take(&mut self.batch.before);
            self.batch.timed = Some(TimedMessages { took_ns: now_ns - self.batch_ns, count });
        }
        self.batch_ns = now_ns;
    }

    pub(crate) fn count(&mut self) {
        let Self { messages, is_one_way, total, taken_ns, batch, batch_ns, .. } = self;
        if batch.traffic.received == 0 {
            return;
        }
        batch.before += batch.traffic.received;
        if let Some(pending) = &messages.pending {
            // A server may send more responses than requested.
            lock(pending).record_responses((*total).min(messages.sent()), *batch_ns, &mut batch.replies);
        }
        let mut is_counted = messages.counted.contains(batch_ns);
        if messages.counters.is_limited() {
            // If a number ends the run, messages reserved in the warm-up do not count.
            let from_ns = messages.counters.from_ns;
            is_counted &= !*is_one_way || *taken_ns >= from_ns;
            if messages.pending.is_some() {
                batch.replies.retain(|replies| *batch_ns - replies.took_ns >= from_ns);
                batch.keep(batch.replies.iter().map(|replies| replies.count).sum());
            }
        }
        if is_counted {
            messages.counters.shards.own().count_responses(batch, *batch_ns);
        }
        (batch.traffic, batch.first_ns, batch.timed) = (Traffic::default(), None, None);
        batch.replies.clear();
    }
}

/// Counts received messages however the stream ends.
impl Drop for Receiver<'_> {
    fn drop(&mut self) {
        self.count();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU32;
    use std::task::Wake;

    use thalweg::Raw;
    use thalweg::bytes::Bytes;

    use super::*;
    use crate::tally::{Shards, Tally};

    #[derive(Default)]
    struct Woken(AtomicU32);

    impl Wake for Woken {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Relaxed);
        }
    }

    /// A number of equal messages.
    struct Limited(u64, Raw);

    impl Source for Limited {
        type Request = Raw;

        fn next(&mut self) -> Option<Result<(&Raw, u64), String>> {
            self.0 = self.0.checked_sub(1)?;
            Some(Ok((&self.1, self.1.0.len() as u64)))
        }
    }

    fn counters(messages_left: Option<u64>) -> Arc<WorkerCounters> {
        Arc::new(WorkerCounters {
            shards: Arc::new(Shards::new(1, 1, false, true)),
            base: Instant::now(),
            from_ns: 0,
            messages_left: messages_left.map(|left| Arc::new(AtomicU64::new(left))),
            stopped: Arc::default(),
            progress: Arc::default(),
            by_server: None,
        })
    }

    fn messages(counters: &Arc<WorkerCounters>, outstanding: Option<u64>) -> Arc<Messages> {
        let rules = Rules { is_paired: true, outstanding, ..Rules::default() };
        Arc::new(Messages::new(counters, &(0..u64::MAX), rules))
    }

    fn sender(count: u64, bytes: usize, messages: &Arc<Messages>) -> Sender<Limited> {
        Sender::new(Limited(count, Raw(Bytes::from(vec![0; bytes]))), messages, u64::MAX, None, true)
    }

    /// Polls until pending or at the end, and returns the number of messages.
    fn polled(sender: &mut Sender<Limited>, cx: &mut Context<'_>) -> u64 {
        let mut count = 0;
        while let Poll::Ready(Some(_)) = Pin::new(&mut *sender).poll_next(cx) {
            count += 1;
        }
        count
    }

    fn tally(counters: &WorkerCounters) -> Tally {
        counters.shards.merged().tally
    }

    #[test]
    fn requests_wait_at_outstanding_limit() {
        let counters = counters(None);
        let woken = Arc::new(Woken::default());
        let waker = Waker::from(woken.clone());
        let cx = &mut Context::from_waker(&waker);
        for (outstanding, enough) in [(1, 1), (8, 2)] {
            let messages = messages(&counters, Some(outstanding));
            let mut sender = sender(u64::MAX, 1, &messages);
            let mut receiver = Receiver::new(&messages, false);
            assert_eq!(polled(&mut sender, cx), outstanding);
            let before = woken.0.load(Relaxed);
            (1..enough).for_each(|_| receiver.push(1));
            assert_eq!(woken.0.load(Relaxed), before, "woken too early, of {outstanding}");
            receiver.push(1);
            assert_eq!(woken.0.load(Relaxed), before + 1, "of {outstanding}");
            assert_eq!(polled(&mut sender, cx), enough);
        }
        let unlimited = messages(&counters, None);
        assert_eq!(polled(&mut sender(10_000, 1, &unlimited), cx), 10_000);
        assert!(unlimited.is_complete());
    }

    #[test]
    fn every_message_is_counted_and_every_reply_timed() {
        let cx = &mut Context::from_waker(Waker::noop());
        for (count, bytes) in [(1, 0), (15, 1), (16, 1), (100, 7), (5, 20_000)] {
            let counters = counters(None);
            let messages = messages(&counters, None);
            let mut sender = sender(count, bytes, &messages);
            assert_eq!(polled(&mut sender, cx), count);
            let mut receiver = Receiver::new(&messages, false);
            // One more than requested: it counts as traffic, but not as a reply.
            (0..=count).for_each(|_| receiver.push(3));
            drop((sender, receiver));
            let tally = tally(&counters);
            let traffic = Traffic {
                sent: count,
                bytes_sent: count * bytes as u64,
                received: count + 1,
                bytes_received: 3 * (count + 1),
            };
            assert_eq!(tally.traffic, traffic);
            assert_eq!((tally.replies.len(), tally.first.len()), (count, 1));
            // The last batch may have no successor, and so no pace.
            let paced = tally.paced.messages;
            assert!(paced <= count && count - paced < BATCH_MESSAGES_MAX, "{paced} of {count}");
        }
    }

    #[test]
    fn message_limit_is_shared_by_all_streams() {
        let cx = &mut Context::from_waker(Waker::noop());
        let counters = counters(Some(50));
        let streams = [messages(&counters, Some(4)), messages(&counters, None)];
        let mut first = sender(u64::MAX, 1, &streams[0]);
        assert_eq!(polled(&mut first, cx), 4);
        assert_eq!(polled(&mut sender(u64::MAX, 1, &streams[1]), cx), 46, "what is not used is given back");
        assert!(streams[1].is_complete() && !streams[0].is_complete());
        let mut receiver = Receiver::new(&streams[0], false);
        (0..4).for_each(|_| receiver.push(1));
        assert_eq!(polled(&mut first, cx), 0);
        assert!(streams[0].is_complete());
        drop(first);
        assert_eq!(tally(&counters).traffic.sent, 50);
    }

    #[test]
    fn requests_count_once_stream_has_response() {
        let cx = &mut Context::from_waker(Waker::noop());
        let counters = counters(None);
        let rules = Rules { counts_at_response: true, ..Rules::default() };
        let messages = Arc::new(Messages::new(&counters, &(0..u64::MAX), rules));
        let mut sender = sender(40, 1, &messages);
        assert_eq!(polled(&mut sender, cx), 40);
        drop(sender);
        assert_eq!(tally(&counters).traffic, Traffic::default());
        messages.count_deferred();
        let tally = tally(&counters);
        assert_eq!((tally.traffic, tally.paced.messages), (Traffic::sent(40, 40), 32));
    }
}
