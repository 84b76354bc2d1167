//! Sequential retries of one call (gRFC A6).

use std::fmt;
use std::time::Instant;

use thalweg_core::Code;

use super::attempt::{Outcome, Pushback, RetryPolicy, TransparentRetries};
use super::throttle::Throttle;
use crate::backoff::Backoff;

/// The retries of one call, with or without a policy: one attempt is under way at a time.
///
/// ```text
///   attempt ──on_outcome──► Restart ──► the same attempt, at once
///           ──on_outcome──► Retry { at } ──► the next attempt
///           ──on_outcome──► Stop: the call ends with this outcome
///   commit: from now on each outcome is the call's
/// ```
#[derive(Clone, Debug)]
pub struct RetryState {
    policy: Option<RetryPolicy>,
    deadline: Option<Instant>,
    previous_attempts: u32,
    /// Retries by backoff since the start of the call or the last pushback.
    backoffs: u32,
    transparent: TransparentRetries,
    is_committed: bool,
    stop_reason: Option<StopReason>,
}

/// Why a failure that the policy retries got no other attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum StopReason {
    /// The policy's attempts are used up: this many.
    AllFailed(u32),
    /// The channel's [`Throttle`].
    Throttled,
    /// The server's pushback.
    PushedBack,
    /// The next attempt would start at the deadline or later.
    TooLate,
}

/// Result of [`RetryState::on_outcome`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RetryDecision {
    /// A transparent retry: the attempt starts again at once.
    Restart,
    /// The next attempt starts then.
    Retry {
        /// Before the call's deadline.
        at: Instant,
    },
    /// The call ends with the outcome of this attempt.
    Stop,
}

impl RetryState {
    /// Creates the state of a call whose first attempt starts. Without a policy there are only transparent retries.
    pub fn new(policy: Option<RetryPolicy>, deadline: Option<Instant>) -> Self {
        let transparent = TransparentRetries::default();
        Self {
            policy,
            deadline,
            previous_attempts: 0,
            backoffs: 0,
            transparent,
            is_committed: false,
            stop_reason: None,
        }
    }

    /// Decides after an attempt has ended, and counts its outcome in the channel's throttle. `random_unit` is uniform
    /// in 0..1.
    ///
    /// A retry that would start at the deadline or later is not made: the call fails at once, with the outcome of the
    /// attempt rather than with DEADLINE_EXCEEDED.
    pub fn on_outcome(
        &mut self,
        outcome: &Outcome,
        throttle: &Throttle,
        random_unit: f64,
        now: Instant,
    ) -> RetryDecision {
        let Outcome { code, pushback, progress } = *outcome;
        if code == Code::Ok {
            throttle.on_success();
            return RetryDecision::Stop;
        }
        let deadline = self.deadline;
        let is_in_time = |at: &Instant| deadline.is_none_or(|deadline| *at < deadline);
        if !self.is_committed && is_in_time(&now) && self.transparent.allow(progress) {
            return RetryDecision::Restart;
        }
        let is_retryable = self.policy.as_ref().is_some_and(|policy| policy.retryable_codes.contains(code));
        // Failures count even if there is no retry for other reasons.
        let counts = is_retryable || pushback == Pushback::Stop;
        let is_throttled = counts && !throttle.on_failure();
        if !is_retryable || self.is_committed {
            return RetryDecision::Stop;
        }
        if !self.has_attempts_left() {
            return self.stop(StopReason::AllFailed(self.previous_attempts + 1));
        }
        if is_throttled {
            return self.stop(StopReason::Throttled);
        }
        let delay = match (pushback, &self.policy) {
            (Pushback::After(delay), _) => {
                self.backoffs = 0;
                delay
            }
            (Pushback::None, Some(policy)) => {
                self.backoffs += 1;
                policy.delay(self.backoffs, random_unit)
            }
            (Pushback::Stop, _) | (_, None) => return self.stop(StopReason::PushedBack),
        };
        let Some(at) = now.checked_add(delay).filter(is_in_time) else {
            return self.stop(StopReason::TooLate);
        };
        self.previous_attempts += 1;
        RetryDecision::Retry { at }
    }

    fn stop(&mut self, reason: StopReason) -> RetryDecision {
        self.stop_reason = Some(reason);
        RetryDecision::Stop
    }

    /// Returns why the last outcome was not retried, if the policy retries such failures and the call was not
    /// committed.
    pub fn stop_reason(&self) -> Option<StopReason> {
        self.stop_reason
    }

    /// Commits the call to the current attempt, or to the next one if none is under way: there are no retries after it.
    ///
    /// A call commits when response headers arrive, or when a message exceeds the limits of the replay buffer. The
    /// headers of a trailers-only response do not commit it.
    pub fn commit(&mut self) {
        self.is_committed = true;
    }

    /// Returns whether a message must be kept after it was sent. Once it need not, it never will again.
    ///
    /// An [unsent](super::Progress::Unsent) attempt needs nothing: none of its messages were sent.
    pub fn needs_replay(&self) -> bool {
        self.has_attempts_left() || !(self.is_committed || self.transparent.is_reached)
    }

    /// Returns the value of the request header `grpc-previous-rpc-attempts`; 0 stands for no header. Transparent
    /// retries do not count.
    pub fn previous_attempts(&self) -> u32 {
        self.previous_attempts
    }

    /// Returns the number of transparent retries (gRFC A45).
    pub fn transparent_retries(&self) -> u32 {
        self.transparent.count
    }

    fn has_attempts_left(&self) -> bool {
        let max = self.policy.as_ref().map_or(1, |policy| policy.max_attempts);
        !self.is_committed && max > self.previous_attempts + 1
    }
}

impl fmt::Display for StopReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AllFailed(attempts) => write!(f, "all {attempts} attempts of the retry policy failed"),
            Self::Throttled => {
                f.write_str("not retried: too many calls of the channel fail (retryThrottling)")
            }
            Self::PushedBack => f.write_str("not retried: the server asked not to (grpc-retry-pushback-ms)"),
            Self::TooLate => f.write_str("not retried: the backoff would pass the deadline"),
        }
    }
}

impl RetryPolicy {
    fn delay(&self, retry: u32, random_unit: f64) -> std::time::Duration {
        let backoff = Backoff::default().base_delay(self.initial_backoff).max_delay(self.max_backoff);
        backoff.multiplier(self.backoff_multiplier).delay(retry, random_unit)
    }
}

#[cfg(test)]
mod tests;
