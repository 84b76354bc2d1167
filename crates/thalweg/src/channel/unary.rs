//! The unary call: the shortest way from a message to its reply.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use thalweg_http2::{self as http2, Block, FieldList, FixedFields, OpenError, StreamId, Tag};
use tonic::metadata::MetadataMap;
use tonic::{Response, Status};

use crate::connection::{
    Connection, End, OPENED_UNSENT_MAX, Outgoing, Slot, SlotKey, State, keep_waker, send_single,
};
use crate::grpc::codec::{self, Wire};
use crate::grpc::compression::Encoding;
use crate::message::Message;

/// The head of a request: what all calls of the method share, and what is this call's own.
pub(super) struct RequestFields {
    pub(super) fixed: Arc<FixedFields>,
    pub(super) extra: FieldList,
}

impl RequestFields {
    pub(super) fn block(&self) -> Block<'_> {
        Block { fixed: Some(&self.fixed), extra: &self.extra }
    }
}

/// How one attempt at a call ended.
pub(super) enum Attempt<T> {
    Done(Result<T, Status>),
    /// The lane can take no more calls, and has not taken this one.
    LaneGone,
    /// The call was sent, but the server says that it has not looked at it.
    Unprocessed(Status),
}

/// One attempt at a unary call on one connection. Dropping it cancels the call.
pub(super) struct UnaryAttempt<'a, Req, Res> {
    connection: &'a Arc<Connection>,
    fields: &'a RequestFields,
    message: &'a Req,
    outgoing: Outgoing,
    message_size_max: usize,
    progress: Progress,
    reply: std::marker::PhantomData<fn() -> Res>,
}

enum Progress {
    /// Not sent; with a place in the line for a free stream once there was none.
    Opening(Opening),
    Waiting(SlotKey),
    Done,
}

impl<'a, Req: Message, Res: Message> UnaryAttempt<'a, Req, Res> {
    pub(super) fn new(
        connection: &'a Arc<Connection>,
        fields: &'a RequestFields,
        message: &'a Req,
        outgoing: Outgoing,
        message_size_max: usize,
    ) -> Self {
        let progress = Progress::Opening(Opening::default());
        Self {
            connection,
            fields,
            message,
            outgoing,
            message_size_max,
            progress,
            reply: std::marker::PhantomData,
        }
    }

    fn poll_open(&mut self, cx: &mut Context<'_>) -> Poll<Result<SlotKey, Option<Status>>> {
        let Progress::Opening(opening) = &mut self.progress else { return Poll::Pending };
        let mut state = self.connection.lock();
        let head = self.fields.block();
        let (message, outgoing) = (self.message, &self.outgoing);
        let mut sent = Ok(());
        let opened = opening.poll(&mut state, head, cx.waker(), |http2, key| {
            let stream;
            (stream, sent) = send_request(http2, key.into(), head, message, outgoing)?;
            let mut slot = Slot::new(stream, self.message_size_max);
            slot.unary = true;
            slot.send_closed = true;
            slot.receiver = Some(cx.waker().clone());
            Ok(slot)
        });
        let key = match opened {
            Poll::Pending => return Poll::Pending,
            Poll::Ready(Err(LaneGone)) => return Poll::Ready(Err(None)),
            Poll::Ready(Ok(key)) => key,
        };
        state.notify_driver();
        if let Err(status) = sent {
            if let Some(slot) = state.remove(key) {
                state.http2.reset(slot.stream, thalweg_http2::ErrorCode::Cancel);
            }
            return Poll::Ready(Err(Some(status)));
        }
        self.connection.call_started();
        Poll::Ready(Ok(key))
    }

    fn poll_reply(&mut self, cx: &mut Context<'_>, key: SlotKey) -> Poll<Attempt<Response<Res>>> {
        let mut state = self.connection.lock();
        let Some(slot) = state.slot(key) else {
            return Poll::Ready(Attempt::Done(Err(Status::internal("the call was polled after its end"))));
        };
        if slot.end.is_none() {
            keep_waker(&mut slot.receiver, cx.waker());
            return Poll::Pending;
        }
        let slot = state.remove(key);
        if let Some(slot) = &slot
            && state.http2.is_open(slot.stream)
        {
            // The server has answered before it had the whole request, and may never take the rest of it.
            state.http2.reset(slot.stream, thalweg_http2::ErrorCode::Cancel);
            state.notify_driver();
        }
        drop(state);
        self.progress = Progress::Done;
        self.connection.call_ended();
        Poll::Ready(slot.map_or(Attempt::LaneGone, |slot| read_reply(slot, self.message_size_max)))
    }
}

impl<Req: Message, Res: Message> Future for UnaryAttempt<'_, Req, Res> {
    type Output = Attempt<Response<Res>>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        match this.progress {
            Progress::Waiting(key) => this.poll_reply(cx, key),
            Progress::Opening(_) => match this.poll_open(cx) {
                Poll::Pending => Poll::Pending,
                Poll::Ready(Ok(key)) => {
                    this.progress = Progress::Waiting(key);
                    Poll::Pending
                }
                Poll::Ready(Err(None)) => Poll::Ready(Attempt::LaneGone),
                Poll::Ready(Err(Some(status))) => Poll::Ready(Attempt::Done(Err(status))),
            },
            Progress::Done => Poll::Pending,
        }
    }
}

