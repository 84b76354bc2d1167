//! Encodes responses and writes them under the connection's lock.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock, Mutex, OnceLock, PoisonError};

use http::header::{CONTENT_TYPE, VARY};
use http::{HeaderMap, StatusCode};
use thalweg_http2::{Block, ErrorCode, FieldList, FixedFields, Indexing, StreamId};

use crate::connection::{
    Connection, Outgoing, Single, Slot, SlotKey, State, put_encode_buffer, take_encode_buffer,
};
use crate::encode::Encode;
use crate::grpc::compression::{Encoding, EncodingSet};
use crate::grpc::{content_type, metadata, response, status};
use crate::raw::{self, Piece, Trailers};
use crate::status::{Code, Status};

/// Destination and encoding of a call's response.
#[derive(Clone, Copy, Debug)]
pub(super) struct ResponseTarget {
    pub(super) key: SlotKey,
    pub(super) stream: StreamId,
    pub(super) outgoing: Outgoing,
    pub(super) headers: &'static FixedHeaders,
}

/// The fixed headers of all responses of a method.
pub(super) type FixedHeaders = Arc<FixedFields>;

/// Returns the fixed response headers for the encodings accepted in requests and the content subtype.
pub(super) fn fixed_headers(accepts: EncodingSet, content_subtype: &'static str) -> &'static FixedHeaders {
    static HEADERS: [OnceLock<FixedHeaders>; EncodingSet::COUNT] =
        [const { OnceLock::new() }; EncodingSet::COUNT];
    if !content_subtype.is_empty() {
        return fixed_headers_of_subtype(accepts, content_subtype);
    }
    HEADERS[accepts.index()].get_or_init(|| FixedFields::new(response::fixed_fields(accepts, "")))
}

/// Never freed: their number is limited to the subtypes in the program.
fn fixed_headers_of_subtype(accepts: EncodingSet, content_subtype: &'static str) -> &'static FixedHeaders {
    static HEADERS: Mutex<BTreeMap<(usize, &str), &FixedHeaders>> = Mutex::new(BTreeMap::new());
    let mut cache = HEADERS.lock().unwrap_or_else(PoisonError::into_inner);
    cache.entry((accepts.index(), content_subtype)).or_insert_with(|| {
        Box::leak(Box::new(FixedFields::new(response::fixed_fields(accepts, content_subtype))))
    })
}

/// Trailers of a successful call without metadata.
static TRAILERS_OK: LazyLock<Arc<FixedFields>> = LazyLock::new(|| {
    let mut fields = FieldList::new();
    fields.push(b"grpc-status", b"0", Indexing::Insert);
    FixedFields::new(fields)
});

static NO_FIELDS: LazyLock<FieldList> = LazyLock::new(FieldList::new);

/// A response of one message.
pub struct MessageResponse<'a, M> {
    /// The initial metadata.
    pub metadata: &'a HeaderMap,
    /// The message.
    pub message: M,
    /// The trailing metadata.
    pub trailers: Option<&'a HeaderMap>,
}

impl<'a, M> MessageResponse<'a, M> {
    /// Converts the message.
    pub(super) fn map<T>(self, map: impl FnOnce(M) -> T) -> MessageResponse<'a, T> {
        MessageResponse { metadata: self.metadata, message: map(self.message), trailers: self.trailers }
    }
}

/// An encoded response. Sending it runs no user code.
pub(super) enum Response<'a> {
    /// A message without metadata.
    Plain(Single),
    Full {
        metadata: &'a HeaderMap,
        message: Single,
        trailers: Option<&'a HeaderMap>,
    },
    Failed(Cow<'a, Status>),
}

impl ResponseTarget {
    /// Creates the target of a call that ends with a status before a handler runs.
    pub(super) fn for_refusal(key: SlotKey, stream: StreamId, headers: &'static FixedHeaders) -> Self {
        Self { key, stream, outgoing: Outgoing::default(), headers }
    }
}

impl<'a> Response<'a> {
    /// Encodes a handler's result. A small message is appended to `encode_buffer`.
    #[expect(clippy::inline_always, reason = "saves some 20 instructions per call")]
    #[inline(always)]
    pub(super) fn new<M: Encode>(
        outgoing: &Outgoing,
        result: &'a Result<MessageResponse<'a, M>, Status>,
        encode_buffer: &mut Vec<u8>,
    ) -> Self {
        let response = match result {
            Ok(response) => response,
            Err(status) => return Self::Failed(Cow::Borrowed(status)),
        };
        match outgoing.encode_single(&response.message, encode_buffer) {
            Ok(message) if is_plain(response, outgoing) => Self::Plain(message),
            Ok(message) => Self::Full { metadata: response.metadata, message, trailers: response.trailers },
            Err(status) => Self::Failed(Cow::Owned(status)),
        }
    }

