//! The body of a raw request or response.

use std::collections::VecDeque;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::HeaderMap;
use http_body::{Frame, SizeHint};
use tokio::time::Sleep;

use super::inbox::{GATHERED_LEN_MAX, ReadUnit};
use super::receiving::{Arrived, Receiving};
use super::request_accounting::RequestAccounting;
use super::shared::Connection;
use super::slot::{End, SlotKey};
use crate::buffers;
use crate::grpc::envelope::{EnvelopeError, PREFIX_LEN, Prefix, SizeCheck, plain_message};
use crate::grpc::response::ResponseHeaders;
use crate::measure::CallMeasure;
use crate::raw::{Trailers, check_received};
use crate::status::{self, Code, Status};

/// Shorter batches are copied, which is cheaper than lending the buffer.
const POOLED_LEN_MIN: usize = 4 << 10;
/// Minimum initial capacity, in bytes, of streams whose recent batches are at least `POOLED_LEN_MIN`: two reads.
const NEXT_BUFFER_LEN_MIN: usize = 128 << 10;
/// Messages that arrived together are passed on in pieces of this size, which fit a copying reader's cache.
const PIECE_LEN: usize = 16 << 10;

/// The raw body of a request or response, and its trailers.
///
/// In a gRPC body each piece consists of one or more whole messages, prefixes included, unless a message exceeds 16
/// MiB. Reading opens the peer's window. Dropping a response body before its end cancels the call.
#[derive(Default)]
pub struct RawBody(BodyKind);

#[derive(Default)]
enum BodyKind {
    #[default]
    Empty,
    Complete(Bytes, Trailers),
    /// A request that has arrived as a whole and is slow to decode.
    Long(Bytes, Box<(Arc<Connection>, SlotKey)>),
    Reader(Box<RawReader>),
}

impl RawBody {
    /// Creates a body that is available as a whole.
    pub fn complete(bytes: Bytes, trailers: Trailers) -> Self {
        Self(BodyKind::Complete(bytes, trailers))
    }

    /// Server: creates the body of a request that has arrived as a whole, is already counted in full by its connection,
    /// and is slow to decode.
    pub(crate) fn long(bytes: Bytes, connection: &Arc<Connection>, key: SlotKey) -> Self {
        Self(BodyKind::Long(bytes, Box::new((Arc::clone(connection), key))))
    }

    /// Returns the accounting of memory and decoding time for this body. It does nothing for a body that is available
    /// as a whole and is quick to decode.
    pub fn accounting(&self) -> RequestAccounting {
        match &self.0 {
            BodyKind::Empty | BodyKind::Complete(..) => RequestAccounting::default(),
            BodyKind::Long(bytes, of) => RequestAccounting::of_call(&of.0, of.1, bytes.len()),
            BodyKind::Reader(reader) => {
                RequestAccounting::of_call(&reader.receiving.connection, reader.receiving.key, 0)
            }
        }
    }

    pub(crate) fn reader(reader: Box<RawReader>) -> Self {
        Self(BodyKind::Reader(reader))
    }

    /// Returns the whole body and leaves it empty, if it is available as a whole.
    pub fn take_complete(&mut self) -> Option<(Bytes, Trailers)> {
        match std::mem::take(&mut self.0) {
            BodyKind::Empty => Some((Bytes::new(), Trailers::None)),
            BodyKind::Complete(bytes, trailers) => Some((bytes, trailers)),
            BodyKind::Long(bytes, _) => Some((bytes, Trailers::None)),
            reader @ BodyKind::Reader(_) => {
                self.0 = reader;
                None
            }
        }
    }
}

impl http_body::Body for RawBody {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        match &mut self.0 {
            BodyKind::Empty => Poll::Ready(None),
            BodyKind::Complete(bytes, _) if !bytes.is_empty() => {
                Poll::Ready(Some(Ok(Frame::data(std::mem::take(bytes)))))
            }
            BodyKind::Complete(_, trailers) => {
                let trailers = std::mem::take(trailers).into_fields();
                self.0 = BodyKind::Empty;
                Poll::Ready(trailers.map(|fields| Ok(Frame::trailers(fields))))
            }
            BodyKind::Long(bytes, _) => {
                let bytes = std::mem::take(bytes);
                self.0 = BodyKind::Empty;
                Poll::Ready((!bytes.is_empty()).then(|| Ok(Frame::data(bytes))))
            }
            BodyKind::Reader(reader) => reader.poll_frame(cx),
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.0 {
            BodyKind::Empty => true,
            BodyKind::Complete(bytes, trailers) => bytes.is_empty() && matches!(trailers, Trailers::None),
            BodyKind::Long(bytes, _) => bytes.is_empty(),
            BodyKind::Reader(reader) => reader.is_finished && reader.trailers.is_none(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            BodyKind::Empty => SizeHint::with_exact(0),
            BodyKind::Complete(bytes, _) | BodyKind::Long(bytes, _) => {
                SizeHint::with_exact(bytes.len() as u64)
            }
            BodyKind::Reader(_) => SizeHint::default(),
        }
    }
}

impl fmt::Debug for RawBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            BodyKind::Empty => f.write_str("RawBody(empty)"),
            BodyKind::Complete(bytes, _) | BodyKind::Long(bytes, _) => {
                write!(f, "RawBody({} bytes)", bytes.len())
            }
            BodyKind::Reader(_) => f.write_str("RawBody(it comes)"),
        }
    }
}

