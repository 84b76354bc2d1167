//! Writes responses, under the connection's lock.

use std::sync::{Arc, LazyLock};

use http::HeaderMap;
use thalweg_http2::{Block, ErrorCode, FieldList, FixedFields, Indexing, StreamId};

use crate::connection::{Outgoing, Slot, SlotKey, SmallMessage, State, send_single};
use crate::encode::Encode;
use crate::grpc::compression::{Encoding, EncodingSet};
use crate::grpc::envelope::PREFIX_LEN;
use crate::grpc::{metadata, response, status};
use crate::status::{Code, Status};

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

/// What answers a call with one message.
pub struct Answer<'a, M> {
    /// The initial metadata.
    pub metadata: &'a HeaderMap,
    /// The message.
    pub message: M,
    /// The trailing metadata.
    pub trailers: Option<&'a HeaderMap>,
}

/// Answers a call with its handler's result.
#[inline]
pub(super) fn send_result<M: Encode>(
    state: &mut State,
    reply: &Reply,
    result: &Result<Answer<'_, M>, Status>,
) {
    match result {
        Ok(answer) => send_answer(state, reply, answer),
        Err(status) => send_status(state, reply, status),
    }
}

/// Sends a whole unary response: head, message, and trailers.
fn send_answer<M: Encode>(state: &mut State, reply: &Reply, answer: &Answer<'_, M>) {
    let message = &answer.message;
    let small = match reply.outgoing.small(message) {
        Ok(small) => small,
        Err(error) => return send_status(state, reply, &error),
    };
    if let Some(small) = small
        && is_plain(answer, reply)
        && send_plain(state, reply, &small)
    {
        return;
    }
    if let Err(error) = send_head(state, reply, answer.metadata) {
        return send_status(state, reply, &error);
    }
    let Some((slot, http2, _)) = state.parts(reply.key) else { return };
    if slot.send_closed {
        return;
    }
    match send_single(http2, reply.stream, message, &reply.outgoing, false) {
        Ok(sent) => {
            note_sent(slot, sent.unwrap_or(0));
            send_trailers(state, reply, Ok(answer.trailers));
        }
        Err(error) => send_trailers(state, reply, Err(&error)),
    }
}

#[inline]
fn note_sent(slot: &Slot, bytes: usize) {
    if let Some(measure) = slot.measure() {
        measure.sent(bytes);
    }
}

/// Whether a response has no fields of its own.
#[inline]
fn is_plain<M>(answer: &Answer<'_, M>, reply: &Reply) -> bool {
    reply.outgoing.encoding == Encoding::Identity && answer.metadata.is_empty() && answer.trailers.is_none()
}

/// Sends a response that is no more than a small message in one go, unless part of it has to wait.
fn send_plain<M: Encode>(state: &mut State, reply: &Reply, message: &SmallMessage<'_, M>) -> bool {
    let Some((slot, http2, _)) = state.parts(reply.key) else { return true };
    if slot.send_closed {
        return true;
    }
    let head = Block { fixed: Some(&HEAD), extra: &NO_FIELDS };
    let trailers = Block { fixed: Some(&TRAILERS_OK), extra: &NO_FIELDS };
    let mut encoded = Ok(());
    let encode = |out: &mut Vec<u8>| {
        encoded = message.encode(out);
        encoded.is_ok()
    };
    let sent = http2.send_answer(reply.stream, head, message.envelope_len(), encode, trailers);
    match (sent, encoded) {
        (Ok(false), _) => return false,
        (Ok(true), Err(error)) => send_trailers(state, reply, Err(&error)),
        // The only error is a stream that is gone, of which the slot has been or will be told.
        (Ok(true), Ok(())) | (Err(_), _) => {
            note_sent(slot, message.envelope_len() - PREFIX_LEN);
            finish(state, reply, Code::Ok);
        }
    }
    true
}

/// Sends the head of a response.
///
/// # Errors
/// When the metadata can't be sent; nothing has been then.
pub(super) fn send_head(state: &mut State, reply: &Reply, metadata: &HeaderMap) -> Result<(), Status> {
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
pub(super) fn send_trailers(state: &mut State, reply: &Reply, outcome: Result<Option<&HeaderMap>, &Status>) {
    let code = outcome.as_ref().map_or_else(|status| status.code(), |_| Code::Ok);
    let outcome = match outcome {
        Ok(None) => None,
        Ok(Some(trailers)) => Some(Ok(trailers)),
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
    finish(state, reply, code);
}

/// Answers with a status and nothing else: Trailers-Only.
pub(super) fn send_status(state: &mut State, reply: &Reply, status: &Status) {
    let mut fields = FieldList::new();
    status::emit(Err(status), metadata::SENT_SIZE_MAX, &mut fields);
    send_block(state, reply, Block { fixed: Some(&HEAD), extra: &fields }, true);
    finish(state, reply, status.code());
}

/// Ends a call with an error, wherever its response stands: with trailers if the head has been sent, else
/// Trailers-Only.
pub(super) fn end_with(state: &mut State, reply: &Reply, status: &Status) {
    match state.slot(reply.key).and_then(Slot::server) {
        Some(call) if call.head_sent => send_trailers(state, reply, Err(status)),
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

/// The response is complete: the slot is done with.
pub(super) fn finish(state: &mut State, reply: &Reply, code: Code) {
    let Some(mut slot) = state.remove(reply.key) else { return };
    // One that was lost meanwhile was not answered.
    if let Some(measure) = slot.measure() {
        measure.end(if slot.send_closed { Code::Cancelled } else { code });
    }
    state.wake_all_of(&mut slot);
    // RFC 9113 §8.1: a server that has answered asks the client with NO_ERROR to stop sending the rest. While the
    // answer itself waits for flow control, or for a client that does not read, it can't: the reset would take it
    // along, and free the stream for the next request.
    if slot.end.is_none() && !state.http2.has_queued(reply.stream) {
        state.http2.reset(reply.stream, ErrorCode::NoError);
    }
}