    /// Responds to the call. `encode_buffer` holds the encoded message.
    pub(super) fn send(self, state: &mut State, target: &ResponseTarget, encode_buffer: &[u8]) {
        match self {
            Self::Plain(message) => send_plain(state, target, message, encode_buffer),
            Self::Full { metadata, message, trailers } => {
                send_message(state, target, metadata, message, trailers, encode_buffer);
            }
            Self::Failed(status) => send_status(state, target, &status),
        }
    }
}

/// Responds to a call from outside its connection's driver.
pub(super) fn send<M: Encode>(
    connection: &Connection,
    target: &ResponseTarget,
    result: &Result<MessageResponse<'_, M>, Status>,
) {
    let mut encode_buffer = take_encode_buffer();
    let response = Response::new(&target.outgoing, result, &mut encode_buffer);
    let mut state = connection.lock();
    response.send(&mut state, target, &encode_buffer);
    state.notify_driver();
    drop(state);
    put_encode_buffer(encode_buffer);
}

/// Responds with a status only, from outside the connection's driver.
pub(super) fn fail(connection: &Connection, target: &ResponseTarget, status: &Status) {
    let mut state = connection.lock();
    send_status(&mut state, target, status);
    state.notify_driver();
}

pub(super) static NO_METADATA: LazyLock<HeaderMap> = LazyLock::new(HeaderMap::new);

/// Sends a whole unary response: headers, message and trailers.
fn send_message(
    state: &mut State,
    target: &ResponseTarget,
    metadata: &HeaderMap,
    message: Single,
    trailers: Option<&HeaderMap>,
    encode_buffer: &[u8],
) {
    if let Err(error) = send_headers(state, target, metadata) {
        return send_status(state, target, &error);
    }
    let Some((slot, http2, _)) = state.parts(target.key) else { return };
    if slot.send_closed {
        return;
    }
    let len = message.message_len();
    note_sent(slot, len);
    // Fails only if the stream has ended, which its slot learns separately.
    let _ = message.send(http2, target.stream, encode_buffer, false);
    state.note_response(len);
    send_trailers(state, target, Ok(trailers));
}

#[inline]
fn note_sent(slot: &Slot, bytes: usize) {
    if let Some(measure) = slot.measure() {
        measure.sent(bytes);
    }
}

/// Returns whether a response has no fields of its own.
#[inline]
fn is_plain<M>(response: &MessageResponse<'_, M>, outgoing: &Outgoing) -> bool {
    outgoing.encoding == Encoding::Identity && response.metadata.is_empty() && response.trailers.is_none()
}

/// Sends a response that is only a message. If it is small and nothing has to wait, it is sent in one operation.
#[inline]
pub(super) fn send_plain(state: &mut State, target: &ResponseTarget, message: Single, encode_buffer: &[u8]) {
    if let Single::Small(range) = &message {
        let Some((slot, http2, _)) = state.parts(target.key) else { return };
        if slot.send_closed {
            return;
        }
        let bytes = &encode_buffer[range.clone()];
        let headers = Block { fixed: Some(target.headers), extra: &NO_FIELDS };
        let trailers = Block { fixed: Some(&TRAILERS_OK), extra: &NO_FIELDS };
        // Fails only if the stream has ended, which its slot learns separately.
        if http2.send_response(target.stream, headers, bytes, trailers) != Ok(false) {
            note_sent(slot, message.message_len());
            finish(state, target, Code::Ok);
            return;
        }
    }
    send_message(state, target, &NO_METADATA, message, None, encode_buffer);
}

/// Fixed headers of gRPC responses to raw requests.
pub(super) static GRPC_HEADERS: LazyLock<FixedHeaders> = LazyLock::new(|| {
    let mut fields = FieldList::new();
    fields.push(b":status", b"200", Indexing::Insert);
    fields.push(b"content-type", content_type::GRPC.as_bytes(), Indexing::Insert);
    FixedFields::new(fields)
});

