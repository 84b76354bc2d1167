//! Hedging (gRFC A6): several attempts at a call with one message at the same time; the first response wins.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use thalweg_balance::retry::{self, HedgingDecision, HedgingPolicy, HedgingState, HedgingStep, Progress};
use tokio::time::{Instant, sleep_until};

use super::attempts::Attempts;
use super::prepared::{Prepared, RequestFields};
use super::retries::{Retries, pushback};
use super::unary_attempt::{Attempt, AwaitedResponse, Outcome, UnaryAttempt};
use crate::chain::Chain;
use crate::channel::Channel;
use crate::encode::Encode;
use crate::options::CallOptions;
use crate::status::Status;

/// The parts of a call that its attempts share.
struct Hedged<'a, M, R> {
    channel: &'a Channel,
    call: &'a Prepared,
    message: HedgedMessage<'a, M>,
    options: &'a CallOptions,
    awaited: R,
}

/// The message of a hedged call. A type of its own, so that the attempts of ordinary calls have one caller and are
/// inlined there: 170 instructions of a unary call.
struct HedgedMessage<'a, M>(&'a M);

impl<M: Encode> Encode for HedgedMessage<'_, M> {
    const IS_FRAMED: bool = M::IS_FRAMED;

    fn encoded_len(&self) -> usize {
        self.0.encoded_len()
    }

    fn encode(&self, out: &mut Vec<u8>) {
        self.0.encode(out);
    }

    fn encode_chained(&self, out: &mut Chain) {
        self.0.encode_chained(out);
    }

    fn may_be_compressed(&self) -> bool {
        self.0.may_be_compressed()
    }

    fn note_encoded(&self, outcome: Result<usize, &Status>) {
        self.0.note_encoded(outcome);
    }
}

/// One of the attempts at a call, which may start several times.
#[derive(Default)]
struct HedgedAttempt {
    /// `None` for the call's first attempt, which has the call's own.
    prepared: Option<Box<Prepared>>,
    /// Its request headers, if they have changed.
    fields: Option<RequestFields>,
    /// Number of connections that did not accept it so far, which limits its transparent retries.
    lanes_gone: u32,
}

/// How an attempt ended.
enum Ended<S> {
    Response(Outcome<S>),
    /// `response` has the failure if the caller takes failed responses.
    Failed {
        status: Status,
        progress: Progress,
        response: Option<Outcome<S>>,
    },
    /// The call cannot be sent.
    Invalid(Status),
}

/// Makes attempts at a call until one responds, or none is left. Dropping the others cancels them.
pub(super) async fn attempts<M: Encode, R: AwaitedResponse>(
    channel: &Channel,
    call: &Prepared,
    message: &M,
    options: &CallOptions,
    awaited: R,
    policy: &HedgingPolicy,
) -> Result<Outcome<R::Started>, Status> {
    let message = HedgedMessage(message);
    let hedged = Hedged { channel, call, message, options, awaited };
    let now = || Instant::now().into_std();
    let throttle = channel.throttle();
    let deadline = call.deadline.map(Instant::into_std);
    let mut state = HedgingState::new(policy.clone(), deadline, now());
    let mut running: Vec<(u32, Pin<Box<_>>)> = Vec::new();
    let mut last = Err(Status::internal("no attempt was started"));
    loop {
        let wake_at = match state.poll(throttle, now()) {
            HedgingStep::Start(number) => {
                let prepared = (number > 0).then(|| {
                    call.progress.note_attempt();
                    Box::new(call.hedge(number))
                });
                let attempt = HedgedAttempt { prepared, ..HedgedAttempt::default() };
                running.push((number, Box::pin(hedged.run(attempt))));
                continue;
            }
            HedgingStep::WaitUntil(at) => Some(Instant::from_std(at)),
            HedgingStep::Idle => None,
            HedgingStep::Ended => return last,
        };
        let ended = poll_fn(|cx| poll_ended(&mut running, cx));
        let (number, (ended, mut attempt)) = match wake_at {
            None => ended.await,
            Some(at) => tokio::select! {
                biased;
                ended = ended => ended,
                () = sleep_until(at) => continue,
            },
        };
        let (outcome, result) = match ended {
            Ended::Invalid(status) => return Err(status),
            Ended::Response(response) => (retry::Outcome::new(crate::status::Code::Ok), Ok(response)),
            Ended::Failed { status, progress, response } => {
                let outcome = retry::Outcome::new(status.code()).progress(progress);
                (outcome.pushback(pushback(status.metadata())), response.ok_or(status))
            }
        };
        if let Some(own) = &attempt.prepared {
            call.note_hedge(own);
        }
        match state.on_outcome(number, &outcome, throttle, now()) {
            HedgingDecision::End { .. } => {
                if let Some(own) = &attempt.prepared {
                    call.measure.adopt(&own.measure);
                }
                return result;
            }
            HedgingDecision::Continue => {
                let status = Status::new(outcome.code, "");
                let status = result.as_ref().err().unwrap_or(&status);
                match &attempt.prepared {
                    Some(own) => own.measure.fail(status),
                    None => {
                        call.measure.end_attempt(status);
                    }
                }
                last = result;
            }
            HedgingDecision::Restart => {
                call.progress.note_attempt();
                let prepared = attempt.prepared.as_deref().unwrap_or(call);
                if let Err(status) = &result {
                    prepared.measure.end_attempt(status);
                }
                prepared.measure.start_attempt(number, true);
                attempt.fields = prepared.fields_of_restart(number);
                running.push((number, Box::pin(hedged.run(attempt))));
            }
        }
    }
}