/// Reads a stream that has not ended yet.
pub(crate) struct RawReader {
    receiving: Receiving,
    /// Client: the response headers, once they have arrived.
    headers: Option<Arc<ResponseHeaders>>,
    /// Whether the body is gRPC's.
    gathers: bool,
    /// Bytes to pass on as they arrive, before the next message begins.
    passthrough_len: u64,
    /// Bytes to return next.
    batch: Bytes,
    /// Lengths of the batch's pieces, except for the last one.
    piece_lens: VecDeque<usize>,
    /// Decaying maximum of recent batch sizes, in bytes: the initial capacity for the next batch.
    batch_len: usize,
    /// The beginning of an incomplete message.
    tail: Vec<u8>,
    trailers: Option<HeaderMap>,
    is_finished: bool,
    measure: CallMeasure,
    /// Client: limits of the method in the service config, if it has any.
    limits: Option<Box<RawLimits>>,
}

/// Limits of a response that is read.
pub(crate) struct RawLimits {
    pub(crate) sizes: Option<SizeCheck>,
    /// Sleeps until the deadline.
    pub(crate) sleep: Option<Pin<Box<Sleep>>>,
}

impl RawLimits {
    fn poll_deadline(&mut self, cx: &mut Context<'_>) -> Poll<Status> {
        let Some(sleep) = &mut self.sleep else { return Poll::Pending };
        sleep.as_mut().poll(cx).map(|()| status::deadline_exceeded_at("the response was not complete"))
    }
}

impl RawReader {
    /// Client: reads the response.
    pub(crate) fn of_response(
        connection: Arc<Connection>,
        key: SlotKey,
        gathers: bool,
        measure: CallMeasure,
    ) -> Self {
        Self::new(Receiving { connection, key, is_client: true }, gathers, measure)
    }

    /// Server: reads the request.
    pub(crate) fn of_request(
        connection: Arc<Connection>,
        key: SlotKey,
        gathers: bool,
        measure: CallMeasure,
    ) -> Self {
        Self::new(Receiving { connection, key, is_client: false }, gathers, measure)
    }

    fn new(receiving: Receiving, gathers: bool, measure: CallMeasure) -> Self {
        let passthrough_len = if gathers { 0 } else { u64::MAX };
        Self {
            receiving,
            headers: None,
            gathers,
            passthrough_len,
            batch: Bytes::new(),
            piece_lens: VecDeque::new(),
            batch_len: 0,
            tail: Vec::new(),
            trailers: None,
            is_finished: false,
            measure,
            limits: None,
        }
    }

    /// Client: limits the messages and the time of the response.
    pub(crate) fn set_limits(&mut self, limits: RawLimits) {
        self.limits = Some(Box::new(limits));
    }

    /// Client: waits for the response headers, or the end if there are none.
    pub(crate) fn poll_headers(&mut self, cx: &Context<'_>) -> Poll<Result<Arc<ResponseHeaders>, End>> {
        let polled = self.receiving.poll_headers(cx);
        if let Poll::Ready(Ok(headers)) = &polled {
            self.headers = Some(Arc::clone(headers));
        }
        polled
    }

    fn poll_frame(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        if self.is_finished {
            return Poll::Ready(self.trailers.take().map(|fields| Ok(Frame::trailers(fields))));
        }
        loop {
            if !self.batch.is_empty() {
                let piece = self.piece();
                if let Some(sizes) = self.limits.as_mut().and_then(|limits| limits.sizes.as_mut())
                    && let Err(status) = check_received(sizes, &piece)
                {
                    return Poll::Ready(Some(Err(self.fail(status))));
                }
                self.measure.received_message(piece.len(), false);
                return Poll::Ready(Some(Ok(Frame::data(piece))));
            }
            let mut bytes = Vec::new();
            let Poll::Ready(arrived) = self.poll_arrived(&mut bytes, cx) else {
                let Some(limits) = &mut self.limits else { return Poll::Pending };
                let status = ready!(limits.poll_deadline(cx));
                return Poll::Ready(Some(Err(self.fail(status))));
            };
            let end = match arrived {
                Ok(Arrived::End(end)) => end,
                Ok(Arrived::Truncated) => {
                    self.passthrough_len = u64::MAX;
                    self.split_messages(bytes);
                    continue;
                }
                Ok(Arrived::Bytes) => {
                    self.split_messages(bytes);
                    continue;
                }
                Err(error) => End::Lost { status: error.into(), unprocessed: false },
            };
            return match end {
                End::Complete(Ok(trailers)) => {
                    self.finish(trailers);
                    self.poll_frame(cx)
                }
                End::Complete(Err(status)) | End::Lost { status, .. } => {
                    Poll::Ready(Some(Err(self.fail(status))))
                }
            };
        }
    }

