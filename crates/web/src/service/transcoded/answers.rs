//! Bodies with a stream of answers, as they come: [`JsonAnswers`] and [`RawAnswers`].

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use futures_core::Stream;
use http::HeaderMap;
use http_body::Frame;
use thalweg_engine::server::LocalStream;
use thalweg_engine::{BodyEncoder, Status, compact};

use super::call::Call;
use super::metadata::TRAILER_PREFIX;
use crate::fields;

/// Answers that are there together leave together, as long as they have no more bytes than this and one message.
const PIECE_LEN: usize = 32 << 10;

/// What is known of a stream when its head is sent.
pub(super) enum First {
    Message(Bytes),
    /// It has ended without one.
    End,
    NotYet,
}

impl First {
    pub(super) fn of(message: Option<Bytes>) -> First {
        message.map_or(First::End, First::Message)
    }
}

/// Messages in JSON, and what ends them.
pub(super) struct JsonAnswers {
    call: Call,
    /// None once it has ended.
    stream: Option<LocalStream>,
    has_message: bool,
    out: Vec<u8>,
    /// None where nothing is compressed, and once the end was sent.
    encoder: Option<BodyEncoder>,
    trailers: Option<HeaderMap>,
}

impl JsonAnswers {
    /// # Errors
    /// When already the first message can't be written.
    pub(super) fn new(call: Call, stream: LocalStream, first: First) -> Result<JsonAnswers, Status> {
        let encoding = call.head().answer.encoding;
        let encoder = encoding.compresses().then(|| BodyEncoder::new(encoding));
        let (stream, out) = (Some(stream), Vec::new());
        let mut answers = JsonAnswers { call, stream, has_message: false, out, encoder, trailers: None };
        match first {
            First::Message(wire) => answers.put(&wire)?,
            First::End => answers.end(),
            First::NotYet => {}
        }
        Ok(answers)
    }

    fn put(&mut self, wire: &[u8]) -> Result<(), Status> {
        let JsonAnswers { call, out, has_message, .. } = self;
        call.head().framing.put_message(!*has_message, out, |out| call.print(wire, out))?;
        *has_message = true;
        Ok(())
    }

    fn end(&mut self) {
        self.trailers = self.stream.take().and_then(|stream| trailers(&self.call, stream));
        self.call.head().framing.put_end(!self.has_message, &mut self.out);
    }

    /// What is sent of what is there: all of it can be read when it has arrived.
    fn take_out(&mut self) -> Vec<u8> {
        let mut out = std::mem::take(&mut self.out);
        if let Some(encoder) = self.encoder.as_mut().filter(|_| !out.is_empty()) {
            out = encoder.push(out);
        }
        if self.stream.is_none()
            && let Some(encoder) = self.encoder.take()
        {
            out.extend(encoder.finish());
        }
        out
    }

    /// A handler that is still at work is cancelled.
    fn fail(&mut self, status: &Status) {
        self.stream = None;
        let json = self.call.status(status);
        self.call.head().framing.put_failure(!self.has_message, &json, &mut self.out);
    }
}

impl http_body::Body for JsonAnswers {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        let this = self.get_mut();
        while this.out.len() < PIECE_LEN
            && let Some(stream) = &mut this.stream
        {
            match Pin::new(stream).poll_next(cx) {
                Poll::Pending if this.out.is_empty() => return Poll::Pending,
                Poll::Pending => break,
                Poll::Ready(Some(Ok(wire))) => {
                    if let Err(status) = this.put(&wire) {
                        this.fail(&status);
                    }
                }
                Poll::Ready(Some(Err(status))) => this.fail(&status),
                Poll::Ready(None) => this.end(),
            }
        }
        let out = this.take_out();
        if !out.is_empty() {
            return Poll::Ready(Some(Ok(Frame::data(compact(out)))));
        }
        Poll::Ready(this.trailers.take().map(|fields| Ok(Frame::trailers(fields))))
    }

    fn is_end_stream(&self) -> bool {
        self.stream.is_none() && self.out.is_empty() && self.encoder.is_none() && self.trailers.is_none()
    }
}

/// The data of a `google.api.HttpBody` after the other. A failure ends it before its end.
pub(super) struct RawAnswers {
    call: Call,
    first: Option<Bytes>,
    /// None once it has ended.
    stream: Option<LocalStream>,
}

impl RawAnswers {
    pub(super) fn new(call: Call, stream: LocalStream, first: Option<Bytes>) -> RawAnswers {
        RawAnswers { call, first, stream: Some(stream) }
    }
}

impl http_body::Body for RawAnswers {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        let this = self.get_mut();
        if let Some(first) = this.first.take().filter(|first| !first.is_empty()) {
            return Poll::Ready(Some(Ok(Frame::data(first))));
        }
        while let Some(stream) = &mut this.stream {
            let Some(message) = ready!(Pin::new(stream).poll_next(cx)) else {
                let trailers = this.stream.take().and_then(|stream| trailers(&this.call, stream));
                return Poll::Ready(trailers.map(|fields| Ok(Frame::trailers(fields))));
            };
            match message.and_then(|wire| this.call.raw(&wire)) {
                Ok(data) if data.is_empty() => {}
                Ok(data) => return Poll::Ready(Some(Ok(Frame::data(data)))),
                Err(status) => {
                    this.stream = None;
                    return Poll::Ready(Some(Err(status)));
                }
            }
        }
        Poll::Ready(None)
    }
}

/// What goes behind a body that has ended well, if its client takes it.
fn trailers(call: &Call, mut stream: LocalStream) -> Option<HeaderMap> {
    let trailing = stream.take_trailers().filter(|_| call.head().takes_trailers)?;
    let mut fields = HeaderMap::new();
    // The call has bounded it.
    let _ = fields::append(&trailing, TRAILER_PREFIX, &mut fields);
    (!fields.is_empty()).then_some(fields)
}
