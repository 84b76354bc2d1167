//! Hedging (gRFC A6): several attempts at a call at the same time; the first response wins.

use std::future::poll_fn;
use std::task::{Context, Poll};

use thalweg_balance::retry::{self, HedgingDecision, HedgingPolicy, HedgingState, HedgingStep, Progress};
use tokio::time::{Instant, sleep_until};

use super::prepared::{Prepared, RequestFields};
use super::retries::pushback;
use crate::channel::Channel;
use crate::endpoints::FurtherAttempt;
use crate::status::{Code, Status};

/// The parts of a call that belong to one attempt; none for the first one, which has the call's.
pub(super) type OwnParts = Option<Box<Prepared>>;

/// How an attempt ended.
pub(super) enum Ended<T> {
    /// The response has arrived or started.
    Response(T),
    /// The call cannot have other attempts any more. The response is still to come.
    Committed(T),
    /// `response` has the failure if the caller takes failed responses.
    Failed { status: Status, progress: Progress, response: Option<T> },
    /// The call cannot be sent.
    Invalid(Status),
}

/// Makes attempts at a call until one responds, or none is left. Dropping the others cancels them.
///
/// `start` creates an attempt with its own parts, and its request headers if they have changed. `poll` returns the
/// parts at its end. `first_ended` is called with the bytes that the first attempt had sent.
pub(super) async fn attempts<A, T>(
    channel: &Channel,
    call: &Prepared,
    policy: &HedgingPolicy,
    start: impl Fn(OwnParts, Option<RequestFields>) -> A,
    mut poll: impl FnMut(&mut A, &mut Context<'_>) -> Poll<(Ended<T>, OwnParts)>,
    first_ended: impl Fn(usize),
) -> Result<T, Status> {
    let now = || Instant::now().into_std();
    let throttle = channel.throttle();
    let deadline = call.deadline.map(Instant::into_std);
    let mut state = HedgingState::new(policy.clone(), deadline, now());
    let mut running: Vec<(u32, A)> = Vec::new();
    let mut last = Err(Status::internal("no attempt was started"));
    loop {
        let wake_at = match state.poll(throttle, now()) {
            HedgingStep::Start(number) => {
                let own = (number > 0).then(|| {
                    call.progress.note_attempt();
                    Box::new(call.hedge(number))
                });
                running.push((number, start(own, None)));
                continue;
            }
            HedgingStep::WaitUntil(at) => Some(Instant::from_std(at)),
            HedgingStep::Idle => None,
            HedgingStep::Ended => return last,
        };
        let ended = poll_fn(|cx| poll_ended(&mut running, &mut poll, cx));
        let (number, (ended, own)) = match wake_at {
            None => ended.await,
            Some(at) => tokio::select! {
                biased;
                ended = ended => ended,
                () = sleep_until(at) => continue,
            },
        };
        if let Some(own) = &own {
            call.note_hedge(own);
        }
        let adopt = || {
            if let Some(own) = &own {
                call.measure.adopt(&own.measure);
            }
        };
        let (status, progress, result) = match ended {
            Ended::Invalid(status) => return Err(status),
            Ended::Committed(response) => {
                adopt();
                return Ok(response);
            }
            Ended::Response(response) => (Status::new(Code::Ok, ""), Progress::Processed, Ok(response)),
            Ended::Failed { status, progress, response } => {
                let result = response.ok_or_else(|| status.clone());
                (status, progress, result)
            }
        };
        let outcome = retry::Outcome::new(status.code()).progress(progress);
        let outcome = outcome.pushback(pushback(status.metadata()));
        let decision = state.on_outcome(number, &outcome, throttle, now());
        match decision {
            HedgingDecision::End { .. } => {
                adopt();
                return result;
            }
            HedgingDecision::Continue => {
                match &own {
                    Some(own) => own.measure.fail(&status),
                    None => first_ended(call.measure.end_attempt(&status)),
                }
                last = result;
            }
            HedgingDecision::Restart => {
                let attempt = own.as_deref().unwrap_or(call);
                let sent = attempt.measure.end_attempt(&Status::new(outcome.code, "not processed"));
                if own.is_none() {
                    first_ended(sent);
                }
                attempt.measure.start_attempt(number, true);
                let fields = attempt.fields_of_restart(number);
                channel.endpoints().attempt_counts().note(None, FurtherAttempt::TransparentRetry);
                running.push((number, start(own, fields)));
            }
        }
    }
}

/// Polls the attempts in the order of their start, and removes the first that has ended.
fn poll_ended<A, T>(
    running: &mut Vec<(u32, A)>,
    mut poll: impl FnMut(&mut A, &mut Context<'_>) -> Poll<T>,
    cx: &mut Context<'_>,
) -> Poll<(u32, T)> {
    for index in 0..running.len() {
        let (number, attempt) = &mut running[index];
        if let Poll::Ready(ended) = poll(attempt, cx) {
            let number = *number;
            drop(running.remove(index));
            return Poll::Ready((number, ended));
        }
    }
    Poll::Pending
}
