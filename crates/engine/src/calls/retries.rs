//! Retries of one call (gRFC A6): by the method's policy, and transparent ones.

use std::sync::Arc;

use http::HeaderMap;
use thalweg_balance::retry::{Outcome, Progress, Pushback, RetryDecision, RetryState};
use thalweg_balance::service_config::AttemptPolicy;
use tokio::time::{Instant, sleep_until};

use super::prepared::{Prepared, RequestFields};
use crate::channel::Channel;
use crate::connection::Connection;
use crate::endpoints::FurtherAttempt;
use crate::options::CallOptions;
use crate::random::random_unit;
use crate::status::Status;

/// The retries of one call. Calls that succeed at once never create their state.
#[derive(Default)]
pub(super) struct Retries(Option<Box<State>>);

struct State {
    decisions: RetryState,
    /// Request headers of the next attempt, if they differ from the first attempt's.
    fields: Option<RequestFields>,
}

/// An attempt that failed.
pub(super) struct FailedAttempt<'a> {
    pub(super) status: Status,
    /// Where it failed, if it was sent.
    pub(super) connection: Option<&'a Arc<Connection>>,
    pub(super) progress: Progress,
    /// Response headers had arrived.
    pub(super) is_committed: bool,
}

impl Retries {
    /// Creates the retries of a call whose next attempt has these request headers, or its own.
    pub(super) fn with_fields(fields: Option<RequestFields>) -> Self {
        let state = |fields| Box::new(State { decisions: RetryState::new(None, None), fields: Some(fields) });
        Self(fields.map(state))
    }

    /// Returns the request headers of the next attempt of `call`.
    #[inline]
    pub(super) fn fields<'a>(&'a self, call: &'a Prepared) -> &'a RequestFields {
        let changed = self.0.as_ref().and_then(|state| state.fields.as_ref());
        changed.unwrap_or(&call.fields)
    }

    /// Returns whether messages must be kept after they were sent.
    pub(super) fn needs_replay(&self) -> bool {
        self.0.as_ref().is_none_or(|state| state.decisions.needs_replay())
    }

    /// Notes that an attempt at `call` has failed. Waits until the next one may start. Returns the number of message
    /// bytes that the failed attempt had sent.
    ///
    /// # Errors
    /// Returns the status of the attempt if the call is not retried.
    #[cold]
    pub(super) async fn next_attempt(
        &mut self,
        channel: &Channel,
        call: &Prepared,
        options: &CallOptions,
        failed: FailedAttempt<'_>,
    ) -> Result<usize, Status> {
        let FailedAttempt { status, connection, progress, is_committed } = failed;
        let outcome =
            Outcome::new(status.code()).progress(progress).pushback(pushback(status.metadata().as_ref()));
        let deadline = call.deadline.map(Instant::into_std);
        let state = self.0.get_or_insert_with(|| {
            let policy = match &options.attempts {
                Some(AttemptPolicy::Retry(policy)) => Some(policy.clone()),
                Some(AttemptPolicy::Hedging(_)) | None => None,
            };
            Box::new(State { decisions: RetryState::new(policy, deadline), fields: None })
        });
        if is_committed {
            state.decisions.commit();
        }
        let now = Instant::now().into_std();
        let decision = state.decisions.on_outcome(&outcome, channel.throttle(), random_unit(), now);
        if decision == RetryDecision::Stop {
            let reason = state.decisions.stop_reason().filter(|_| status.is_local());
            return Err(status.with_detail(reason));
        }
        let sent = call.measure.end_attempt(&status);
        let is_transparent = decision == RetryDecision::Restart;
        let attempt = if is_transparent { FurtherAttempt::TransparentRetry } else { FurtherAttempt::Retry };
        channel.endpoints().attempt_counts().note(connection.map(|connection| &*connection.peer), attempt);
        if let RetryDecision::Retry { at } = decision {
            sleep_until(Instant::from_std(at)).await;
        }
        let previous = state.decisions.previous_attempts();
        call.progress.note_attempt();
        call.measure.start_attempt(previous, is_transparent);
        state.fields = call.fields_of_retry(previous);
        Ok(sent)
    }
}

/// Returns the server's pushback in the trailers of a failed call.
pub(super) fn pushback(trailers: &HeaderMap) -> Pushback {
    Pushback::parse(trailers.get_all(Pushback::TRAILER).iter().map(http::HeaderValue::as_bytes))
}