impl<M: Encode, R: AwaitedResponse> Hedged<'_, M, R> {
    /// Makes one attempt.
    async fn run(&self, mut attempt: HedgedAttempt) -> (Ended<R::Started>, HedgedAttempt) {
        let prepared = attempt.prepared.as_deref().unwrap_or(self.call);
        let mut attempts = Attempts::new(self.channel, self.options, prepared);
        attempts.retries = Retries::with_fields(attempt.fields.take());
        attempts.lanes_gone = attempt.lanes_gone;
        let ended = self.send(&mut attempts).await;
        let lanes_gone = attempts.lanes_gone;
        drop(attempts);
        attempt.lanes_gone = lanes_gone;
        (ended, attempt)
    }

    async fn send(&self, attempts: &mut Attempts<'_>) -> Ended<R::Started> {
        let failed = |status, progress| Ended::Failed { status, progress, response: None };
        let mut large = None;
        loop {
            let connection = match attempts.next_connection().await {
                Ok(connection) => connection,
                Err(status) => return failed(status, Progress::Processed),
            };
            let Self { message, awaited, .. } = self;
            let attempt = UnaryAttempt::new(&connection, attempts, message, &mut large, *awaited).await;
            if let Some(peer) = &self.options.peer {
                peer.note(&connection.peer, connection.call_timeout());
            }
            return match attempt {
                Attempt::Done(Ok(arrived)) => match R::failure(&arrived) {
                    None => Ended::Response(Outcome::Done(arrived)),
                    Some(status) => Ended::Failed {
                        status,
                        progress: Progress::Processed,
                        response: Some(Outcome::Done(arrived)),
                    },
                },
                Attempt::Done(Err(status)) => Ended::Invalid(status),
                Attempt::Started(started) => {
                    Ended::Response(Outcome::Started(Arc::clone(&connection), started))
                }
                Attempt::NotOpened(refused) => match attempts.refused(&refused, &connection) {
                    Ok(()) => continue,
                    Err(status) => failed(status, Progress::Processed),
                },
                Attempt::Unprocessed(status) => failed(status, attempts.progress_of_unprocessed(&connection)),
                Attempt::Processed(status) | Attempt::Committed(status) => {
                    failed(status, Progress::Processed)
                }
            };
        }
    }
}

/// Polls the attempts in the order of their start, and removes the first that has ended.
fn poll_ended<F: Future>(
    running: &mut Vec<(u32, Pin<Box<F>>)>,
    cx: &mut Context<'_>,
) -> Poll<(u32, F::Output)> {
    for index in 0..running.len() {
        let (number, attempt) = &mut running[index];
        if let Poll::Ready(ended) = attempt.as_mut().poll(cx) {
            let number = *number;
            drop(running.remove(index));
            return Poll::Ready((number, ended));
        }
    }
    Poll::Pending
}
