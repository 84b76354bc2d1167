//! Unary calls: the fast path from a message to its response.

use std::convert::Infallible;
use std::pin::pin;

use bytes::Bytes;
use http::HeaderMap;
use thalweg_balance::service_config::AttemptPolicy;

use super::attempts::{Attempts, FailureKind};
use super::hedged_unary;
use super::prepared::{Prepared, within};
use super::unary_attempt::{
    Arrived, Attempt, AwaitedResponse, Outcome, POOLED_INBOX_CAPACITY_MAX, UnaryAttempt, put_inbox,
};
use crate::call_context::{CallContext, Phase};
use crate::channel::Channel;
use crate::connection::{Inbox, Slot, SlotKey, WakesOn};
use crate::encode::Encode;
use crate::grpc::codec::{self, Envelope, Wire};
use crate::grpc::compression::Encoding;
use crate::grpc::envelope::PREFIX_LEN;
use crate::measure::CallMeasure;
use crate::method::Method;
use crate::options::CallOptions;
use crate::service_settings::NotResolved;
use crate::status::{Code, Status};

impl Channel {
    /// Calls a unary method. Cancel-safe: dropping the future cancels the call at the server.
    ///
    /// # Errors
    /// Returns the call's status if it is not OK, or the reason it was not made.
    // Not an `async fn`, which would store its arguments twice.
    #[expect(clippy::manual_async_fn, reason = "saves instructions of each call")]
    pub fn unary<M: Encode>(
        &self,
        method: &Method,
        metadata: &HeaderMap,
        message: &M,
        options: &CallOptions,
    ) -> impl Future<Output = Result<UnaryResponse, Status>> {
        async move {
            let configured = match self.configured(method, options) {
                Ok(configured) => configured,
                Err(NotResolved) => Some(Box::pin(self.when_configured(method, metadata, options)).await),
            };
            let options = configured.as_deref().unwrap_or(options);
            // A `?` would move the call once more.
            let call = match Prepared::new(self, method, metadata, options) {
                Ok(call) => call,
                Err(status) => return Err(status),
            };
            let outcome = {
                // Pinned here so that this large future is not moved again. Most calls have no deadline.
                let awaited = OneMessage { size_max: options.max_decoding_message_size };
                let attempts = pin!(attempts(self, &call, message, options, awaited));
                match call.deadline {
                    None => attempts.await,
                    Some(_) if call.has_expired() => Err(call.expired()),
                    deadline => within(deadline, attempts).await,
                }
            };
            match outcome {
                Ok(Outcome::Done(arrived)) => Ok(UnaryResponse {
                    arrived,
                    message_size_max: options.max_decoding_message_size,
                    measure: call.measure,
                }),
                Ok(Outcome::Started(_, never)) => match never {},
                Err(status) => {
                    let status = call.failed(status, self, method);
                    call.measure.fail(&status);
                    Err(status)
                }
            }
        }
    }
}

/// Makes attempts at a call with one message until one is final.
///
/// Not an `async fn`, which would store its arguments twice.
#[expect(clippy::manual_async_fn, reason = "saves instructions of each call")]
pub(super) fn attempts<M: Encode, R: AwaitedResponse>(
    channel: &Channel,
    call: &Prepared,
    message: &M,
    options: &CallOptions,
    awaited: R,
) -> impl Future<Output = Result<Outcome<R::Started>, Status>> {
    async move {
        if let Some(AttemptPolicy::Hedging(policy)) = &options.attempts {
            return Box::pin(hedged_unary::attempts(channel, call, message, options, awaited, policy)).await;
        }
        let mut attempts = Attempts::new(channel, options, call);
        let mut large = None;
        loop {
            let connection = match attempts.connection_at_hand() {
                Some(connection) => connection,
                // Boxed to keep the future of calls that need not wait small.
                None => Box::pin(attempts.wait_for_connection()).await?,
            };
            if let Some(peer) = &options.peer {
                peer.note(&connection.peer, connection.call_timeout(), call.progress.attempt());
            }
            match UnaryAttempt::new(&connection, &mut attempts, message, &mut large, awaited).await {
                Attempt::Done(outcome) if !(R::MAY_HAVE_FAILED && attempts.has_policy()) => {
                    if outcome.is_ok() {
                        channel.note_success();
                    }
                    return outcome.map(Outcome::Done);
                }
                Attempt::Done(outcome) => {
                    let arrived = outcome?;
                    let Some(status) = R::failure(&arrived) else {
                        channel.note_success();
                        return Ok(Outcome::Done(arrived));
                    };
                    let kind = FailureKind::Processed;
                    if Box::pin(attempts.failed(status, kind, &connection)).await.is_err() {
                        // The caller takes failed responses.
                        return Ok(Outcome::Done(arrived));
                    }
                }
                Attempt::Started(started) => return Ok(Outcome::Started(connection, started)),
                Attempt::NotOpened(refused) => attempts.refused(&refused, &connection)?,
                Attempt::Unprocessed(status) => {
                    Box::pin(attempts.failed(status, FailureKind::Unprocessed, &connection)).await?;
                }
                Attempt::Processed(status) => {
                    Box::pin(attempts.failed(status, FailureKind::Processed, &connection)).await?;
                }
                Attempt::Committed(status) => {
                    Box::pin(attempts.failed(status, FailureKind::Committed, &connection)).await?;
                }
            }
        }
    }
}

