//! The four kinds of calls, as generated clients make them.

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};

use futures_core::Stream;
use tokio::time::{Instant, timeout_at};
use tonic::metadata::MetadataMap;
use tonic::{Code, Request, Response, Status};

use super::Channel;
use super::lane_set::LaneSet;
use super::place::Place;
use super::unary::{Attempt, Refused, RequestFields, UnaryAttempt, UnaryReply, merge, open_stream};
use crate::Method;
use crate::connection::{Connection, End, Incoming, Outgoing, SendLoop, SendOutcome, Slot, SlotKey};
use crate::grpc::compression::Encoding;
use crate::grpc::{metadata, request, timeout};
use crate::measure::CallMeasure;
use crate::message::Message;
use crate::options::CallOptions;
use crate::streaming::{Streaming, deadline_exceeded};

/// How often a call is tried again after a server that it reached said that it has not looked at it (gRFC A6).
/// Attempts that never left the client are not counted.
const TRANSPARENT_RETRIES_MAX: u32 = 1;
/// Lanes that a call may find closed before it gives up: one is closed now and then, all of them at once means trouble.
const LANES_TRIED_MAX: u32 = 16;

impl Channel {
    /// Calls a unary method. Cancel-safe: dropping the future cancels the call at the server.
    pub async fn unary<Req: Message, Res: Message>(
        &self,
        method: &Method,
        request: Request<Req>,
        options: &CallOptions,
    ) -> Result<Response<Res>, Status> {
        let call = self.prepare(method, request.metadata(), options)?;
        // Pinned here, the attempts are not moved again: their future is large, and most calls have no deadline.
        let attempts = pin!(self.unary_attempts(&call, request.get_ref(), options));
        let reply = match call.deadline {
            None => attempts.await,
            deadline => within(deadline, attempts).await,
        };
        // Responses are large: one is made here, and not handed from future to future.
        match reply {
            Ok(reply) => reply.read(options.max_decoding_message_size, &call.measure),
            Err(status) => {
                call.measure.end(status.code());
                Err(status)
            }
        }
    }

    async fn unary_attempts<Req: Message>(
        &self,
        call: &Prepared,
        message: &Req,
        options: &CallOptions,
    ) -> Result<UnaryReply, Status> {
        let mut tries = Tries::new(&self.shared.lanes, call, options);
        loop {
            let connection = match tries.connection_at_hand() {
                Some(connection) => connection,
                None => tries.next_connection().await?,
            };
            let outgoing = call.outgoing;
            let size_max = options.max_decoding_message_size;
            let place = &mut tries.place;
            match UnaryAttempt::new(
                &connection,
                place,
                &call.fields,
                &call.measure,
                message,
                outgoing,
                size_max,
            )
            .await
            {
                Attempt::Done(outcome) => return outcome,
                Attempt::Refused(refused) => tries.refused(&refused, &connection)?,
                Attempt::Unprocessed(status) => {
                    tries.unprocessed(&connection, status, &call.measure)?;
                }
            }
        }
    }

    /// Calls a client-streaming method: sends the requests as flow control permits, and returns with the reply.
    /// Cancel-safe as [`unary`](Self::unary).
    pub async fn client_streaming<S, Res>(
        &self,
        method: &Method,
        request: Request<S>,
        options: &CallOptions,
    ) -> Result<Response<Res>, Status>
    where
        S: Stream + Send + 'static,
        S::Item: Message,
        Res: Message,
    {
        let (mut exchange, mut metadata, deadline) = self.begin(method, request, options).await?;
        let measure = exchange.responses.measure().clone();
        let reply = async move {
            let Some(message) = poll_fn(|cx| exchange.poll_message(cx)).await? else {
                return Err(Status::internal("the server ended the call with OK, but sent no message"));
            };
            if poll_fn(|cx| exchange.poll_message(cx)).await?.is_some() {
                return Err(Status::internal("the server answered with more than one message"));
            }
            merge(&mut metadata, exchange.responses.take_trailers());
            Ok(Response::from_parts(metadata, message, tonic::Extensions::default()))
        };
        let outcome = within(deadline, reply).await;
        measure.end(code(&outcome));
        outcome
    }