impl<Req, Res> Drop for UnaryAttempt<'_, Req, Res> {
    fn drop(&mut self) {
        match &mut self.progress {
            Progress::Waiting(key) => self.connection.cancel(*key),
            Progress::Opening(opening) => opening.leave(self.connection),
            Progress::Done => {}
        }
    }
}

/// Opens a stream and sends its head and its only message. The second result is what became of the message.
fn send_request<Req: Message>(
    http2: &mut http2::Connection,
    tag: Tag,
    head: Block<'_>,
    message: &Req,
    outgoing: &Outgoing,
) -> Result<(StreamId, Result<(), Status>), OpenError> {
    let small = match outgoing.small(message) {
        Ok(small) => small,
        // Told once there is a stream: the call takes its turn like all others.
        Err(status) => return Ok((http2.open(tag, head, false)?, Err(status))),
    };
    let stream = if let Some(small) = small {
        let mut encoded = Ok(());
        let (stream, is_sent) =
            http2.open_with(tag, head, small.envelope_len(), |out| encoded = small.encode(out))?;
        if is_sent {
            return Ok((stream, encoded));
        }
        stream
    } else {
        http2.open(tag, head, false)?
    };
    // A stream that is gone already tells its slot how it ended.
    Ok((stream, send_single(http2, stream, message, outgoing, true).map(|_| ())))
}

/// Takes a finished call apart.
fn read_reply<Res: Message>(slot: Slot, message_size_max: usize) -> Attempt<Response<Res>> {
    let trailers = match slot.end {
        Some(End::Complete(Ok(trailers))) => trailers,
        Some(End::Lost { status, unprocessed: true }) => return Attempt::Unprocessed(status),
        Some(End::Complete(Err(status)) | End::Lost { status, .. }) => return Attempt::Done(Err(status)),
        None => return Attempt::Done(Err(Status::internal("the call has not ended"))),
    };
    let encoding = slot.head.as_ref().map_or(Encoding::Identity, |head| head.encoding);
    let message = match codec::decode_only(Wire::Gathered(slot.inbox), encoding, message_size_max) {
        Ok(message) => message,
        Err(status) => return Attempt::Done(Err(status)),
    };
    let mut response = Response::new(message);
    if let Some(head) = slot.head
        && !head.metadata.is_empty()
    {
        *response.metadata_mut() = head.metadata.clone();
    }
    if let Some(trailers) = trailers {
        merge(response.metadata_mut(), *trailers);
    }
    Attempt::Done(Ok(response))
}

/// Adds the trailers to the metadata of a unary response, as tonic does.
pub(super) fn merge(metadata: &mut MetadataMap, trailers: MetadataMap) {
    if trailers.is_empty() {
        return;
    }
    let mut headers = std::mem::take(metadata).into_headers();
    headers.extend(trailers.into_headers());
    *metadata = MetadataMap::from_headers(headers);
}

/// Opens a stream, waiting in the line if the connection has as many as the server permits.
#[derive(Debug, Default)]
pub(super) struct Opening {
    ticket: Option<u64>,
}

/// The connection takes no new streams.
pub(super) struct LaneGone;

impl Opening {
    /// `open` opens the stream, if it is this call's turn. `head` is what it is opened with.
    pub(super) fn poll(
        &mut self,
        state: &mut State,
        head: Block<'_>,
        waker: &Waker,
        open: impl FnOnce(&mut http2::Connection, SlotKey) -> Result<Slot, OpenError>,
    ) -> Poll<Result<SlotKey, LaneGone>> {
        if state.ended().is_some() {
            return Poll::Ready(Err(LaneGone));
        }
        // Those who were here before go first.
        let is_behind = self.ticket.is_none() && !state.slot_waiters.is_empty();
        if is_behind || state.opened_unsent >= OPENED_UNSENT_MAX {
            state.slot_waiters.wait(&mut self.ticket, waker);
            return Poll::Pending;
        }
        match state.insert_with(open) {
            Ok(key) => {
                state.opened_unsent += 1;
                if let Some(ticket) = self.ticket.take() {
                    state.slot_waiters.leave(ticket);
                }
                if !state.slot_waiters.is_empty() {
                    if state.http2.can_open() {
                        let next = state.slot_waiters.next();
                        state.wake_later(next);
                    } else {
                        // The protocol tells of a free stream only when it was asked for one since the last time: it is
                        // asked on behalf of those who wait.
                        let refused = state.http2.open(Tag::default(), head, false);
                        debug_assert!(refused.is_err());
                    }
                }
                Poll::Ready(Ok(key))
            }
            Err(OpenError::NoSlot) => {
                state.slot_waiters.wait(&mut self.ticket, waker);
                Poll::Pending
            }
            Err(OpenError::GoingAway | OpenError::IdsExhausted | OpenError::Closed) => {
                // The others in the line are in the same position.
                let next = state.slot_waiters.next();
                state.wake_later(next);
                Poll::Ready(Err(LaneGone))
            }
        }
    }

    /// Gives the place in the line up; a wake-up that was meant for this call goes to the next.
    pub(super) fn leave(&mut self, connection: &Connection) {
        let Some(ticket) = self.ticket.take() else { return };
        let mut state = connection.lock();
        if state.slot_waiters.leave(ticket) {
            let next = state.slot_waiters.next();
            state.wake_later(next);
        }
    }
}
