//! Encodes responses, and writes them under the connection's lock.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock, Mutex, OnceLock, PoisonError};

use bytes::Bytes;
use http::header::{CONTENT_TYPE, VARY};
use http::{HeaderMap, StatusCode};
use thalweg_http2::{Block, ErrorCode, FieldList, FixedFields, Indexing, StreamId};

use crate::connection::{Connection, Outgoing, Single, Slot, SlotKey, State, keep_scratch, take_scratch};
use crate::encode::Encode;
use crate::grpc::compression::{Encoding, EncodingSet};
use crate::grpc::{content_type, metadata, response, status};
use crate::raw::{self, Trailers};
use crate::status::{Code, Status};

/// Where a call's response goes, and how it is encoded.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reply {
    pub(super) key: SlotKey,
    pub(super) stream: StreamId,
    pub(super) outgoing: Outgoing,
    pub(super) head: &'static FixedHead,
}

/// What the heads of all responses of a method begin with.
pub(super) type FixedHead = Arc<FixedFields>;

/// What the heads of responses begin with where requests may be compressed in these ways, and have this content
/// subtype.
pub(super) fn fixed_head(accepts: EncodingSet, content_subtype: &'static str) -> &'static FixedHead {
    static HEADS: [OnceLock<FixedHead>; EncodingSet::COUNT] = [const { OnceLock::new() }; EncodingSet::COUNT];
    if !content_subtype.is_empty() {
        return fixed_head_of_subtype(accepts, content_subtype);
    }
    HEADS[accepts.index()].get_or_init(|| FixedFields::new(response::fixed_fields(accepts, "")))
}

/// They stay: there are as many as the program has names of subtypes.
fn fixed_head_of_subtype(accepts: EncodingSet, content_subtype: &'static str) -> &'static FixedHead {
    static HEADS: Mutex<BTreeMap<(usize, &str), &FixedHead>> = Mutex::new(BTreeMap::new());
    let mut heads = HEADS.lock().unwrap_or_else(PoisonError::into_inner);
    heads.entry((accepts.index(), content_subtype)).or_insert_with(|| {
        Box::leak(Box::new(FixedFields::new(response::fixed_fields(accepts, content_subtype))))
    })
}

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

impl<'a, M> Answer<'a, M> {
    /// The same with another message.
    pub(super) fn map<T>(self, map: impl FnOnce(M) -> T) -> Answer<'a, T> {
        Answer { metadata: self.metadata, message: map(self.message), trailers: self.trailers }
    }
}

/// What a call is answered with, encoded: nothing of the user's runs when it is sent.
pub(super) enum Response<'a> {
    /// A message, and nothing of the user's beside it.
    Plain(Single),
    Full {
        metadata: &'a HeaderMap,
        message: Single,
        trailers: Option<&'a HeaderMap>,
    },
    Failed(Cow<'a, Status>),
}

impl Reply {
    /// To a call that is answered with a status alone, before a handler has it.
    pub(super) fn of_none(key: SlotKey, stream: StreamId, head: &'static FixedHead) -> Self {
        Self { key, stream, outgoing: Outgoing::default(), head }
    }
}

impl<'a> Response<'a> {
    /// Encodes a handler's result; a small message goes to the end of `scratch`.
    #[expect(clippy::inline_always, reason = "some 20 instructions of a call")]
    #[inline(always)]
    pub(super) fn new<M: Encode>(
        outgoing: &Outgoing,
        result: &'a Result<Answer<'a, M>, Status>,
        scratch: &mut Vec<u8>,
    ) -> Self {
        let answer = match result {
            Ok(answer) => answer,
            Err(status) => return Self::Failed(Cow::Borrowed(status)),
        };
        match outgoing.encode_single(&answer.message, scratch) {
            Ok(message) if is_plain(answer, outgoing) => Self::Plain(message),
            Ok(message) => Self::Full { metadata: answer.metadata, message, trailers: answer.trailers },
            Err(status) => Self::Failed(Cow::Owned(status)),
        }
    }

    /// Answers the call. `scratch` is what the message was encoded to.
    pub(super) fn send(self, state: &mut State, reply: &Reply, scratch: &[u8]) {
        match self {
            Self::Plain(message) => send_plain(state, reply, message, scratch),
            Self::Full { metadata, message, trailers } => {
                send_message(state, reply, metadata, message, trailers, scratch);
            }
            Self::Failed(status) => send_status(state, reply, &status),
        }
    }
}

/// Answers a call from outside its connection's driver.
pub(super) fn answer<M: Encode>(
    connection: &Connection,
    reply: &Reply,
    result: &Result<Answer<'_, M>, Status>,
) {
    let mut scratch = take_scratch();
    let response = Response::new(&reply.outgoing, result, &mut scratch);
    let mut state = connection.lock();
    response.send(&mut state, reply, &scratch);
    state.notify_driver();
    drop(state);
    keep_scratch(scratch);
}

/// Answers a call with a status alone, from outside its connection's driver.
pub(super) fn fail(connection: &Connection, reply: &Reply, status: &Status) {
    let mut state = connection.lock();
    send_status(&mut state, reply, status);
    state.notify_driver();
}

pub(super) static NO_METADATA: LazyLock<HeaderMap> = LazyLock::new(HeaderMap::new);

/// Sends a whole unary response: head, message, and trailers.
fn send_message(
    state: &mut State,
    reply: &Reply,
    metadata: &HeaderMap,
    message: Single,
    trailers: Option<&HeaderMap>,
    scratch: &[u8],
) {
    if let Err(error) = send_head(state, reply, metadata) {
        return send_status(state, reply, &error);
    }
    let Some((slot, http2, _)) = state.parts(reply.key) else { return };
    if slot.send_closed {
        return;
    }
    let len = message.message_len();
    note_sent(slot, len);
    // The only error is a stream that is gone, of which the slot has been or will be told.
    let _ = message.send(http2, reply.stream, scratch, false);
    state.note_response(len);
    send_trailers(state, reply, Ok(trailers));
}

#[inline]
fn note_sent(slot: &Slot, bytes: usize) {
    if let Some(measure) = slot.measure() {
        measure.sent(bytes);
    }
}

/// Whether a response has no fields of its own.
#[inline]
fn is_plain<M>(answer: &Answer<'_, M>, outgoing: &Outgoing) -> bool {
    outgoing.encoding == Encoding::Identity && answer.metadata.is_empty() && answer.trailers.is_none()
}

/// Sends a response that is no more than a message, in one go where it is small and nothing of it has to wait.
#[inline]
pub(super) fn send_plain(state: &mut State, reply: &Reply, message: Single, scratch: &[u8]) {
    if let Single::Small(range) = &message {
        let Some((slot, http2, _)) = state.parts(reply.key) else { return };
        if slot.send_closed {
            return;
        }
        let bytes = &scratch[range.clone()];
        let head = Block { fixed: Some(reply.head), extra: &NO_FIELDS };
        let trailers = Block { fixed: Some(&TRAILERS_OK), extra: &NO_FIELDS };
        // The only error is a stream that is gone, of which the slot has been or will be told.
        if http2.send_answer(reply.stream, head, bytes, trailers) != Ok(false) {
            note_sent(slot, message.message_len());
            finish(state, reply, Code::Ok);
            return;
        }
    }
    send_message(state, reply, &NO_METADATA, message, None, scratch);
}

/// What the head of a gRPC answer begins with that is somebody else's.
pub(super) static GRPC_HEAD: LazyLock<FixedHead> = LazyLock::new(|| {
    let mut fields = FieldList::new();
    fields.push(b":status", b"200", Indexing::Insert);
    fields.push(b"content-type", content_type::GRPC.as_bytes(), Indexing::Insert);
    FixedFields::new(fields)
});

/// The head of an answer that is not to be had, to a request that is not gRPC.
pub(super) static FAILED_HEAD: LazyLock<FixedHead> = LazyLock::new(|| {
    let mut fields = FieldList::new();
    fields.push(b":status", b"500", Indexing::Insert);
    FixedFields::new(fields)
});

/// What answers of JSON say: that alone, or that there may be other encodings of it.
static JSON_HEADS: LazyLock<[FixedHead; 2]> = LazyLock::new(|| {
    [false, true].map(|varies| {
        let mut fields = FieldList::new();
        fields.push(b":status", b"200", Indexing::Insert);
        fields.push(b"content-type", JSON, Indexing::Insert);
        if varies {
            fields.push(b"vary", ACCEPT_ENCODING, Indexing::Insert);
        }
        FixedFields::new(fields)
    })
});

const JSON: &[u8] = b"application/json";
const ACCEPT_ENCODING: &[u8] = b"accept-encoding";

/// The head of an answer that is like many others.
fn common_head(status: StatusCode, headers: &HeaderMap) -> Option<&'static FixedHead> {
    if status != StatusCode::OK || headers.len() > 2 {
        return None;
    }
    let mut fields = headers.iter();
    let (name, value) = fields.next()?;
    if *name != CONTENT_TYPE || value.as_bytes() != JSON {
        return None;
    }
    match fields.next() {
        None => Some(&JSON_HEADS[0]),
        Some((name, value)) => {
            (*name == VARY && value.as_bytes() == ACCEPT_ENCODING).then_some(&JSON_HEADS[1])
        }
    }
}