    /// Calls a server-streaming method; returns when the server has sent its head.
    pub async fn server_streaming<Req: Message, Res: Message>(
        &self,
        method: &Method,
        request: Request<Req>,
        options: &CallOptions,
    ) -> Result<Response<Streaming<Res>>, Status> {
        self.bidi_streaming(method, request.map(|message| Once(Some(message))), options).await
    }

    /// Calls a bidirectional method; returns when the server has sent its head. The requests are sent meanwhile and
    /// afterwards, as flow control permits.
    pub async fn bidi_streaming<S, Res>(
        &self,
        method: &Method,
        request: Request<S>,
        options: &CallOptions,
    ) -> Result<Response<Streaming<Res>>, Status>
    where
        S: Stream + Send + 'static,
        S::Item: Message,
        Res: Message,
    {
        let (exchange, metadata, deadline) = self.begin(method, request, options).await?;
        let Exchange { mut responses, sender, sending } = exchange;
        if sending == Sending::UnderWay {
            responses.send_in_background(sender);
        }
        responses.set_deadline(deadline);
        Ok(Response::from_parts(metadata, responses, tonic::Extensions::default()))
    }

    /// Opens the stream of a call that is not unary, and waits for the response's head, sending meanwhile.
    async fn begin<S, Res>(
        &self,
        method: &Method,
        request: Request<S>,
        options: &CallOptions,
    ) -> Result<(Exchange<S, Res>, MetadataMap, Option<Instant>), Status>
    where
        S: Stream + Send + 'static,
        S::Item: Message,
        Res: Message,
    {
        let (metadata, _, source) = request.into_parts();
        let call = self.prepare(method, &metadata, options)?;
        let begun = async {
            let mut tries = Tries::new(&self.shared.lanes, &call, options);
            let (mut connection, key) = tries.open(&call, options).await?;
            let mut exchange = Exchange::new(&connection, key, source, &call, options);
            loop {
                match poll_fn(|cx| exchange.poll_head(cx)).await? {
                    Ok(metadata) => {
                        exchange.sender.drop_handed_over();
                        return Ok((exchange, metadata));
                    }
                    Err(End::Lost { status, unprocessed: true }) if exchange.sender.can_restart() => {
                        // All of it is sent again.
                        call.measure.sent(tries.unprocessed(&connection, status, &call.measure)?);
                        let key;
                        (connection, key) = tries.open(&call, options).await?;
                        exchange.restart(&connection, key, options);
                    }
                    // A response without a head (Trailers-Only) that says OK has no metadata, and no messages.
                    Err(end) => return end.outcome().map(|_| (exchange, MetadataMap::new())),
                }
            }
        };
        // A call that is given up here is dropped before its outcome is known: its measure is held until then.
        let begun = within(call.deadline, begun).await;
        let (exchange, metadata) = begun.inspect_err(|status| call.measure.end(status.code()))?;
        Ok((exchange, metadata, call.deadline))
    }

    #[inline]
    fn prepare(
        &self,
        method: &Method,
        metadata: &MetadataMap,
        options: &CallOptions,
    ) -> Result<Prepared, Status> {
        let timeout = timeout::from_metadata(metadata)?.or(options.timeout);
        let encoding = options.send_compressed.unwrap_or_default();
        let mut extra = thalweg_http2::FieldList::new();
        request::emit(timeout, encoding, metadata, metadata::SENT_SIZE_MAX, &mut extra)?;
        let fixed = self.request_head(method, options.accept_compressed);
        Ok(Prepared {
            fields: RequestFields { fixed, extra },
            outgoing: Outgoing { message_size_max: options.max_encoding_message_size, encoding },
            deadline: timeout.and_then(|timeout| Instant::now().checked_add(timeout)),
            affinity: options.affinity,
            measure: self.shared.measure.call(method),
        })
    }
}

