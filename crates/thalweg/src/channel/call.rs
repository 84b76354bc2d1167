//! The four kinds of calls, as generated clients make them.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use futures_core::Stream;
use tokio::time::{Instant, timeout_at};
use tonic::metadata::MetadataMap;
use tonic::{Request, Response, Status};

use super::unary::{Attempt, LaneGone, Opening, RequestFields, UnaryAttempt, merge};
use super::{Channel, Lane};
use crate::connection::{Connection, End, Incoming, Outgoing, SendLoop, SendOutcome, SlotKey};
use crate::grpc::compression::Encoding;
use crate::grpc::{metadata, request, timeout};
use crate::message::Message;
use crate::options::CallOptions;
use crate::streaming::Streaming;
use crate::Method;

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
        let (metadata, _, message) = request.into_parts();
        let call = self.prepare(method, &metadata, options)?;
        let attempts = self.unary_attempts(&call, &message, options);
        match call.deadline {
            None => attempts.await,
            Some(deadline) => timeout_at(deadline, attempts).await.unwrap_or_else(|_| Err(deadline_exceeded())),
        }
    }

    async fn unary_attempts<Req: Message, Res: Message>(
        &self,
        call: &Prepared,
        message: &Req,
        options: &CallOptions,
    ) -> Result<Response<Res>, Status> {
        let mut tries = Tries::default();
        loop {
            let (lane, connection) = self.lane(options.wait_for_ready).await?;
            let outgoing = call.outgoing;
            let size_max = options.max_decoding_message_size;
            match UnaryAttempt::new(&connection, &call.fields, message, outgoing, size_max).await {
                Attempt::Done(outcome) => return outcome,
                Attempt::LaneGone => tries.lane_gone(lane, &connection)?,
                Attempt::Unprocessed(status) => tries.unprocessed(lane, &connection, status)?,
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
        let (mut opened, deadline) = self.open_streaming(method, request, options).await?;
        let exchange = async move {
            let head = poll_fn(|cx| opened.poll_head(cx)).await?;
            let mut metadata = head.unwrap_or_default();
            let message = match poll_fn(|cx| opened.poll_message(cx)).await? {
                Ok(message) => message,
                Err(end) => {
                    end.outcome()?;
                    return Err(Status::internal("the server ended the call with OK, but sent no message"));
                }
            };
            match poll_fn(|cx| opened.poll_message::<Res>(cx)).await? {
                Ok(_) => Err(Status::internal("the server answered with more than one message")),
                Err(end) => {
                    merge(&mut metadata, end.outcome()?);
                    Ok(Response::from_parts(metadata, message, tonic::Extensions::default()))
                }
            }
        };
        match deadline {
            None => exchange.await,
            Some(deadline) => timeout_at(deadline, exchange).await.unwrap_or_else(|_| Err(deadline_exceeded())),
        }
    }

    /// Calls a server-streaming method; returns when the server has sent its head.
    pub async fn server_streaming<Req: Message, Res: Message>(
        &self,
        method: &Method,
        request: Request<Req>,
        options: &CallOptions,
    ) -> Result<Response<Streaming<Res>>, Status> {
        self.bidi_streaming(method, request.map(Once::new), options).await
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
        let (opened, deadline) = self.open_streaming(method, request, options).await?;
        let Opened { mut incoming, sender } = opened;
        if let Some(sender) = sender {
            send_in_background(incoming.0.connection().clone(), incoming.0.key(), sender);
        }
        let head = poll_fn(|cx| incoming.0.poll_head(cx));
        let head = match deadline {
            None => head.await,
            Some(deadline) => match timeout_at(deadline, head).await {
                Ok(head) => head,
                Err(_) => return Err(deadline_exceeded()),
            },
        };
        let metadata = match head {
            Ok(head) => {
                incoming.0.set_encoding(head.encoding);
                head.metadata.clone()
            }
            // Trailers-Only, with OK: a stream of no messages.
            Err(End::Complete(Ok(_))) => MetadataMap::new(),
            Err(end) => return Err(end.outcome().err().unwrap_or_else(|| Status::internal("no response"))),
        };
        let deadline = deadline.map(|deadline| Box::pin(tokio::time::sleep_until(deadline)));
        let streaming = Streaming::of_responses(incoming.release(), deadline);
        Ok(Response::from_parts(metadata, streaming, tonic::Extensions::default()))
    }

    /// Opens the stream of a call that is not unary.
    async fn open_streaming<S, Res>(
        &self,
        method: &Method,
        request: Request<S>,
        options: &CallOptions,
    ) -> Result<(Opened<S, Res>, Option<Instant>), Status>
    where
        S: Stream + Send + 'static,
        S::Item: Message,
        Res: Message,
    {
        let (metadata, _, source) = request.into_parts();
        let call = self.prepare(method, &metadata, options)?;
        let size_max = options.max_decoding_message_size;
        let opening = async {
            let mut tries = Tries::default();
            loop {
                let (lane, connection) = self.lane(options.wait_for_ready).await?;
                match StreamOpening::new(&connection, &call.fields, size_max).await {
                    Ok(key) => return Ok((connection, key)),
                    Err(LaneGone) => tries.lane_gone(lane, &connection)?,
                }
            }
        };
        let (connection, key) = match call.deadline {
            None => opening.await?,
            Some(deadline) => timeout_at(deadline, opening).await.unwrap_or_else(|_| Err(deadline_exceeded()))?,
        };
        let incoming = Incoming::new(Arc::clone(&connection), key, size_max, Encoding::Identity);
        let source = Box::pin(Infallible(source));
        let sender = SendLoop::new(connection, key, source, call.outgoing, true);
        Ok((Opened { incoming: CancelOnDrop(incoming), sender: Some(sender) }, call.deadline))
    }

    fn prepare(&self, method: &Method, metadata: &MetadataMap, options: &CallOptions) -> Result<Prepared, Status> {
        let timeout = timeout::from_metadata(metadata)?.or(options.timeout);
        let encoding = options.send_compressed.unwrap_or_default();
        let mut extra = thalweg_http2::FieldList::new();
        request::emit(timeout, encoding, metadata, metadata::SENT_SIZE_MAX, &mut extra)?;
        let fixed = self.request_head(method, options.accept_compressed);
        Ok(Prepared {
            fields: RequestFields { fixed, extra },
            outgoing: Outgoing { message_size_max: options.max_encoding_message_size, encoding },
            deadline: timeout.and_then(|timeout| Instant::now().checked_add(timeout)),
        })
    }
}

/// What stays the same over all attempts at a call.
struct Prepared {
    fields: RequestFields,
    outgoing: Outgoing,
    deadline: Option<Instant>,
}

fn deadline_exceeded() -> Status {
    Status::deadline_exceeded("the deadline of the call has passed")
}

/// Counts what has gone wrong with a call that may be tried again.
#[derive(Default)]
struct Tries {
    retried: u32,
    lanes_gone: u32,
}

impl Tries {
    fn lane_gone(&mut self, lane: &Lane, connection: &Arc<Connection>) -> Result<(), Status> {
        lane.lost(connection);
        self.lanes_gone += 1;
        if self.lanes_gone < LANES_TRIED_MAX {
            return Ok(());
        }
        let ended = connection.lock().ended().cloned();
        Err(ended.unwrap_or_else(|| Status::unavailable(format!("{} takes no new calls", connection.peer))))
    }

    fn unprocessed(&mut self, lane: &Lane, connection: &Arc<Connection>, status: Status) -> Result<(), Status> {
        if connection.lock().http2.peer_going_away() {
            lane.lost(connection);
        }
        self.retried += 1;
        if self.retried > TRANSPARENT_RETRIES_MAX { Err(status) } else { Ok(()) }
    }
}

/// Waits for a stream of its own on a connection.
struct StreamOpening<'a> {
    connection: &'a Arc<Connection>,
    fields: &'a RequestFields,
    message_size_max: usize,
    opening: Opening,
}

