//! The unary call: the shortest way from a message to its reply.

use std::cell::RefCell;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use thalweg_http2::{self as http2, Block, FieldList, FixedFields, OpenError, StreamId, Tag};
use tokio::time::Instant;
use tonic::metadata::MetadataMap;
use tonic::{Code, Extensions, Response, Status};

use super::place::Place;
use crate::connection::{
    Connection, End, OPENED_UNSENT_MAX, Outgoing, Slot, SlotKey, State, keep_waker, send_single,
};
use crate::grpc::codec::{self, Wire};
use crate::grpc::compression::Encoding;
use crate::grpc::envelope::PREFIX_LEN;
use crate::grpc::response::ResponseHead;
use crate::measure::CallMeasure;
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
pub(super) enum Attempt {
    Done(Result<UnaryReply, Status>),
    /// The lane has not taken the call.
    Refused(Refused),
    /// The call was sent, but the server says that it has not looked at it.
    Unprocessed(Status),
}

/// What came for a call that ended with OK.
pub(super) struct UnaryReply {
    head: Option<Arc<ResponseHead>>,
    body: Vec<u8>,
    trailers: Option<Box<MetadataMap>>,
}

/// One attempt at a unary call on one connection. Dropping it cancels the call.
pub(super) struct UnaryAttempt<'a, 'b, Req> {
    connection: &'a Arc<Connection>,
    place: &'a mut Place<'b>,
    fields: &'a RequestFields,
    measure: &'a CallMeasure,
    message: &'a Req,
    outgoing: Outgoing,
    message_size_max: usize,
    progress: Progress,
    /// When it was sent, if it is timed.
    sent_at: Option<Instant>,
}

enum Progress {
    /// Not sent.
    New,
    Waiting(SlotKey),
    Done,
}

impl<'a, 'b, Req: Message> UnaryAttempt<'a, 'b, Req> {
    pub(super) fn new(
        connection: &'a Arc<Connection>,
        place: &'a mut Place<'b>,
        fields: &'a RequestFields,
        measure: &'a CallMeasure,
        message: &'a Req,
        outgoing: Outgoing,
        message_size_max: usize,
    ) -> Self {
        let progress = Progress::New;
        Self {
            connection,
            place,
            fields,
            measure,
            message,
            outgoing,
            message_size_max,
            progress,
            sent_at: None,
        }
    }

    fn open(&mut self, cx: &mut Context<'_>) -> Result<SlotKey, Attempt> {
        let mut state = self.connection.lock();
        let head = self.fields.block();
        let (message, outgoing, measure) = (self.message, &self.outgoing, self.measure);
        let mut sent = Ok(());
        let opened = open_stream(&mut state, self.place, |http2, key| {
            let stream;
            (stream, sent) = send_request(http2, key.into(), head, message, outgoing, measure)?;
            let mut slot = Slot::new(stream, self.message_size_max);
            slot.unary = true;
            slot.send_closed = true;
            slot.receiver = Some(cx.waker().clone());
            slot.inbox = spare_inbox();
            Ok(slot)
        });
        let key = opened.map_err(Attempt::Refused)?;
        state.notify_driver();
        if let Err(status) = sent {
            if let Some(slot) = state.remove(key) {
                state.http2.reset(slot.stream, thalweg_http2::ErrorCode::Cancel);
            }
            drop(state);
            self.place.served();
            return Err(Attempt::Done(Err(status)));
        }
        let is_timed = key.is_each(state.timed_each);
        drop(state);
        self.place.served();
        self.connection.call_started();
        if is_timed {
            self.sent_at = Some(Instant::now());
        }
        Ok(key)
    }

    fn poll_reply(&mut self, cx: &mut Context<'_>, key: SlotKey) -> Poll<Attempt> {
        let mut state = self.connection.lock();
        let Some(slot) = state.slot(key) else {
            return Poll::Ready(Attempt::Done(Err(Status::internal("the call was polled after its end"))));
        };
        let Some(end) = slot.end.take() else {
            keep_waker(&mut slot.receiver, cx.waker());
            return Poll::Pending;
        };
        let (stream, head, body) = (slot.stream, slot.head.take(), std::mem::take(&mut slot.inbox));
        state.remove(key);
        state.load.answered += 1;
        if let Some(sent_at) = self.sent_at {
            state.load.note_call(sent_at, Instant::now());
        }
        if state.http2.is_open(stream) {
            // The server has answered before it had the whole request, and may never take the rest of it.
            state.http2.reset(stream, thalweg_http2::ErrorCode::Cancel);
            state.notify_driver();
        }
        drop(state);
        self.progress = Progress::Done;
        self.connection.call_ended();
        Poll::Ready(match end {
            End::Complete(outcome) => {
                Attempt::Done(outcome.map(|trailers| UnaryReply { head, body, trailers }))
            }
            End::Lost { status, unprocessed: true } => Attempt::Unprocessed(status),
            End::Lost { status, .. } => Attempt::Done(Err(status)),
        })
    }
}