/// What stays the same over all attempts at a call.
struct Prepared {
    fields: RequestFields,
    outgoing: Outgoing,
    deadline: Option<Instant>,
    /// Calls with the same one take the same lane.
    affinity: Option<u64>,
    measure: CallMeasure,
}

fn code<T>(outcome: &Result<T, Status>) -> Code {
    outcome.as_ref().map_or_else(Status::code, |_| Code::Ok)
}

/// The outcome of `step`, unless the deadline passes first.
async fn within<T>(
    deadline: Option<Instant>,
    step: impl Future<Output = Result<T, Status>>,
) -> Result<T, Status> {
    match deadline {
        None => step.await,
        Some(deadline) => timeout_at(deadline, step).await.unwrap_or_else(|_| Err(deadline_exceeded())),
    }
}

/// The attempts at one call: where the next goes, and how much has gone wrong so far.
struct Tries<'a> {
    lanes: &'a LaneSet,
    place: Place<'a>,
    affinity: Option<u64>,
    wait_for_ready: bool,
    /// The last lane had no stream free.
    is_full: bool,
    retried: u32,
    lanes_gone: u32,
}

impl<'a> Tries<'a> {
    fn new(lanes: &'a LaneSet, call: &Prepared, options: &CallOptions) -> Self {
        let (affinity, wait_for_ready) = (call.affinity, options.wait_for_ready);
        let place = Place::new(lanes);
        Self { lanes, place, affinity, wait_for_ready, is_full: false, retried: 0, lanes_gone: 0 }
    }

    /// The connection to try next, if the call need not wait for it.
    #[inline]
    fn connection_at_hand(&self) -> Option<Arc<Connection>> {
        if self.is_full { None } else { self.lanes.pick(self.affinity) }
    }

    /// The connection to try next.
    async fn next_connection(&mut self) -> Result<Arc<Connection>, Status> {
        if self.is_full {
            self.is_full = false;
            return self.place.wait(self.wait_for_ready).await;
        }
        match self.lanes.pick(self.affinity) {
            Some(connection) => Ok(connection),
            None => self.lanes.connected(self.wait_for_ready).await,
        }
    }

    /// Opens a stream whose messages are to follow.
    async fn open(
        &mut self,
        call: &Prepared,
        options: &CallOptions,
    ) -> Result<(Arc<Connection>, SlotKey), Status> {
        loop {
            let connection = self.next_connection().await?;
            let size_max = options.max_decoding_message_size;
            match open_empty(&connection, &mut self.place, &call.fields, size_max) {
                Ok(key) => return Ok((connection, key)),
                Err(refused) => self.refused(&refused, &connection)?,
            }
        }
    }

    fn refused(&mut self, refused: &Refused, connection: &Arc<Connection>) -> Result<(), Status> {
        if let Refused::LaneFull = refused {
            self.is_full = true;
            return Ok(());
        }
        self.lanes.lost(connection);
        self.lanes_gone += 1;
        if self.lanes_gone < LANES_TRIED_MAX {
            return Ok(());
        }
        let ended = connection.lock().ended().cloned();
        Err(ended.unwrap_or_else(|| Status::unavailable(format!("{} takes no new calls", connection.peer))))
    }

    /// Whether the call may be tried again; and how many bytes of messages it had sent.
    fn unprocessed(
        &mut self,
        connection: &Arc<Connection>,
        status: Status,
        measure: &CallMeasure,
    ) -> Result<usize, Status> {
        if connection.lock().http2.peer_going_away() {
            self.lanes.lost(connection);
        }
        self.retried += 1;
        if self.retried > TRANSPARENT_RETRIES_MAX {
            return Err(status);
        }
        Ok(measure.again(status.code()))
    }
}

