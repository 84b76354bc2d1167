//! The requests of a call, sent at the times that the suite demands.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use thalweg::bytes::Bytes;
use thalweg::{Raw, Stream};
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Sleep, sleep};

/// Requests in order.
pub(crate) struct Requests {
    remaining: VecDeque<Raw>,
    /// Number of requests left, shared with `Progress`.
    unsent: Arc<AtomicUsize>,
    delay: Duration,
    sleep: Option<Pin<Box<Sleep>>>,
    /// In full duplex, a permit is needed for each request and for the end.
    permits: Option<mpsc::UnboundedReceiver<()>>,
    has_permit: bool,
    /// The call is to be cancelled instead of ending its requests.
    stays_open: bool,
    /// Notified when all requests are sent.
    all_sent: Option<oneshot::Sender<()>>,
}

/// Progress of the requests.
pub(crate) struct Progress {
    pub(crate) unsent: Arc<AtomicUsize>,
    pub(crate) all_sent: oneshot::Receiver<()>,
    /// In full duplex, lets the next request go.
    pub(crate) permits: Option<mpsc::UnboundedSender<()>>,
}

impl Requests {
    pub(crate) fn new(
        remaining: Vec<Raw>,
        delay: Duration,
        is_full_duplex: bool,
        stays_open: bool,
    ) -> (Requests, Progress) {
        let (all_sent, is_all_sent) = oneshot::channel();
        let (permit_sender, permits) = mpsc::unbounded_channel();
        let unsent = Arc::new(AtomicUsize::new(remaining.len()));
        let progress = Progress {
            unsent: Arc::clone(&unsent),
            all_sent: is_all_sent,
            permits: is_full_duplex.then_some(permit_sender),
        };
        let requests = Requests {
            remaining: remaining.into(),
            unsent,
            delay,
            sleep: None,
            permits: is_full_duplex.then_some(permits),
            has_permit: false,
            stays_open,
            all_sent: Some(all_sent),
        };
        (requests, progress)
    }

    /// Returns the request of a call with exactly one.
    pub(crate) fn only(mut self) -> Raw {
        self.unsent.store(0, Ordering::Relaxed);
        self.remaining.pop_front().unwrap_or(Raw(Bytes::new()))
    }
}

impl Stream for Requests {
    type Item = Raw;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Raw>> {
        let this = self.get_mut();
        if let Some(permits) = &mut this.permits
            && !this.has_permit
        {
            // Once the sender of permits is dropped, the remaining requests need none.
            ready!(permits.poll_recv(cx));
            this.has_permit = true;
        }
        if this.remaining.is_empty() {
            if let Some(all_sent) = this.all_sent.take() {
                let _ = all_sent.send(());
            }
            return if this.stays_open { Poll::Pending } else { Poll::Ready(None) };
        }
        if !this.delay.is_zero() {
            let delay = this.delay;
            ready!(this.sleep.get_or_insert_with(|| Box::pin(sleep(delay))).as_mut().poll(cx));
            this.sleep = None;
        }
        this.has_permit = false;
        let next = this.remaining.pop_front();
        this.unsent.store(this.remaining.len(), Ordering::Relaxed);
        Poll::Ready(next)
    }
}
