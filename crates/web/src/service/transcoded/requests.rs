//! The messages of a stream in a request body: [`TranscodedRequests`].

use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use futures_core::Stream;
use http_body::Body as _;
use thalweg_engine::{BodyDecoder, RequestAccounting, Status};

use super::call::TranscodedCall;
use super::failure::Failure;
use super::target::BodyFormat;
use crate::body::Body;
use crate::compression::too_large;
use crate::transcoding::{Content, Values};

/// A stream of messages as wire bytes. An error is the last item.
pub(super) struct TranscodedRequests {
    body: Body,
    accounting: RequestAccounting,
    /// Decompresses the body as a whole.
    decoder: Option<BodyDecoder>,
    /// Decompressed bytes since the last message.
    decoded: usize,
    reader: BodyReader,
    call: TranscodedCall,
    /// Number of messages returned.
    count: usize,
    has_body_ended: bool,
    has_failed: bool,
    refusal: Arc<OnceLock<Failure>>,
}

/// Source of messages.
enum BodyReader {
    Values(Values),
    /// Received data of a raw body, and the maximum size of one message.
    Raw(Bytes, usize),
}

/// Maximum bytes decompressed at once.
const DECODED_LEN: usize = 16 << 10;

/// Upper bound of the tags and lengths around the data of a message, in bytes.
const OVERHEAD_MAX: usize = 32;

impl TranscodedRequests {
    pub(super) fn new(body: Body, call: TranscodedCall) -> TranscodedRequests {
        let size_max = call.size_max();
        let reader = match call.target().body_format {
            BodyFormat::Raw => {
                let overhead = call.head().content_type.len() + OVERHEAD_MAX;
                BodyReader::Raw(Bytes::new(), size_max.saturating_sub(overhead).max(1))
            }
            BodyFormat::Json | BodyFormat::Empty => {
                BodyReader::Values(Values::new(size_max, !call.head().is_json_lines))
            }
        };
        let encoding = call.head().encoding;
        let decoder = encoding.compresses().then(|| BodyDecoder::new(encoding));
        TranscodedRequests {
            accounting: body.memory_accounting(),
            body,
            decoder,
            decoded: 0,
            reader,
            call,
            count: 0,
            has_body_ended: false,
            has_failed: false,
            refusal: Arc::default(),
        }
    }

    /// Returns the failure to respond with if the call ends with this stream's error.
    pub(super) fn refusal_slot(&self) -> Arc<OnceLock<Failure>> {
        Arc::clone(&self.refusal)
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Bytes>, Failure>> {
        loop {
            ready!(self.accounting.poll_turn(cx));
            if let Some(data) = self.reader.take(false, self.count)? {
                self.decoded = 0;
                self.accounting.decoded(data.len());
                self.accounting.set_bytes(self.reader.len());
                return Poll::Ready(self.wire(data).map(Some));
            }
            if self.decode()? {
                continue;
            }
            if self.has_body_ended
                && let Some(data) = self.reader.take(true, self.count)?
            {
                return Poll::Ready(self.wire(data).map(Some));
            }
            if self.has_body_ended {
                return Poll::Ready(Ok(None));
            }
            self.body.expect_part(self.reader.has_partial_message().then_some(self.count as u64));
            let Some(frame) = ready!(Pin::new(&mut self.body).poll_frame(cx)) else {
                self.has_body_ended = true;
                let ended = self.decoder.as_mut().map_or(Ok(()), BodyDecoder::finish);
                ended.map_err(|error| Failure::unreadable(error.into()))?;
                continue;
            };
            // Request trailers are ignored.
            let Ok(piece) = frame?.into_data() else { continue };
            match &mut self.decoder {
                Some(decoder) => decoder.push(piece),
                None => self.reader.push(piece),
            }
            self.accounting.set_bytes(self.reader.len());
        }
    }

    /// Decompresses more data. Returns whether there was any.
    fn decode(&mut self) -> Result<bool, Failure> {
        let Some(decoder) = &mut self.decoder else { return Ok(false) };
        let piece = decoder.take(DECODED_LEN).map_err(|error| Failure::unreadable(error.into()))?;
        let Some(piece) = piece else { return Ok(false) };
        // Whitespace could be endless too.
        self.decoded += piece.len();
        self.accounting.decoded(piece.len());
        let size_max = self.call.size_max();
        if self.decoded > size_max.saturating_add(DECODED_LEN) {
            return Err(Failure::unreadable(too_large(self.decoded, size_max)));
        }
        self.reader.push(piece);
        self.accounting.set_bytes(self.reader.len());
        Ok(true)
    }

    fn wire(&mut self, data: Bytes) -> Result<Bytes, Failure> {
        let content = Content { content_type: self.call.head().content_type.clone(), data };
        let wire = self.call.wire(&content, self.count == 0);
        self.count += 1;
        wire.map_err(|status| {
            let why = format!("message {}: {}", self.count, status.message());
            Failure::unreadable(Status::new(status.code(), why))
        })
    }
}

impl Stream for TranscodedRequests {
    type Item = Result<Bytes, Status>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = self.get_mut();
        if this.has_failed {
            return Poll::Ready(None);
        }
        let polled = ready!(this.poll(cx));
        Poll::Ready(polled.transpose().map(|message| {
            message.map_err(|failure| {
                this.has_failed = true;
                let status = failure.status().clone();
                let _ = this.refusal.set(failure);
                status
            })
        }))
    }
}

impl BodyReader {
    fn push(&mut self, piece: Bytes) {
        match self {
            BodyReader::Values(values) => values.push(piece),
            BodyReader::Raw(buffered, _) => *buffered = piece,
        }
    }

    /// Returns whether a message is incomplete. A raw body never has one.
    fn has_partial_message(&self) -> bool {
        matches!(self, BodyReader::Values(values) if !values.is_empty())
    }

    /// Returns the number of received bytes that were not taken.
    fn len(&self) -> usize {
        match self {
            BodyReader::Values(values) => values.len(),
            BodyReader::Raw(buffered, _) => buffered.len(),
        }
    }

    /// Takes the next complete message; `count` messages were taken before.
    fn take(&mut self, has_body_ended: bool, count: usize) -> Result<Option<Bytes>, Failure> {
        match self {
            BodyReader::Values(values) => {
                let taken = if has_body_ended { values.finish() } else { values.take() };
                taken.map_err(|error| Failure::unreadable(error.into()))
            }
            // Path and query need a message.
            BodyReader::Raw(buffered, _) if buffered.is_empty() => {
                Ok((has_body_ended && count == 0).then(Bytes::new))
            }
            BodyReader::Raw(buffered, size_max) => Ok(Some(buffered.split_to(buffered.len().min(*size_max)))),
        }
    }
}

pub(super) struct SingleMessage(Option<Bytes>);

impl SingleMessage {
    pub(super) fn of(message: Bytes) -> SingleMessage {
        SingleMessage(Some(message))
    }
}

impl Stream for SingleMessage {
    type Item = Result<Bytes, Status>;

    fn poll_next(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        Poll::Ready(self.0.take().map(Ok))
    }
}
