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
                let own = (number > 0).then(|| {
                    call.progress.note_attempt();
                    Box::new(call.hedge(number))
                });
                running.push((number, Box::pin(hedged.attempt(own, None))));
                continue;
            }
            HedgingStep::WaitUntil(at) => Some(Instant::from_std(at)),
            HedgingStep::Idle => None,
            HedgingStep::Ended => return last,
        };
        let ended = poll_fn(|cx| poll_ended(&mut running, cx));
        let (number, (ended, own)) = match wake_at {
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
        if let Some(own) = &own {
            call.note_hedge(own);
        }
        match state.on_outcome(number, &outcome, throttle, now()) {
            HedgingDecision::End { .. } => {
                if let Some(own) = &own {
                    call.measure.adopt(&own.measure);
                }
                return result;
            }
            HedgingDecision::Continue => {
                let status = Status::new(outcome.code, "");
                let status = result.as_ref().err().unwrap_or(&status);
                match &own {
                    Some(own) => own.measure.fail(status),
                    None => {
                        call.measure.end_attempt(status);
                    }
                }
                last = result;
            }
            HedgingDecision::Restart => {
                let attempt = own.as_deref().unwrap_or(call);
                attempt.measure.end_attempt(&Status::new(outcome.code, "not processed"));
                attempt.measure.start_attempt(number, true);
                let fields = attempt.fields_of_restart(number);
                running.push((number, Box::pin(hedged.attempt(own, fields))));
            }
        }
    }
}

impl<M: Encode, R: AwaitedResponse> Hedged<'_, M, R> {
    /// Makes one attempt: `own`, or the call's first. `fields` are its request headers, if they have changed.
    async fn attempt(
        &self,
        own: Option<Box<Prepared>>,
        fields: Option<RequestFields>,
    ) -> (Ended<R::Started>, Option<Box<Prepared>>) {
        let ended = self.send(own.as_deref().unwrap_or(self.call), fields).await;
        (ended, own)
    }

    async fn send(&self, call: &Prepared, fields: Option<RequestFields>) -> Ended<R::Started> {
        let failed = |status, progress| Ended::Failed { status, progress, response: None };
        let mut attempts = Attempts::new(self.channel, self.options, call);
        attempts.retries = Retries::with_fields(fields);
        let mut large = None;
        loop {
            let connection = match attempts.connection_untried_by(self.call).await {
                Ok(connection) => connection,
                Err(status) => return failed(status, Progress::Processed),
            };
            self.call.note_tried(&connection);
            let Self { message, awaited, .. } = self;
            let attempt = UnaryAttempt::new(&connection, &mut attempts, message, &mut large, *awaited).await;
            if let Some(peer) = &self.options.peer {
                peer.note(&connection.peer);
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
