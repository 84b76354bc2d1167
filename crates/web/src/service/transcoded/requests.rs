//! The messages of a stream in a request body: [`Requests`].

use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use futures_core::Stream;
use http_body::Body as _;
use thalweg_engine::{BodyDecoder, RequestShare, Status};

use super::call::Call;
use super::failure::Failure;
use super::target::Takes;
use crate::body::Body;
use crate::compression::too_large;
use crate::transcoding::{Content, Values};

/// A stream of messages as wire bytes. An error is the last item.
pub(super) struct Requests {
    body: Body,
    share: RequestShare,
    /// Decompresses the body as a whole.
    decoder: Option<BodyDecoder>,
    /// Decompressed bytes since the last message.
    decoded: usize,
    pieces: Pieces,
    call: Call,
    /// Number of messages returned.
    count: usize,
    is_over: bool,
    has_failed: bool,
    refused: Arc<OnceLock<Failure>>,
}

/// Source of messages.
enum Pieces {
    Values(Values),
    /// Received data of a raw body, and the maximum size of one message.
    Raw(Bytes, usize),
}

/// Maximum bytes decompressed at once.
const DECODED_LEN: usize = 16 << 10;

/// Upper bound of the tags and lengths around the data of a message, in bytes.
const AROUND_DATA: usize = 32;

impl Requests {
    pub(super) fn new(body: Body, call: Call) -> Requests {
        let size_max = call.size_max();
        let pieces = match call.target().takes {
            Takes::Raw => {
                let around = call.head().content_type.len() + AROUND_DATA;
                Pieces::Raw(Bytes::new(), size_max.saturating_sub(around).max(1))
            }
            Takes::Json | Takes::Nothing => Pieces::Values(Values::new(size_max, !call.head().is_row)),
        };
        let encoding = call.head().encoding;
        let decoder = encoding.compresses().then(|| BodyDecoder::new(encoding));
        Requests {
            share: body.share(),
            body,
            decoder,
            decoded: 0,
            pieces,
            call,
            count: 0,
            is_over: false,
            has_failed: false,
            refused: Arc::default(),
        }
    }

    /// Returns the failure to respond with if the call ends with this stream's error.
    pub(super) fn refused(&self) -> Arc<OnceLock<Failure>> {
        Arc::clone(&self.refused)
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Bytes>, Failure>> {
        loop {
            ready!(self.share.poll_turn(cx));
            if let Some(data) = self.pieces.take(false, self.count)? {
                self.decoded = 0;
                self.share.decoded(data.len());
                self.share.hold(self.pieces.len());
                return Poll::Ready(self.wire(data).map(Some));
            }
            if self.decode()? {
                continue;
            }
            if self.is_over
                && let Some(data) = self.pieces.take(true, self.count)?
            {
                return Poll::Ready(self.wire(data).map(Some));
            }
            if self.is_over {
                return Poll::Ready(Ok(None));
            }
            self.body.awaits(self.pieces.has_begun().then_some(self.count as u64));
            let Some(frame) = ready!(Pin::new(&mut self.body).poll_frame(cx)) else {
                self.is_over = true;
                let ended = self.decoder.as_mut().map_or(Ok(()), BodyDecoder::finish);
                ended.map_err(|error| Failure::unreadable(error.into()))?;
                continue;
            };
            // Request trailers are ignored.
            let Ok(piece) = frame?.into_data() else { continue };
            match &mut self.decoder {
                Some(decoder) => decoder.push(piece),
                None => self.pieces.push(piece),
            }
            self.share.hold(self.pieces.len());
        }
    }

    /// Decompresses more data. Returns whether there was any.
    fn decode(&mut self) -> Result<bool, Failure> {
        let Some(decoder) = &mut self.decoder else { return Ok(false) };
        let piece = decoder.take(DECODED_LEN).map_err(|error| Failure::unreadable(error.into()))?;
        let Some(piece) = piece else { return Ok(false) };
        // Whitespace could be endless too.
        self.decoded += piece.len();
        self.share.decoded(piece.len());
        let size_max = self.call.size_max();
        if self.decoded > size_max.saturating_add(DECODED_LEN) {
            return Err(Failure::unreadable(too_large(self.decoded, size_max)));
        }
        self.pieces.push(piece);
        self.share.hold(self.pieces.len());
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

impl Stream for Requests {
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
                let _ = this.refused.set(failure);
                status
            })
        }))
    }
}

impl Pieces {
    fn push(&mut self, piece: Bytes) {
        match self {
            Pieces::Values(values) => values.push(piece),
            Pieces::Raw(held, _) => *held = piece,
        }
    }

    /// Returns whether a message is incomplete. A raw body never has one.
    fn has_begun(&self) -> bool {
        matches!(self, Pieces::Values(values) if !values.is_empty())
    }

    /// Returns the number of received bytes that were not taken.
    fn len(&self) -> usize {
        match self {
            Pieces::Values(values) => values.len(),
            Pieces::Raw(held, _) => held.len(),
        }
    }

    /// Takes the next complete message; `count` messages were taken before.
    fn take(&mut self, is_over: bool, count: usize) -> Result<Option<Bytes>, Failure> {
        match self {
            Pieces::Values(values) => {
                let taken = if is_over { values.finish() } else { values.take() };
                taken.map_err(|error| Failure::unreadable(error.into()))
            }
            // Path and query need a message.
            Pieces::Raw(held, _) if held.is_empty() => Ok((is_over && count == 0).then(Bytes::new)),
            Pieces::Raw(held, size_max) => Ok(Some(held.split_to(held.len().min(*size_max)))),
        }
    }
}

pub(super) struct One(Option<Bytes>);

impl One {
    pub(super) fn of(message: Bytes) -> One {
        One(Some(message))
    }
}

impl Stream for One {
    type Item = Result<Bytes, Status>;

    fn poll_next(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        Poll::Ready(self.0.take().map(Ok))
    }
}
