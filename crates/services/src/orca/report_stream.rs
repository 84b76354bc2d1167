//! Stream of reports for a client: [`ReportStream`].

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use thalweg::server::ServerHandle;
use thalweg::{Status, Stream};
use tokio::time::{Interval, MissedTickBehavior, interval};

use super::measurements::SharedMeasurements;
use super::pb::OrcaLoadReport;

/// Yields a report immediately and then at an interval. Ends when the server drains.
pub(super) struct ReportStream {
    metrics: SharedMeasurements,
    interval: Interval,
    /// `None` once the stream has ended.
    draining: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
}

impl ReportStream {
    /// `period` must be positive.
    pub(super) fn new(metrics: SharedMeasurements, period: Duration, server: ServerHandle) -> Self {
        let mut interval = interval(period);
        // A client that reads slowly gets no reports in a row.
        interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Self { metrics, interval, draining: Some(Box::pin(async move { server.draining().await })) }
    }
}

impl Stream for ReportStream {
    type Item = Result<OrcaLoadReport, Status>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let Some(draining) = &mut self.draining else { return Poll::Ready(None) };
        if draining.as_mut().poll(cx).is_ready() {
            self.draining = None;
            return Poll::Ready(Some(Err(Status::unavailable("the server is shutting down"))));
        }
        ready!(self.interval.poll_tick(cx));
        Poll::Ready(Some(Ok(self.metrics.get().into_report())))
    }
}

impl fmt::Debug for ReportStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReportStream").field("interval", &self.interval).finish_non_exhaustive()
    }
}
