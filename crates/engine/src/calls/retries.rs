//! Retries of one call (gRFC A6): by the method's policy, and transparent ones.

use http::HeaderMap;
use thalweg_balance::retry::{Outcome, Progress, Pushback, RetryDecision, RetryState};
use thalweg_balance::service_config::AttemptPolicy;
use tokio::time::{Instant, sleep_until};

use super::prepared::{Prepared, RequestFields};
use crate::channel::Channel;
use crate::options::CallOptions;
use crate::random::random_unit;
use crate::status::Status;

/// The retries of one call. Calls that succeed at once never create their state.
pub(super) struct Retries<'a> {
    channel: &'a Channel,
    call: &'a Prepared,
    options: &'a CallOptions,
    state: Option<Box<State>>,
}

struct State {
    decisions: RetryState,
    /// Request headers of the next attempt, if they differ from the first attempt's.
    fields: Option<RequestFields>,
}

impl<'a> Retries<'a> {
    pub(super) fn new(channel: &'a Channel, call: &'a Prepared, options: &'a CallOptions) -> Self {
        Self { channel, call, options, state: None }
    }

    /// Returns whether the call has a retry policy.
    pub(super) fn has_policy(&self) -> bool {
        matches!(self.options.attempts, Some(AttemptPolicy::Retry(_)))
    }

    /// Returns the request headers of the next attempt.
    #[inline]
    pub(super) fn fields(&self) -> &RequestFields {
        let changed = self.state.as_ref().and_then(|state| state.fields.as_ref());
        changed.unwrap_or(&self.call.fields)
    }

    /// Notes that the call has ended with OK.
    #[inline]
    pub(super) fn note_success(&self) {
        self.channel.note_success();
    }

    /// Returns whether messages must be kept after they were sent.
    pub(super) fn needs_replay(&self) -> bool {
        self.state.as_ref().is_none_or(|state| state.decisions.needs_replay())
    }

    /// Notes that an attempt has failed. Waits until the next one may start. Returns the number of message bytes that
    /// the failed attempt had sent.
    ///
    /// # Errors
    /// Returns `status` if the call is not retried.
    #[cold]
    pub(super) async fn next_attempt(
        &mut self,
        status: Status,
        progress: Progress,
        is_committed: bool,
    ) -> Result<usize, Status> {
        let outcome = Outcome::new(status.code()).progress(progress).pushback(pushback(status.metadata()));
        let deadline = self.call.deadline.map(Instant::into_std);
        let state = self.state.get_or_insert_with(|| {
            let policy = match &self.options.attempts {
                Some(AttemptPolicy::Retry(policy)) => Some(policy.clone()),
                Some(AttemptPolicy::Hedging(_)) | None => None,
            };
            Box::new(State { decisions: RetryState::new(policy, deadline), fields: None })
        });
        if is_committed {
            state.decisions.commit();
        }
        let throttle = self.channel.throttle();
        let now = Instant::now().into_std();
        let decision = state.decisions.on_outcome(&outcome, throttle, random_unit(), now);
        if decision == RetryDecision::Stop {
            return Err(status);
        }
        let sent = self.call.measure.end_attempt(&status);
        if let RetryDecision::Retry { at } = decision {
            sleep_until(Instant::from_std(at)).await;
        }
        let previous = state.decisions.previous_attempts();
        self.call.progress.note_attempt();
        self.call.measure.start_attempt(previous, decision == RetryDecision::Restart);
        state.fields = self.call.fields_of_retry(previous);
        Ok(sent)
    }
}

/// Returns the server's pushback in the trailers of a failed call.
pub(super) fn pushback(trailers: &HeaderMap) -> Pushback {
    Pushback::parse(trailers.get_all(Pushback::TRAILER).iter().map(http::HeaderValue::as_bytes))
}