/// The response of a unary call, which is read after its end.
#[derive(Clone, Copy)]
struct OneMessage {
    size_max: usize,
}

impl AwaitedResponse for OneMessage {
    type Started = Infallible;
    const MAY_HAVE_FAILED: bool = false;
    const WAKES_ON: WakesOn = WakesOn::End;

    #[inline]
    fn inbox(self, buffer: Vec<u8>) -> Inbox {
        Inbox::with_buffer(buffer, self.size_max)
    }

    #[inline]
    fn started(_: SlotKey, _: &mut Slot) -> Option<Infallible> {
        None
    }

    #[inline]
    fn failure(_: &Arrived) -> Option<Status> {
        None
    }
}

/// Response of a unary call that ended with OK. Read its message, then call [`finish`](Self::finish), or
/// [`fail`](Self::fail) if the message cannot be read.
pub struct UnaryResponse {
    arrived: Arrived,
    message_size_max: usize,
    measure: CallMeasure,
}

impl UnaryResponse {
    /// Returns the message. Call it once: a message in a buffer of its own is moved out.
    #[inline]
    pub fn message(&mut self) -> Envelope<'_> {
        let Arrived { headers, body, .. } = &mut self.arrived;
        let encoding = headers.as_ref().map_or(Encoding::Identity, |headers| headers.encoding);
        let (wire, is_compressed) = (body.len().saturating_sub(PREFIX_LEN), encoding.compresses());
        self.measure.received_message(wire, is_compressed && body.first().is_some_and(|flag| *flag == 1));
        if is_compressed && self.measure.is_traced() {
            codec::decompress_in_place(body, encoding, self.message_size_max, |plain| {
                self.measure.decompressed(plain, wire);
            });
        }
        let wire = if body.capacity() <= POOLED_INBOX_CAPACITY_MAX {
            Wire::Borrowed(body)
        } else {
            Wire::Gathered(std::mem::take(body))
        };
        Envelope::new(wire, encoding, self.message_size_max)
    }

    /// Ends the call because its message cannot be read, and returns `status` with the call's context.
    #[cold]
    pub fn fail(self, status: Status, channel: &Channel, method: &Method) -> Status {
        let (path, target) = (method.path(), &channel.target());
        let context = CallContext { path, target, peer: None, attempt: 1, phase: Some(Phase::Response) };
        let status = status.with_call_context(context);
        self.measure.fail(&status);
        self.finish();
        status
    }

    /// Ends the call with OK and returns its metadata, headers before trailers.
    ///
    /// Inlined, so that the metadata is built in place in the response.
    #[expect(clippy::inline_always, reason = "saves 16 instructions per call")]
    #[inline(always)]
    pub fn finish(self) -> HeaderMap {
        let (mut metadata, trailers) = self.finish_apart();
        if let Some(trailers) = trailers {
            metadata.extend(*trailers);
        }
        metadata
    }

    /// Same as [`finish`](Self::finish), with the metadata of headers and trailers apart.
    #[expect(clippy::inline_always, reason = "saves 16 instructions per call")]
    #[inline(always)]
    pub fn finish_apart(self) -> (HeaderMap, Option<Box<HeaderMap>>) {
        let Arrived { headers, body, trailers } = self.arrived;
        if body.capacity() <= POOLED_INBOX_CAPACITY_MAX {
            put_inbox(body);
        }
        let metadata = match headers {
            Some(headers) if !headers.metadata.is_empty() => headers.metadata.clone(),
            _ => HeaderMap::new(),
        };
        self.measure.end(Code::Ok);
        (metadata, trailers)
    }
}

/// Converts the received body to `Bytes`. A small buffer is reused for the next call.
pub(super) fn into_bytes(body: Vec<u8>) -> Bytes {
    if body.capacity() > POOLED_INBOX_CAPACITY_MAX {
        return Bytes::from(body);
    }
    let bytes = Bytes::copy_from_slice(&body);
    put_inbox(body);
    bytes
}
