//! Stream of statuses for a watcher.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};

use thalweg::{Status, Stream};
use tokio::sync::watch;

use super::pb::HealthCheckResponse;
use super::pb::health_check_response::ServingStatus as WireStatus;
use super::server_statuses::{ServerStatuses, response};
use super::statuses::Statuses;

/// Yields the status of one service immediately and after each change; SERVICE_UNKNOWN if there is none. Ends when the
/// server drains.
pub(super) struct StatusStream {
    statuses: ServerStatuses,
    service: String,
    /// Last status sent to the watcher.
    reported: Option<WireStatus>,
    changed: Pin<Box<dyn Future<Output = watch::Receiver<Statuses>> + Send>>,
    /// `None` when the server drains.
    draining: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
    has_ended: bool,
}

impl StatusStream {
    pub(super) fn new(statuses: ServerStatuses, service: String) -> Self {
        let server = statuses.server().clone();
        Self {
            changed: Box::pin(wait_for_change(statuses.subscribe())),
            draining: Some(Box::pin(async move { server.draining().await })),
            statuses,
            service,
            reported: None,
            has_ended: false,
        }
    }

    fn is_draining(&mut self, cx: &mut Context<'_>) -> bool {
        if let Some(draining) = &mut self.draining
            && draining.as_mut().poll(cx).is_ready()
        {
            self.draining = None;
        }
        self.draining.is_none()
    }
}

/// Waits for a change and returns the receiver.
async fn wait_for_change(mut statuses: watch::Receiver<Statuses>) -> watch::Receiver<Statuses> {
    // Does not fail: the watching service holds the sender.
    let _ = statuses.changed().await;
    statuses
}

impl Stream for StatusStream {
    type Item = Result<HealthCheckResponse, Status>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if self.has_ended {
            return Poll::Ready(None);
        }
        loop {
            let is_draining = self.is_draining(cx);
            // Read after subscribing, so that no change is missed.
            let status = self.statuses.status(&self.service).unwrap_or(WireStatus::ServiceUnknown);
            if self.reported != Some(status) {
                self.reported = Some(status);
                return Poll::Ready(Some(Ok(response(status))));
            }
            if is_draining {
                self.has_ended = true;
                return Poll::Ready(Some(Err(Status::unavailable("the server is shutting down"))));
            }
            match self.changed.as_mut().poll(cx) {
                Poll::Ready(statuses) => self.changed = Box::pin(wait_for_change(statuses)),
                Poll::Pending => return Poll::Pending,
            }
        }
    }
}

impl fmt::Debug for StatusStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StatusStream")
            .field("service", &self.service)
            .field("reported", &self.reported)
            .finish_non_exhaustive()
    }
}
