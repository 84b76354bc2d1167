//! What stays the same over all attempts at a call.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use http::HeaderMap;
use thalweg_http2::{Block, FieldList, FixedFields};
use tokio::time::{Instant, timeout_at};

use crate::channel::Channel;
use crate::connection::Outgoing;
use crate::grpc::{metadata, request, timeout};
use crate::measure::CallMeasure;
use crate::method::Method;
use crate::options::CallOptions;
use crate::status::{Code, Status};

/// A call that may begin.
pub(super) struct Prepared {
    pub(super) fields: RequestFields,
    pub(super) outgoing: Outgoing,
    pub(super) deadline: Option<Instant>,
    pub(super) measure: CallMeasure,
    /// What the call waits for, as a number: the deadline's error says it.
    pub(super) waits_for: AtomicU8,
}

/// What a call waits for. Only those that wait before they are sent note it.
#[derive(Clone, Copy, Debug, PartialEq)]
#[repr(u8)]
pub(super) enum WaitsFor {
    Answer,
    Connection,
    FreeStream,
}

/// The head of a request: what all calls of the method share, and what is this call's own.
pub(super) struct RequestFields {
    fixed: Arc<FixedFields>,
    extra: FieldList,
}

impl RequestFields {
    pub(super) fn block(&self) -> Block<'_> {
        Block { fixed: Some(&self.fixed), extra: &self.extra }
    }
}

impl Prepared {
    #[inline]
    pub(super) fn new(
        channel: &Channel,
        method: &Method,
        metadata: &HeaderMap,
        options: &CallOptions,
    ) -> Result<Self, Status> {
        let timeout = timeout::from_metadata(metadata)?.or(options.timeout);
        let encoding = options.send_compressed.unwrap_or_default();
        let measure = channel.measure_call(method);
        let injected = measure.inject(metadata);
        let metadata = injected.as_deref().unwrap_or(metadata);
        let mut extra = FieldList::new();
        let emitted = request::emit(timeout, encoding, metadata, metadata::SENT_SIZE_MAX, &mut extra);
        emitted.map_err(Status::from).inspect_err(|status| measure.fail(status))?;
        let fixed = channel.request_head(method, options.accept_compressed);
        Ok(Self {
            fields: RequestFields { fixed, extra },
            outgoing: Outgoing::new(
                options.max_encoding_message_size,
                encoding,
                options.compression_threshold,
            ),
            deadline: timeout.and_then(|timeout| Instant::now().checked_add(timeout)),
            measure,
            waits_for: AtomicU8::new(WaitsFor::Answer as u8),
        })
    }

    /// The head of a retry, if it is another than that of the first attempt.
    pub(super) fn fields_again(&self) -> Option<Box<RequestFields>> {
        let injected = self.measure.inject_again()?;
        let timeout = self.deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        let mut extra = FieldList::new();
        let encoding = self.outgoing.encoding;
        // It fits as the first did: what was injected into that has the same length.
        request::emit(timeout, encoding, &injected, metadata::SENT_SIZE_MAX, &mut extra).ok()?;
        Some(Box::new(RequestFields { fixed: Arc::clone(&self.fields.fixed), extra }))
    }

    /// The deadline has passed before the call had ended.
    #[cold]
    pub(super) fn too_late(&self, channel: &Channel, method: &Method) -> Status {
        let (path, target) = (method.path(), channel.target());
        let waited_for = self.waits_for.load(Ordering::Relaxed);
        let what = if waited_for == WaitsFor::Connection as u8 {
            "there was no connection yet (is the server running?)"
        } else if waited_for == WaitsFor::FreeStream as u8 {
            "no stream was free yet: other calls have as many as the server allows"
        } else {
            "it was sent, and not answered in time"
        };
        let message = format!("the deadline of the call has passed: {path} at {target}: {what}");
        Status::new(Code::DeadlineExceeded, message)
    }
}

/// The outcome of `step`, unless the deadline passes first: then that of `too_late`.
pub(super) async fn within<T>(
    deadline: Option<Instant>,
    step: impl Future<Output = Result<T, Status>>,
    too_late: impl FnOnce() -> Status,
) -> Result<T, Status> {
    match deadline {
        None => step.await,
        Some(deadline) => match timeout_at(deadline, step).await {
            Ok(outcome) => outcome.map_err(|status| status.of_call_until(deadline)),
            Err(_) => Err(too_late()),
        },
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// What `within` makes of a step that takes so long and fails with `code`.
    async fn check(deadline: Duration, takes: Duration, code: Code, expected: Code) {
        let step = async {
            // The timer has no turn in between: it is the step that ends first.
            std::thread::sleep(takes);
            Err::<(), _>(Status::new(code, "reset"))
        };
        let outcome = within(Some(Instant::now() + deadline), step, Status::deadline_exceeded).await;
        assert_eq!(outcome.map_err(|status| status.code()), Err(expected));
    }

    #[tokio::test]
    async fn a_reset_behind_the_deadline_is_the_deadlines() {
        let (short, long) = (Duration::from_millis(1), Duration::from_secs(60));
        check(short, 5 * short, Code::Cancelled, Code::DeadlineExceeded).await;
        check(short, 5 * short, Code::Unavailable, Code::Unavailable).await;
        check(long, short, Code::Cancelled, Code::Cancelled).await;
    }
}