impl<'a> StreamOpening<'a> {
    fn new(connection: &'a Arc<Connection>, fields: &'a RequestFields, message_size_max: usize) -> Self {
        Self { connection, fields, message_size_max, opening: Opening::default() }
    }
}

impl Future for StreamOpening<'_> {
    type Output = Result<SlotKey, LaneGone>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        let mut state = this.connection.lock();
        let block = this.fields.block();
        let key = ready!(this.opening.poll(&mut state, block, false, this.message_size_max, cx.waker()))?;
        state.notify_driver();
        this.connection.call_started();
        Poll::Ready(Ok(key))
    }
}

impl Drop for StreamOpening<'_> {
    fn drop(&mut self) {
        self.opening.leave(self.connection);
    }
}

/// A call under way: both its directions.
struct Opened<S, Res: Message> {
    incoming: CancelOnDrop<Res>,
    /// None once everything is sent.
    sender: Option<SendLoop<Infallible<S>>>,
}

impl<S, Res> Opened<S, Res>
where
    S: Stream,
    S::Item: Message,
    Res: Message,
{
    /// Sends while waiting. An error of the requests' encoding ends the call.
    fn poll_send(&mut self, cx: &mut Context<'_>) -> Result<(), Status> {
        let Some(sender) = &mut self.sender else { return Ok(()) };
        match sender.poll_send(cx) {
            Poll::Pending => Ok(()),
            // A stream that is gone has its end noted: the reader finds it.
            Poll::Ready(SendOutcome::Done | SendOutcome::Gone) => {
                self.sender = None;
                Ok(())
            }
            Poll::Ready(SendOutcome::Failed(status)) => Err(status),
        }
    }

    /// The initial metadata; None if the call ended without.
    fn poll_head(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<MetadataMap>, Status>> {
        self.poll_send(cx)?;
        match ready!(self.incoming.0.poll_head(cx)) {
            Ok(head) => {
                self.incoming.0.set_encoding(head.encoding);
                Poll::Ready(Ok(Some(head.metadata.clone())))
            }
            Err(end) => Poll::Ready(end.outcome().map(|_| None)),
        }
    }

    fn poll_message<T>(&mut self, cx: &mut Context<'_>) -> Poll<Result<Result<Res, End>, Status>> {
        self.poll_send(cx)?;
        self.incoming.0.poll_message(cx)
    }
}

/// Keeps sending the requests of a bidirectional call while its responses are read elsewhere.
fn send_in_background<S>(connection: Arc<Connection>, key: SlotKey, mut sender: SendLoop<S>)
where
    S: Stream<Item = Result<<S as MessageStream>::Message, Status>> + MessageStream + Send + 'static,
{
    tokio::spawn(async move {
        if let SendOutcome::Failed(status) = poll_fn(|cx| sender.poll_send(cx)).await {
            connection.fail(key, &status);
        }
    });
}

/// Cancels the call unless its responses have found their reader.
struct CancelOnDrop<Res: Message>(Incoming<Res>);
