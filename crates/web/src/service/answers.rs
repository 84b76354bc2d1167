//! The body of an answer with a stream: [`Answers`].

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures_core::Stream;
use http::HeaderMap;
use http_body::Frame;
use thalweg_engine::server::LocalStream;
use thalweg_engine::{Status, compact};

use super::call::Call;
use super::protocol::Protocol;

/// Answers that are there together leave together, as long as they have no more bytes than this and one message.
const PIECE_LEN: usize = 32 << 10;

/// Messages of a method in their envelopes, as they come, and what ends them.
pub(super) struct Answers<P> {
    /// None once it has ended.
    stream: Option<LocalStream>,
    call: Call,
    protocol: P,
    out: Vec<u8>,
    trailers: Option<HeaderMap>,
}

impl<P: Protocol> Answers<P> {
    pub(super) fn new(stream: LocalStream, call: Call, protocol: P) -> Self {
        Self { stream: Some(stream), call, protocol, out: Vec::new(), trailers: None }
    }

    fn put(&mut self, wire: Bytes) -> Result<(), Status> {
        let message = self.call.write(wire)?;
        self.protocol.message(&message, &mut self.out)
    }

    /// A handler that is still at work is cancelled.
    fn end(&mut self, outcome: Result<&HeaderMap, &Status>) {
        self.stream = None;
        self.trailers = self.protocol.end(outcome, &mut self.out);
    }

    fn take_piece(&mut self) -> Option<Frame<Bytes>> {
        let out = std::mem::take(&mut self.out);
        (!out.is_empty()).then(|| Frame::data(compact(out)))
    }
}

impl<P: Protocol> http_body::Body for Answers<P> {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        let this = self.get_mut();
        while let Some(stream) = &mut this.stream {
            match Pin::new(&mut *stream).poll_next(cx) {
                Poll::Pending => match this.take_piece() {
                    None => return Poll::Pending,
                    piece => return Poll::Ready(piece.map(Ok)),
                },
                Poll::Ready(Some(Ok(wire))) => {
                    if let Err(status) = this.put(wire) {
                        this.end(Err(&status));
                    } else if this.out.len() >= PIECE_LEN {
                        break;
                    }
                }
                Poll::Ready(Some(Err(status))) => this.end(Err(&status)),
                Poll::Ready(None) => {
                    let trailers = stream.take_trailers().unwrap_or_default();
                    this.end(Ok(&trailers));
                }
            }
        }
        let piece = this.take_piece().or_else(|| this.trailers.take().map(Frame::trailers));
        Poll::Ready(piece.map(Ok))
    }

    fn is_end_stream(&self) -> bool {
        self.stream.is_none() && self.out.is_empty() && self.trailers.is_none()
    }
}