    #[cold]
    fn fail(&mut self, status: Status) -> Status {
        self.is_finished = true;
        if self.receiving.is_client {
            self.measure.fail(&status);
        }
        self.receiving.stop();
        status
    }

    fn poll_arrived(
        &mut self,
        bytes: &mut Vec<u8>,
        cx: &Context<'_>,
    ) -> Poll<Result<Arrived, EnvelopeError>> {
        let unit = if self.passthrough_len > 0 { ReadUnit::Bytes } else { ReadUnit::MessagesOrBytes };
        let tail = std::mem::take(&mut self.tail);
        self.receiving.poll_arrived(unit, tail, bytes, || self.next_buffer(), cx)
    }

    /// Returns the inbox's buffer for the next batch.
    fn next_buffer(&self) -> Option<Vec<u8>> {
        let len = if self.batch_len < POOLED_LEN_MIN { 0 } else { self.batch_len.max(NEXT_BUFFER_LEN_MIN) };
        buffers::take(len)
    }

    /// Makes the whole messages at the front of `bytes` the next batch. The rest waits for more bytes.
    fn split_messages(&mut self, mut bytes: Vec<u8>) {
        let mut end = usize::try_from(self.passthrough_len).unwrap_or(usize::MAX).min(bytes.len());
        if self.gathers && self.passthrough_len != u64::MAX {
            self.passthrough_len -= end as u64;
            let mut piece_start = end;
            if end > 0 {
                self.piece_lens.push_back(end);
            }
            while self.passthrough_len == 0 && end < bytes.len() {
                let start = end;
                end += match plain_message(&bytes[end..], GATHERED_LEN_MAX) {
                    // Most are this.
                    Some(message) => PREFIX_LEN + message.len(),
                    None => match Prefix::parse(&bytes[end..], GATHERED_LEN_MAX) {
                        Ok(Some(prefix)) if bytes.len() - end >= prefix.envelope_len() => {
                            prefix.envelope_len()
                        }
                        Ok(_) => break,
                        Err(_) => {
                            self.pass_through(&bytes[end..]);
                            end = bytes.len();
                            break;
                        }
                    },
                };
                if end - piece_start > PIECE_LEN && start > piece_start {
                    self.piece_lens.push_back(start - piece_start);
                    piece_start = start;
                }
            }
        }
        if end == 0 {
            self.tail = bytes;
            return;
        }
        if end < bytes.len() {
            self.tail = bytes.split_off(end);
        }
        self.batch_len = bytes.len().max(self.batch_len / 2);
        self.batch =
            if bytes.len() >= POOLED_LEN_MIN { buffers::pooled(bytes) } else { buffers::copy(bytes) };
    }

    /// Passes on a message as it comes: it is too large to gather. If it is invalid, so do all bytes after it.
    #[cold]
    fn pass_through(&mut self, bytes: &[u8]) {
        let large = Prefix::parse(bytes, usize::MAX).ok().flatten();
        let len = large.map_or(u64::MAX, |prefix| prefix.envelope_len() as u64);
        let there = bytes.len().min(len as usize) as u64;
        self.passthrough_len = if len == u64::MAX { len } else { len - there };
        self.piece_lens.clear();
    }

    /// Returns the next piece of the batch.
    fn piece(&mut self) -> Bytes {
        match self.piece_lens.pop_front() {
            Some(len) if len < self.batch.len() => self.batch.split_to(len),
            _ => std::mem::take(&mut self.batch),
        }
    }

    fn finish(&mut self, trailers: Option<Box<HeaderMap>>) {
        self.is_finished = true;
        if self.receiving.is_client {
            let trailers = trailers.map_or(Trailers::GrpcOk, |fields| Trailers::of(*fields));
            if self.measure.is_some() {
                let code = self
                    .headers
                    .as_ref()
                    .map(|headers| trailers.code(headers.http_status, &headers.metadata));
                self.measure.end(code.unwrap_or(Code::Unknown));
            }
            self.trailers = trailers.into_fields();
        }
        self.receiving.stop();
    }
}

impl Drop for RawReader {
    fn drop(&mut self) {
        self.receiving.stop();
    }
}
