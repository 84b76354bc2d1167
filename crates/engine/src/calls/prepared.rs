//! What stays the same over all attempts at a call.

use std::sync::Arc;

use http::HeaderMap;
use thalweg_http2::{Block, FieldList, FixedFields};
use tokio::time::{Instant, timeout_at};

use crate::channel::Channel;
use crate::connection::Outgoing;
use crate::grpc::{metadata, request, timeout};
use crate::measure::CallMeasure;
use crate::method::Method;
use crate::options::CallOptions;
use crate::status::Status;

/// A call that may begin.
pub(super) struct Prepared {
    pub(super) fields: RequestFields,
    pub(super) outgoing: Outgoing,
    pub(super) deadline: Option<Instant>,
    pub(super) measure: CallMeasure,
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
        let mut extra = FieldList::new();
        request::emit(timeout, encoding, metadata, metadata::SENT_SIZE_MAX, &mut extra)?;
        let fixed = channel.request_head(method, options.accept_compressed);
        Ok(Self {
            fields: RequestFields { fixed, extra },
            outgoing: Outgoing { message_size_max: options.max_encoding_message_size, encoding },
            deadline: timeout.and_then(|timeout| Instant::now().checked_add(timeout)),
            measure: channel.measure_call(method),
        })
    }
}

/// The outcome of `step`, unless the deadline passes first.
pub(super) async fn within<T>(
    deadline: Option<Instant>,
    step: impl Future<Output = Result<T, Status>>,
) -> Result<T, Status> {
    match deadline {
        None => step.await,
        Some(deadline) => match timeout_at(deadline, step).await {
            Ok(outcome) => outcome.map_err(|status| status.of_call_until(deadline)),
            Err(_) => Err(Status::deadline_exceeded()),
        },
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::status::Code;

    /// What `within` makes of a step that takes so long and fails with `code`.
    async fn check(deadline: Duration, takes: Duration, code: Code, expected: Code) {
        let step = async {
            // The timer has no turn in between: it is the step that ends first.
            std::thread::sleep(takes);
            Err::<(), _>(Status::new(code, "reset"))
        };
        let outcome = within(Some(Instant::now() + deadline), step).await;
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