/// A whole answer that is sent as it is.
pub(super) struct RawAnswer {
    pub(super) status: StatusCode,
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
    pub(super) trailers: Trailers,
}

impl RawAnswer {
    /// Whether there is nothing to it but a message.
    pub(super) fn is_plain(&self) -> bool {
        matches!(self.trailers, Trailers::GrpcOk)
            && !self.body.is_empty()
            && self.status == StatusCode::OK
            && self.headers.len() == 1
            && self.headers.iter().all(|(name, value)| *name == CONTENT_TYPE && value == content_type::GRPC)
    }
}

/// Sends an answer as it is.
pub(super) fn send_raw(state: &mut State, reply: &Reply, answer: &RawAnswer) {
    let RawAnswer { status, headers, body, trailers } = answer;
    let has_trailers = !matches!(trailers, Trailers::None);
    if !send_raw_head(state, reply, *status, headers, body.is_empty() && !has_trailers) {
        return;
    }
    let code = trailers.code(status.as_u16(), headers);
    if !body.is_empty() {
        let Some((slot, http2, _)) = state.parts(reply.key) else { return };
        if slot.send_closed {
            return;
        }
        note_sent(slot, body.len());
        // The only error is a stream that is gone, of which the slot has been or will be told.
        let _ = http2.send_data(reply.stream, [body.clone()], !has_trailers);
        state.note_response(body.len());
    }
    end_raw(state, reply, trailers, code);
}

