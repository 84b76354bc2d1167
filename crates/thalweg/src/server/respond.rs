//! Writes responses, under the connection's lock.

use std::sync::{Arc, LazyLock};

use thalweg_http2::{Block, ErrorCode, FieldList, FixedFields, Indexing, StreamId};
use tonic::metadata::MetadataMap;
use tonic::{Response, Status};

use super::Trailers;
use crate::connection::{Outgoing, SlotKey, State, send_single};
use crate::grpc::compression::{Encoding, EncodingSet};
use crate::grpc::{metadata, response, status};
use crate::message::Message;

/// Where a call's response goes, and how it is encoded.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reply {
    pub(super) key: SlotKey,
    pub(super) stream: StreamId,
    pub(super) outgoing: Outgoing,
}

/// The head of every response.
static HEAD: LazyLock<Arc<FixedFields>> =
    LazyLock::new(|| FixedFields::new(response::fixed_fields(EncodingSet::ALL)));

/// The trailers of a call that succeeded and says no more.
static TRAILERS_OK: LazyLock<Arc<FixedFields>> = LazyLock::new(|| {
    let mut fields = FieldList::new();
    fields.push(b"grpc-status", b"0", Indexing::Insert);
    FixedFields::new(fields)
});

static NO_FIELDS: LazyLock<FieldList> = LazyLock::new(FieldList::new);

/// Answers a call with its handler's result.
pub(super) fn send_result<Res: Message>(
    state: &mut State,
    reply: &Reply,
    result: &Result<Response<Res>, Status>,
) {
    match result {
        Ok(response) => send_response(state, reply, response),
        Err(status) => send_status(state, reply, status),
    }
}

/// Sends a whole unary response: head, message, and trailers.
fn send_response<Res: Message>(state: &mut State, reply: &Reply, response: &Response<Res>) {
    let message = response.get_ref();
    if let Err(error) = reply.outgoing.check(message) {
        return send_status(state, reply, &error);
    }
    if let Err(error) = send_head(state, reply, response.metadata()) {
        return send_status(state, reply, &error);
    }
    let Some((slot, http2, _)) = state.parts(reply.key) else { return };
    if slot.send_closed {
        return;
    }
    match send_single(http2, reply.stream, message, &reply.outgoing, false) {
        Ok(_) => send_trailers(state, reply, Ok(response.extensions().get())),
        Err(error) => send_trailers(state, reply, Err(&error)),
    }
}

/// Sends the head of a response.
///
/// # Errors
/// When the metadata can't be sent; nothing has been then.
pub(super) fn send_head(state: &mut State, reply: &Reply, metadata: &MetadataMap) -> Result<(), Status> {
    let encoding = reply.outgoing.encoding;
    if metadata.is_empty() && encoding == Encoding::Identity {
        send_block(state, reply, Block { fixed: Some(&HEAD), extra: &NO_FIELDS }, false);
        return Ok(());
    }
    let mut extra = FieldList::new();
    response::emit_head(encoding, metadata, metadata::SENT_SIZE_MAX, &mut extra)?;
    send_block(state, reply, Block { fixed: Some(&HEAD), extra: &extra }, false);
    Ok(())
}

/// Ends a response whose head has been sent.
pub(super) fn send_trailers(state: &mut State, reply: &Reply, outcome: Result<Option<&Trailers>, &Status>) {
    let outcome = match outcome {
        Ok(None) => None,
        Ok(Some(trailers)) => Some(Ok(&trailers.0)),
        Err(status) => Some(Err(status)),
    };
    match outcome {
        None => send_block(state, reply, Block { fixed: Some(&TRAILERS_OK), extra: &NO_FIELDS }, true),
        Some(outcome) => {
            let mut fields = FieldList::new();
            status::emit(outcome, metadata::SENT_SIZE_MAX, &mut fields);
            send_block(state, reply, Block { fixed: None, extra: &fields }, true);
        }
    }
    finish(state, reply);
}

/// Answers with a status and nothing else: Trailers-Only.
pub(super) fn send_status(state: &mut State, reply: &Reply, status: &Status) {
    let mut fields = FieldList::new();
    status::emit(Err(status), metadata::SENT_SIZE_MAX, &mut fields);
    send_block(state, reply, Block { fixed: Some(&HEAD), extra: &fields }, true);
    finish(state, reply);
}

/// Ends a call with an error, wherever its response stands: with trailers if the head has been sent, else Trailers-Only.
pub(super) fn end_with(state: &mut State, reply: &Reply, status: &Status) {
    match state.slot(reply.key) {
        Some(slot) if slot.head_sent => send_trailers(state, reply, Err(status)),
        Some(_) => send_status(state, reply, status),
        None => {}
    }
}

/// A call that was lost meanwhile takes nothing any more: then nothing is sent.
fn send_block(state: &mut State, reply: &Reply, block: Block<'_>, end_stream: bool) {
    let Some((slot, http2, _)) = state.parts(reply.key) else { return };
    if !slot.send_closed {
        // The only errors are a stream that is gone, of which the slot has been or will be told.
        let _ = http2.send_headers(reply.stream, block, end_stream);
    }
}

/// The response is complete: the slot has served its purpose.
pub(super) fn finish(state: &mut State, reply: &Reply) {
    let Some(mut slot) = state.remove(reply.key) else { return };
    for waker in slot.take_wakers() {
        state.wake_later(Some(waker));
    }
    // RFC 9113 §8.1: a server that has answered asks the client with NO_ERROR to stop sending the rest. While the answer
    // itself waits for flow control, or for a client that does not read, it can't: the reset would take it along, and free
    // the place of the stream for the next request.
    if slot.end.is_none() && !state.http2.has_queued(reply.stream) {
        state.http2.reset(reply.stream, ErrorCode::NoError);
    }
}
