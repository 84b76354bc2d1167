//! Hedging of one call: several attempts at the same time, of which one gives the outcome (gRFC A6).

use std::time::Instant;

use thalweg_core::Code;

use super::attempt::{HedgingPolicy, Outcome, Pushback, TransparentRetries};
use super::throttle::Throttle;

/// The attempts of one hedged call.
///
/// ```text
///   poll ──► Start ──► attempt under way ──commit──► the others are cancelled
///     │ WaitUntil, Idle      │ on_outcome
///     │                      ├─ OK, a fatal code, or the last one ──► End
///     │                      ├─ not processed ──► Restart
///     └──────────────────────┴─ a non-fatal code ──► Continue
/// ```
///
/// The caller polls at the start, after each outcome, and at the time that the last poll returned.
#[derive(Clone, Debug)]
pub struct HedgingState {
    policy: HedgingPolicy,
    deadline: Option<Instant>,
    started: u32,
    under_way: Vec<u32>,
    /// Start of the next attempt; `None` is never.
    next_at: Option<Instant>,
    /// A server has asked for `next_at`.
    is_pushed_back: bool,
    /// There are no further attempts: by pushback, throttling, a commit, or the call's end.
    is_stopped: bool,
    is_committed: bool,
    transparent: TransparentRetries,
}

/// Result of [`HedgingState::poll`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HedgingStep {
    /// This attempt starts, numbered from 0, and the caller polls again. The number is also the value of its request
    /// header `grpc-previous-rpc-attempts`; 0 stands for no header.
    Start(u32),
    /// The next attempt starts then, unless an outcome comes first.
    WaitUntil(Instant),
    /// No attempt starts unless an outcome comes.
    Idle,
    /// No attempt is under way, and none will start: the call ends with the last outcome.
    Ended,
}

/// Result of [`HedgingState::on_outcome`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HedgingDecision {
    /// The outcome is not the call's.
    Continue,
    /// A transparent retry: the attempt starts again at once, with its number.
    Restart,
    /// The call ends with the outcome of this attempt.
    End {
        /// Attempts under way, to be cancelled.
        cancel: Vec<u32>,
    },
}

impl HedgingState {
    /// Creates the state of a call whose first attempt is to start `now`.
    pub fn new(policy: HedgingPolicy, deadline: Option<Instant>, now: Instant) -> Self {
        Self {
            policy,
            deadline,
            started: 0,
            under_way: Vec::new(),
            next_at: Some(now),
            is_pushed_back: false,
            is_stopped: false,
            is_committed: false,
            transparent: TransparentRetries::default(),
        }
    }

    /// Returns what happens next, unless an attempt ends before that.
    ///
    /// The first attempt starts in any case, a further one only if the channel's throttle allows it at that time. If
    /// it does not, the call makes no more attempts.
    pub fn poll(&mut self, throttle: &Throttle, now: Instant) -> HedgingStep {
        match self.next_start(now) {
            Some(at) if at > now => return HedgingStep::WaitUntil(at),
            Some(_) if self.started == 0 || throttle.allows_attempt() => return self.start(now),
            Some(_) => self.is_stopped = true,
            None => {}
        }
        if self.under_way.is_empty() { HedgingStep::Ended } else { HedgingStep::Idle }
    }

    /// Decides after an attempt has ended, and counts its outcome in the channel's throttle. The outcome of an attempt
    /// that was cancelled changes nothing.
    ///
    /// After a non-fatal code the next attempt starts at once, or after the delay that the server asks for. A failure
    /// without pushback does not shorten a delay that another server has asked for.
    pub fn on_outcome(
        &mut self,
        attempt: u32,
        outcome: &Outcome,
        throttle: &Throttle,
        now: Instant,
    ) -> HedgingDecision {
        let Outcome { code, pushback, progress } = *outcome;
        let Some(position) = self.under_way.iter().position(|&other| other == attempt) else {
            return HedgingDecision::Continue;
        };
        let is_in_time = self.deadline.is_none_or(|deadline| now < deadline);
        let may_restart = code != Code::Ok && !self.is_committed && is_in_time;
        if may_restart && self.transparent.allow(progress) {
            return HedgingDecision::Restart;
        }
        self.under_way.swap_remove(position);
        let is_non_fatal = code != Code::Ok && self.policy.non_fatal_codes.contains(code);
        if code == Code::Ok {
            throttle.on_success();
        } else if is_non_fatal || pushback == Pushback::Stop {
            self.is_stopped |= !throttle.on_failure();
        }
        match pushback {
            Pushback::After(delay) => (self.next_at, self.is_pushed_back) = (now.checked_add(delay), true),
            Pushback::Stop => self.is_stopped = true,
            Pushback::None if self.is_pushed_back => {}
            Pushback::None => self.next_at = Some(now),
        }
        let others_left = !self.under_way.is_empty() || self.next_start(now).is_some();
        if is_non_fatal && others_left {
            return HedgingDecision::Continue;
        }
        self.is_stopped = true;
        HedgingDecision::End { cancel: std::mem::take(&mut self.under_way) }
    }

    /// Commits the call to an attempt, and returns the others under way: they are to be cancelled. `None` if the call
    /// is committed to another attempt, or this one has ended.
    ///
    /// A call commits to the first attempt with response headers. The headers of a trailers-only response do not
    /// commit it. When a message exceeds the limits of the replay buffer, the call commits to the attempt that has
    /// sent the most. While none is under way such a message waits for the next attempt.
    pub fn commit(&mut self, attempt: u32) -> Option<Vec<u32>> {
        let position = self.under_way.iter().position(|&other| other == attempt)?;
        self.under_way.swap_remove(position);
        (self.is_committed, self.is_stopped) = (true, true);
        Some(std::mem::replace(&mut self.under_way, vec![attempt]))
    }

    /// Returns whether a message must be kept after all attempts under way have sent it. Once it need not, it never
    /// will again.
    pub fn needs_replay(&self) -> bool {
        self.has_attempts_left() || !(self.is_committed || self.transparent.is_reached)
    }

    /// Returns the number of transparent retries (gRFC A45).
    pub fn transparent_retries(&self) -> u32 {
        self.transparent.count
    }

    fn start(&mut self, now: Instant) -> HedgingStep {
        let attempt = self.started;
        self.started += 1;
        self.under_way.push(attempt);
        (self.next_at, self.is_pushed_back) = (now.checked_add(self.policy.hedging_delay), false);
        HedgingStep::Start(attempt)
    }

    /// Returns the start of the next attempt, if there may be one before the deadline.
    fn next_start(&self, now: Instant) -> Option<Instant> {
        let at = self.next_at.filter(|_| self.has_attempts_left())?;
        Some(at)
            .filter(|&at| self.started == 0 || self.deadline.is_none_or(|deadline| at.max(now) < deadline))
    }

    fn has_attempts_left(&self) -> bool {
        !self.is_stopped && self.started < self.policy.max_attempts.max(1)
    }
}

#[cfg(test)]
mod seeds;
#[cfg(test)]
mod tests;