/// Response headers for a failed non-gRPC request.
pub(super) static FAILED_HEADERS: LazyLock<FixedHeaders> = LazyLock::new(|| {
    let mut fields = FieldList::new();
    fields.push(b":status", b"500", Indexing::Insert);
    FixedFields::new(fields)
});

/// Headers of JSON responses, without and with `vary: accept-encoding`.
static JSON_HEADERS: LazyLock<[FixedHeaders; 2]> = LazyLock::new(|| {
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

/// Returns the fixed headers of a common raw response, if it is one.
fn common_headers(status: StatusCode, headers: &HeaderMap) -> Option<&'static FixedHeaders> {
    if status != StatusCode::OK || headers.len() > 2 {
        return None;
    }
    let mut fields = headers.iter();
    let (name, value) = fields.next()?;
    if *name != CONTENT_TYPE || value.as_bytes() != JSON {
        return None;
    }
    match fields.next() {
        None => Some(&JSON_HEADERS[0]),
        Some((name, value)) => {
            (*name == VARY && value.as_bytes() == ACCEPT_ENCODING).then_some(&JSON_HEADERS[1])
        }
    }
}

/// A complete raw response.
pub(super) struct CompleteResponse {
    pub(super) status: StatusCode,
    pub(super) headers: HeaderMap,
    pub(super) body: Piece,
    pub(super) trailers: Trailers,
}

impl CompleteResponse {
    /// Returns whether it is a gRPC response with only a message.
    pub(super) fn is_plain(&self) -> bool {
        matches!(self.trailers, Trailers::GrpcOk)
            && !self.body.is_empty()
            && self.status == StatusCode::OK
            && self.headers.len() == 1
            && self.headers.iter().all(|(name, value)| *name == CONTENT_TYPE && value == content_type::GRPC)
    }
}

/// Sends a raw response.
pub(super) fn send_raw(state: &mut State, target: &ResponseTarget, response: &CompleteResponse) {
    let CompleteResponse { status, headers, body, trailers } = response;
    let has_trailers = !matches!(trailers, Trailers::None);
    if !send_raw_headers(state, target, *status, headers, body.is_empty() && !has_trailers) {
        return;
    }
    let code = trailers.code(status.as_u16(), headers);
    if !body.is_empty() {
        let Some((slot, http2, _)) = state.parts(target.key) else { return };
        if slot.send_closed {
            return;
        }
        note_sent(slot, body.len());
        // Fails only if the stream has ended, which its slot learns separately.
        let _ = match body.as_contiguous() {
            Some(bytes) => http2.send_data(target.stream, [bytes.clone()], !has_trailers),
            None => http2.send_data(target.stream, body.parts().cloned().collect::<Vec<_>>(), !has_trailers),
        };
        state.note_response(body.len());
    }
    end_raw(state, target, trailers, code);
}

/// Sends raw response headers. Returns false if they cannot be sent; the call has then failed.
pub(super) fn send_raw_headers(
    state: &mut State,
    target: &ResponseTarget,
    status: StatusCode,
    headers: &HeaderMap,
    end_stream: bool,
) -> bool {
    // The application is responsible for the size, up to the client's limit.
    let size_max = state.http2.header_list_max();
    let common = common_headers(status, headers).filter(|headers| headers.fields().size() <= size_max);
    if common.is_some() {
        send_block(state, target, Block { fixed: common, extra: &NO_FIELDS }, end_stream);
    } else {
        let mut fields = FieldList::new();
        if let Err(error) = raw::emit_headers(status, headers, size_max, &mut fields) {
            let status = raw::stated_failure(headers).unwrap_or_else(|| error.into());
            send_status(state, target, &status);
            return false;
        }
        send_block(state, target, Block { fixed: None, extra: &fields }, end_stream);
    }
    if let Some(call) = state.slot(target.key).and_then(Slot::server) {
        call.headers_sent = true;
    }
    true
}

/// Ends a raw response after its body. Without trailers, the last piece has already ended it.
pub(super) fn end_raw(state: &mut State, target: &ResponseTarget, trailers: &Trailers, code: Code) {
    if code != Code::Ok {
        state.note_failed(target.key);
    }
    match trailers {
        Trailers::None => {}
        Trailers::GrpcOk => {
            send_block(state, target, Block { fixed: Some(&TRAILERS_OK), extra: &NO_FIELDS }, true);
        }
        Trailers::Fields(trailers) => {
            let mut fields = FieldList::new();
            let size_max = state.http2.header_list_max();
            if let Err(error) = raw::emit_trailers(trailers, size_max, &mut fields) {
                fields.clear();
                let status = raw::stated_failure(trailers).unwrap_or_else(|| error.into());
                status::emit(Err(&status), size_max, &mut fields);
            }
            send_block(state, target, Block { fixed: None, extra: &fields }, true);
        }
    }
    finish(state, target, code);
}

/// Returns the maximum header list size in bytes, without the fixed response fields: the client's limit or our own,
/// whichever is smaller.
fn sent_size_max(state: &State, target: &ResponseTarget) -> usize {
    metadata::SENT_SIZE_MAX.min(state.http2.header_list_max().saturating_sub(target.headers.fields().size()))
}

/// Sends response headers.
///
/// # Errors
/// Returns an error if the metadata cannot be sent. Nothing has been sent then.
pub(super) fn send_headers(
    state: &mut State,
    target: &ResponseTarget,
    metadata: &HeaderMap,
) -> Result<(), Status> {
    let encoding = target.outgoing.encoding;
    if metadata.is_empty() && encoding == Encoding::Identity {
        send_block(state, target, Block { fixed: Some(target.headers), extra: &NO_FIELDS }, false);
        return Ok(());
    }
    let mut extra = FieldList::new();
    response::emit_headers(encoding, metadata, sent_size_max(state, target), &mut extra)?;
    send_block(state, target, Block { fixed: Some(target.headers), extra: &extra }, false);
    Ok(())
}

/// Ends a response whose headers have been sent.
pub(super) fn send_trailers(
    state: &mut State,
    target: &ResponseTarget,
    outcome: Result<Option<&HeaderMap>, &Status>,
) {
    let code = outcome.as_ref().map_or_else(|status| status.code(), |_| Code::Ok);
    let outcome = match outcome {
        Ok(None) => None,
        Ok(Some(trailers)) => Some(Ok(trailers)),
        Err(status) => Some(Err(status)),
    };
    match outcome {
        None => send_block(state, target, Block { fixed: Some(&TRAILERS_OK), extra: &NO_FIELDS }, true),
        Some(outcome) => {
            if outcome.is_err() {
                state.note_failed(target.key);
            }
            let mut fields = FieldList::new();
            status::emit(outcome, sent_size_max(state, target), &mut fields);
            send_block(state, target, Block { fixed: None, extra: &fields }, true);
        }
    }
    finish(state, target, code);
}

/// Responds with a status only (Trailers-Only).
pub(super) fn send_status(state: &mut State, target: &ResponseTarget, status: &Status) {
    state.note_failed(target.key);
    let mut fields = FieldList::new();
    status::emit(Err(status), sent_size_max(state, target), &mut fields);
    send_block(state, target, Block { fixed: Some(target.headers), extra: &fields }, true);
    finish(state, target, status.code());
}

/// Like [`send_status`], for a call whose handler has not started.
pub(super) fn refuse(state: &mut State, target: &ResponseTarget, status: &Status) {
    if let Some(measure) = state.slot(target.key).and_then(|slot| slot.measure()) {
        measure.refused(status);
    }
    send_status(state, target, status);
}

/// Ends a call with an error: with trailers if the headers have been sent, else as Trailers-Only.
pub(super) fn end_with(state: &mut State, target: &ResponseTarget, status: &Status) {
    match state.slot(target.key).and_then(Slot::server) {
        Some(call) if call.headers_sent => send_trailers(state, target, Err(status)),
        Some(_) => send_status(state, target, status),
        None => {}
    }
}

/// Sends nothing if the call has ended meanwhile.
fn send_block(state: &mut State, target: &ResponseTarget, block: Block<'_>, end_stream: bool) {
    let Some((slot, http2, _)) = state.parts(target.key) else { return };
    if !slot.send_closed {
        // Fails only if the stream has ended, which its slot learns separately.
        let _ = http2.send_headers(target.stream, block, end_stream);
    }
}

/// Discards the slot after a complete response.
pub(super) fn finish(state: &mut State, target: &ResponseTarget, code: Code) {
    let Some(is_ended) = state.discard_ended(target.key, code) else { return };
    // RFC 9113 §8.1: after a complete response the server asks the client with NO_ERROR to stop sending the request. It
    // must not do so while the response waits for flow control or for a client that does not read. The reset would
    // discard the response and free the stream for the next request.
    if !is_ended && !state.http2.has_queued(target.stream) {
        state.http2.reset(target.stream, ErrorCode::NoError);
    }
}
