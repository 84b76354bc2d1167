//! Hedging (gRFC A6): several attempts at a call at the same time; the first response wins.

use std::future::poll_fn;
use std::task::{Context, Poll};

use thalweg_balance::retry::{self, HedgingDecision, HedgingPolicy, HedgingState, HedgingStep, Progress};
use tokio::time::{Instant, sleep_until};

use super::prepared::{Prepared, RequestFields};
use super::retries::pushback;
use crate::channel::Channel;
use crate::connection::Connection;
use crate::endpoints::FurtherAttempt;
use crate::status::{Code, Status};

/// One of the attempts at a call, which may start several times.
#[derive(Default)]
pub(super) struct HedgedAttempt {
    /// `None` for the call's first attempt, which has the call's own.
    pub(super) prepared: Option<Box<Prepared>>,
    /// Its request headers, if they have changed.
    pub(super) fields: Option<RequestFields>,
    /// Number of connections that did not accept it so far, which limits its transparent retries.
    pub(super) lanes_gone: u32,
    /// It is a further attempt and counts when it is sent for the first time.
    pub(super) is_uncounted_hedge: bool,
}

impl HedgedAttempt {
    /// Counts the attempt at this connection, unless it is the first one or has been counted.
    pub(super) fn count(&mut self, channel: &Channel, connection: &Connection) {
        if std::mem::take(&mut self.is_uncounted_hedge) {
            channel.endpoints().attempt_counts().note(Some(&connection.peer), FurtherAttempt::Hedge);
        }
    }
}

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
/// `start` starts an attempt, and `poll` returns it at its end. `first_ended` is called with the bytes that the first
/// attempt had sent.
pub(super) async fn attempts<A, T>(
    channel: &Channel,
    call: &Prepared,
    policy: &HedgingPolicy,
    start: impl Fn(HedgedAttempt) -> A,
    mut poll: impl FnMut(&mut A, &mut Context<'_>) -> Poll<(Ended<T>, HedgedAttempt)>,
    first_ended: impl Fn(usize),
) -> Result<T, Status> {
    let now = || Instant::now().into_std();
    let throttle = channel.throttle();
    let deadline = call.deadline.map(Instant::into_std);
    let mut state = HedgingState::new(policy.clone(), deadline, now());
    let mut running: Vec<(u32, A)> = Vec::new();
    let mut last = Err(Status::local(Code::Internal, "no attempt was started"));
    loop {
        let wake_at = match state.poll(throttle, now()) {
            HedgingStep::Start(number) => {
                let is_uncounted_hedge = number > 0;
                let prepared = is_uncounted_hedge.then(|| {
                    call.progress.note_attempt();
                    Box::new(call.hedge(number))
                });
                let attempt = HedgedAttempt { prepared, is_uncounted_hedge, ..HedgedAttempt::default() };
                running.push((number, start(attempt)));
                continue;
            }
            HedgingStep::WaitUntil(at) => Some(Instant::from_std(at)),
            HedgingStep::Idle => None,
            HedgingStep::Ended => return last,
        };
        let ended = poll_fn(|cx| poll_ended(&mut running, &mut poll, cx));
        let (number, (ended, mut attempt)) = match wake_at {
            None => ended.await,
            Some(at) => tokio::select! {
                biased;
                ended = ended => ended,
                () = sleep_until(at) => continue,
            },
        };
        if let Some(own) = &attempt.prepared {
            call.note_hedge(own);
        }
        let adopt = |attempt: &HedgedAttempt| {
            if let Some(own) = &attempt.prepared {
                call.measure.adopt(&own.measure);
            }
        };
        let (status, progress, result) = match ended {
            Ended::Invalid(status) => return Err(status),
            Ended::Committed(response) => {
                adopt(&attempt);
                return Ok(response);
            }
            Ended::Response(response) => (Status::new(Code::Ok, ""), Progress::Processed, Ok(response)),
            Ended::Failed { status, progress, response } => {
                let result = response.ok_or_else(|| status.clone());
                (status, progress, result)
            }
        };
        let outcome = retry::Outcome::new(status.code()).progress(progress);
        let outcome = outcome.pushback(pushback(status.metadata().as_ref()));
        let decision = state.on_outcome(number, &outcome, throttle, now());
        match decision {
            HedgingDecision::End { .. } => {
                adopt(&attempt);
                return result;
            }
            HedgingDecision::Continue => {
                match &attempt.prepared {
                    Some(own) => own.measure.fail(&status),
                    None => first_ended(call.measure.end_attempt(&status)),
                }
                last = result;
            }
            HedgingDecision::Restart => {
                call.progress.note_attempt();
                let prepared = attempt.prepared.as_deref().unwrap_or(call);
                let sent = prepared.measure.end_attempt(&status);
                if attempt.prepared.is_none() {
                    first_ended(sent);
                }
                prepared.measure.start_attempt(number, true);
                attempt.fields = prepared.fields_of_restart(number);
                channel.endpoints().attempt_counts().note(None, FurtherAttempt::TransparentRetry);
                running.push((number, start(attempt)));
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