impl<Req: Message> Future for UnaryAttempt<'_, '_, Req> {
    type Output = Attempt;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        match this.progress {
            Progress::Waiting(key) => this.poll_reply(cx, key),
            Progress::New => match this.open(cx) {
                Ok(key) => {
                    this.progress = Progress::Waiting(key);
                    Poll::Pending
                }
                Err(ended) => Poll::Ready(ended),
            },
            Progress::Done => Poll::Pending,
        }
    }
}

impl<Req> Drop for UnaryAttempt<'_, '_, Req> {
    fn drop(&mut self) {
        if let Progress::Waiting(key) = self.progress {
            self.connection.cancel(key);
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
    measure: &CallMeasure,
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
            measure.sent(small.envelope_len() - PREFIX_LEN);
            return Ok((stream, encoded));
        }
        stream
    } else {
        http2.open(tag, head, false)?
    };
    // A stream that is gone already tells its slot how it ended.
    let sent = send_single(http2, stream, message, outgoing, true);
    Ok((stream, sent.map(|sent| measure.sent(sent.unwrap_or(0)))))
}

impl UnaryReply {
    /// Decodes the message. So the call ends.
    pub(super) fn read<Res: Message>(
        self,
        message_size_max: usize,
        measure: &CallMeasure,
    ) -> Result<Response<Res>, Status> {
        measure.received(self.body.len().saturating_sub(PREFIX_LEN));
        let encoding = self.head.as_ref().map_or(Encoding::Identity, |head| head.encoding);
        let decoded = if self.body.capacity() <= SPARE_INBOX_LEN_MAX {
            let decoded = codec::decode_only(Wire::Lent(&self.body), encoding, message_size_max);
            keep_inbox(self.body);
            decoded
        } else {
            codec::decode_only(Wire::Gathered(self.body), encoding, message_size_max)
        };
        let mut metadata = match self.head {
            Some(head) if !head.metadata.is_empty() => head.metadata.clone(),
            _ => MetadataMap::new(),
        };
        if let Some(trailers) = self.trailers {
            merge(&mut metadata, *trailers);
        }
        match decoded {
            Ok(message) => {
                measure.end(Code::Ok);
                Ok(Response::from_parts(metadata, message, Extensions::default()))
            }
            Err(status) => {
                measure.end(status.code());
                Err(status)
            }
        }
    }
}

/// Inboxes of at most this many bytes are used again.
const SPARE_INBOX_LEN_MAX: usize = 256;
/// How many of them a thread keeps: 16 KiB.
const SPARE_INBOXES_MAX: usize = 64;

thread_local! {
    /// Calls begin and end on the threads of their callers, while their replies come in on the driver's. What one call of a
    /// thread leaves the next one takes, so that small replies need no memory of their own.
    static SPARE_INBOXES: RefCell<Vec<Vec<u8>>> = const { RefCell::new(Vec::new()) };
}

fn spare_inbox() -> Vec<u8> {
    SPARE_INBOXES.try_with(|spare| spare.borrow_mut().pop()).ok().flatten().unwrap_or_default()
}

fn keep_inbox(mut inbox: Vec<u8>) {
    inbox.clear();
    // During a thread's end the place may be gone: then the inbox is simply freed.
    let _ = SPARE_INBOXES.try_with(|spare| {
        let mut spare = spare.borrow_mut();
        if spare.len() < SPARE_INBOXES_MAX && inbox.capacity() > 0 {
            spare.push(inbox);
        }
    });
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

/// Why a connection gave a call no stream.
pub(super) enum Refused {
    /// It takes no new ones.
    LaneGone,
    /// It has as many as it may.
    LaneFull,
}

/// Opens a stream with `open`, if it is this call's turn: those who were in line before go first.
#[inline]
pub(super) fn open_stream(
    state: &mut State,
    place: &Place<'_>,
    open: impl FnOnce(&mut http2::Connection, SlotKey) -> Result<Slot, OpenError>,
) -> Result<SlotKey, Refused> {
    if state.ended().is_some() {
        return Err(Refused::LaneGone);
    }
    let others_wait = !state.is_line_empty();
    if others_wait && !place.is_in_line() {
        return Err(Refused::LaneFull);
    }
    if state.opened_unsent >= OPENED_UNSENT_MAX {
        // The driver opens the gate again when it has taken them.
        state.close_gate();
        return Err(Refused::LaneFull);
    }
    match state.insert_with(open) {
        Ok(key) => {
            state.opened_unsent += 1;
            if others_wait && !state.http2.can_open() {
                close_gate(state);
            }
            Ok(key)
        }
        Err(OpenError::NoSlot) => {
            state.close_gate();
            Err(Refused::LaneFull)
        }
        Err(OpenError::GoingAway | OpenError::IdsExhausted | OpenError::Closed) => Err(Refused::LaneGone),
    }
}

/// The last free stream is taken, and others wait. The protocol tells of a free one only when it was asked since the last time: it is asked on
/// their behalf.
#[cold]
fn close_gate(state: &mut State) {
    let refused = state.http2.open(Tag::default(), Block { fixed: None, extra: &FieldList::new() }, false);
    debug_assert!(refused.is_err());
    if refused == Err(OpenError::NoSlot) {
        state.close_gate();
    }
}