/// Sends the head of an answer as it is. `false`: it can't be sent, and the call has failed.
pub(super) fn send_raw_head(
    state: &mut State,
    reply: &Reply,
    status: StatusCode,
    headers: &HeaderMap,
    end_stream: bool,
) -> bool {
    // How much that is, who answers has to know.
    let size_max = state.http2.header_list_max();
    let common = common_head(status, headers).filter(|head| head.fields().size() <= size_max);
    if common.is_some() {
        send_block(state, reply, Block { fixed: common, extra: &NO_FIELDS }, end_stream);
    } else {
        let mut fields = FieldList::new();
        if let Err(error) = raw::emit_head(status, headers, size_max, &mut fields) {
            let status = raw::stated_failure(headers).unwrap_or_else(|| error.into());
            send_status(state, reply, &status);
            return false;
        }
        send_block(state, reply, Block { fixed: None, extra: &fields }, end_stream);
    }
    if let Some(call) = state.slot(reply.key).and_then(Slot::server) {
        call.head_sent = true;
    }
    true
}

/// Ends an answer whose body is sent; one without trailers has ended with its last piece.
pub(super) fn end_raw(state: &mut State, reply: &Reply, trailers: &Trailers, code: Code) {
    if code != Code::Ok {
        state.note_failed(reply.key);
    }
    match trailers {
        Trailers::None => {}
        Trailers::GrpcOk => {
            send_block(state, reply, Block { fixed: Some(&TRAILERS_OK), extra: &NO_FIELDS }, true);
        }
        Trailers::Fields(trailers) => {
            let mut fields = FieldList::new();
            let size_max = state.http2.header_list_max();
            if let Err(error) = raw::emit_trailers(trailers, size_max, &mut fields) {
                fields.clear();
                let status = raw::stated_failure(trailers).unwrap_or_else(|| error.into());
                status::emit(Err(&status), size_max, &mut fields);
            }
            send_block(state, reply, Block { fixed: None, extra: &fields }, true);
        }
    }
    finish(state, reply, code);
}

/// How large a header list may be, the fixed fields of a response left out, in bytes: what the client accepts, and no
/// more than we send.
fn sent_size_max(state: &State, reply: &Reply) -> usize {
    metadata::SENT_SIZE_MAX.min(state.http2.header_list_max().saturating_sub(reply.head.fields().size()))
}

/// Sends the head of a response.
///
/// # Errors
/// When the metadata can't be sent; nothing has been then.
pub(super) fn send_head(state: &mut State, reply: &Reply, metadata: &HeaderMap) -> Result<(), Status> {
    let encoding = reply.outgoing.encoding;
    if metadata.is_empty() && encoding == Encoding::Identity {
        send_block(state, reply, Block { fixed: Some(reply.head), extra: &NO_FIELDS }, false);
        return Ok(());
    }
    let mut extra = FieldList::new();
    response::emit_head(encoding, metadata, sent_size_max(state, reply), &mut extra)?;
    send_block(state, reply, Block { fixed: Some(reply.head), extra: &extra }, false);
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
            if outcome.is_err() {
                state.note_failed(reply.key);
            }
            let mut fields = FieldList::new();
            status::emit(outcome, sent_size_max(state, reply), &mut fields);
            send_block(state, reply, Block { fixed: None, extra: &fields }, true);
        }
    }
    finish(state, reply, code);
}

/// Answers with a status and nothing else: Trailers-Only.
pub(super) fn send_status(state: &mut State, reply: &Reply, status: &Status) {
    state.note_failed(reply.key);
    let mut fields = FieldList::new();
    status::emit(Err(status), sent_size_max(state, reply), &mut fields);
    send_block(state, reply, Block { fixed: Some(reply.head), extra: &fields }, true);
    finish(state, reply, status.code());
}

/// As [`send_status`], of a call that no handler has begun.
pub(super) fn refuse(state: &mut State, reply: &Reply, status: &Status) {
    if let Some(measure) = state.slot(reply.key).and_then(|slot| slot.measure()) {
        measure.refused(status);
    }
    send_status(state, reply, status);
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
    let Some(is_ended) = state.discard_ended(reply.key, code) else { return };
    // RFC 9113 §8.1: a server that has answered asks the client with NO_ERROR to stop sending the rest. While the
    // answer itself waits for flow control, or for a client that does not read, it can't: the reset would take it
    // along, and free the stream for the next request.
    if !is_ended && !state.http2.has_queued(reply.stream) {
        state.http2.reset(reply.stream, ErrorCode::NoError);
    }
}
