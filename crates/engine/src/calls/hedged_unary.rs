//! Hedging of a call with one message.

use std::sync::Arc;

use thalweg_balance::retry::{HedgingPolicy, Progress};
use thalweg_core::chain::Chain;

use super::attempts::Attempts;
use super::hedging::{self, Ended, HedgedAttempt};
use super::prepared::Prepared;
use super::retries::Retries;
use super::unary_attempt::{Attempt, AwaitedResponse, Outcome, UnaryAttempt};
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

/// Makes attempts at a call until one responds, or none is left.
pub(super) async fn attempts<M: Encode, R: AwaitedResponse>(
    channel: &Channel,
    call: &Prepared,
    message: &M,
    options: &CallOptions,
    awaited: R,
    policy: &HedgingPolicy,
) -> Result<Outcome<R::Started>, Status> {
    let hedged = &Hedged { channel, call, message: HedgedMessage(message), options, awaited };
    let start = |attempt| Box::pin(hedged.run(attempt));
    // Each attempt counts its own message.
    hedging::attempts(channel, call, policy, start, |attempt, cx| attempt.as_mut().poll(cx), |_| ()).await
}

impl<M: Encode, R: AwaitedResponse> Hedged<'_, M, R> {
    /// Makes one attempt.
    async fn run(&self, mut attempt: HedgedAttempt) -> (Ended<Outcome<R::Started>>, HedgedAttempt) {
        let prepared = attempt.prepared.take();
        let mut attempts =
            Attempts::new(self.channel, self.options, prepared.as_deref().unwrap_or(self.call));
        attempts.retries = Retries::with_fields(attempt.fields.take());
        attempts.lanes_gone = attempt.lanes_gone;
        let ended = self.send(&mut attempts, &mut attempt).await;
        attempt.lanes_gone = attempts.lanes_gone;
        drop(attempts);
        attempt.prepared = prepared;
        (ended, attempt)
    }

    async fn send(
        &self,
        attempts: &mut Attempts<'_>,
        hedged: &mut HedgedAttempt,
    ) -> Ended<Outcome<R::Started>> {
        let failed = |status, progress| Ended::Failed { status, progress, response: None };
        let mut large = None;
        loop {
            let connection = match attempts.connection_untried_by(self.call).await {
                Ok(connection) => connection,
                Err(status) => return failed(status, Progress::Processed),
            };
            self.call.note_tried(&connection);
            hedged.count(self.channel, &connection);
            let Self { message, awaited, .. } = self;
            let attempt = UnaryAttempt::new(&connection, attempts, message, &mut large, *awaited).await;
            if let Some(peer) = &self.options.peer {
                peer.note(&connection.peer, connection.call_timeout(), self.call.progress.attempt());
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