/// Opens a stream whose messages are to follow.
fn open_empty(
    connection: &Arc<Connection>,
    place: &mut Place<'_>,
    fields: &RequestFields,
    message_size_max: usize,
) -> Result<SlotKey, Refused> {
    let mut state = connection.lock();
    let key = open_stream(&mut state, place, |http2, key| {
        Ok(Slot::new(http2.open(key.into(), fields.block(), false)?, message_size_max))
    })?;
    state.notify_driver();
    drop(state);
    place.served();
    connection.call_started();
    Ok(key)
}

/// A streaming call under way: both its directions. Dropping it cancels the call.
struct Exchange<S, Res: Message> {
    responses: Streaming<Res>,
    sender: SendLoop<Requests<S>>,
    sending: Sending,
}

/// How far the requests are.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Sending {
    UnderWay,
    /// All of them are handed over.
    Done,
    /// The stream takes no more of them.
    Stopped,
}

impl<S, Res> Exchange<S, Res>
where
    S: Stream,
    S::Item: Message,
    Res: Message,
{
    fn new(
        connection: &Arc<Connection>,
        key: SlotKey,
        source: S,
        call: &Prepared,
        options: &CallOptions,
    ) -> Self {
        let source = Requests(Box::pin(source));
        let measure = call.measure.clone();
        let mut sender = SendLoop::new(Arc::clone(connection), key, source, call.outgoing, true, measure);
        sender.keep_handed_over();
        let responses = responses(connection, key, options, call.measure.clone());
        Self { responses, sender, sending: Sending::UnderWay }
    }

    /// The server has not looked at the call: it begins anew on another stream.
    fn restart(&mut self, connection: &Arc<Connection>, key: SlotKey, options: &CallOptions) {
        self.sender.restart(Arc::clone(connection), key, self.sending == Sending::Done);
        self.sending = Sending::UnderWay;
        let measure = self.responses.measure().clone();
        self.responses = responses(connection, key, options, measure);
    }

    /// Sends while waiting. Only an error of the requests' encoding is one here: a stream that is gone has its end
    /// noted, and the reader finds it.
    fn poll_send(&mut self, cx: &mut Context<'_>) -> Result<(), Status> {
        if self.sending != Sending::UnderWay {
            return Ok(());
        }
        match self.sender.poll_send(cx) {
            Poll::Pending => {}
            Poll::Ready(SendOutcome::Done) => self.sending = Sending::Done,
            Poll::Ready(SendOutcome::Gone) => self.sending = Sending::Stopped,
            Poll::Ready(SendOutcome::Failed(status)) => return Err(status),
        }
        Ok(())
    }

    fn poll_head(&mut self, cx: &mut Context<'_>) -> Poll<Result<Result<MetadataMap, End>, Status>> {
        self.poll_send(cx)?;
        self.responses.poll_head(cx).map(Ok)
    }

    fn poll_message(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Res>, Status>> {
        self.poll_send(cx)?;
        self.responses.poll_message(cx).map(Option::transpose)
    }
}

fn responses<Res: Message>(
    connection: &Arc<Connection>,
    key: SlotKey,
    options: &CallOptions,
    measure: CallMeasure,
) -> Streaming<Res> {
    let size_max = options.max_decoding_message_size;
    Streaming::of_responses(Incoming::new(Arc::clone(connection), key, size_max, Encoding::Identity, measure))
}

/// The requests of a client as the send loop takes them: none of them fails by itself.
pub(crate) struct Requests<S>(Pin<Box<S>>);

impl<S: Stream> Stream for Requests<S> {
    type Item = Result<S::Item, Status>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.0.as_mut().poll_next(cx).map(|item| item.map(Ok))
    }
}

/// A stream of one message.
struct Once<T>(Option<T>);

impl<T> Unpin for Once<T> {}

impl<T> Stream for Once<T> {
    type Item = T;

    fn poll_next(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<T>> {
        Poll::Ready(self.0.take())
    }
}
