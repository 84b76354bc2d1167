//! The body of a streaming response: [`StreamingBody`].

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures_core::Stream;
use http::HeaderMap;
use http_body::Frame;
use thalweg_engine::server::LocalStream;
use thalweg_engine::{BodyEncoder, Encoding, Status, compact};

/// Bytes of ready messages after which a piece is sent.
const PIECE_LEN: usize = 32 << 10;

/// Writes the messages of one response.
pub(super) trait MessageWriter: Send + Unpin + 'static {
    /// Appends a message to `out`, which is unchanged on failure.
    fn put(&mut self, wire: Bytes, out: &mut Vec<u8>) -> Result<(), Status>;

    /// Appends the end to `out`: the trailing metadata of a success, or the status of a failure. Returns HTTP trailers
    /// if some of it belongs there.
    fn end(&mut self, outcome: Result<&HeaderMap, &Status>, out: &mut Vec<u8>) -> Option<HeaderMap>;
}

/// Body of a streaming response: its messages and its end.
pub(super) struct StreamingBody<W> {
    /// `None` once it has ended.
    stream: Option<LocalStream>,
    writer: W,
    out: Vec<u8>,
    /// Compresses the body as a whole. `None` without compression, and after the end was sent.
    encoder: Option<BodyEncoder>,
    trailers: Option<HeaderMap>,
}

impl<W: MessageWriter> StreamingBody<W> {
    /// `encoding` applies to the body, not to its messages.
    pub(super) fn new(stream: LocalStream, writer: W, encoding: Encoding) -> Self {
        let encoder = encoding.compresses().then(|| BodyEncoder::new(encoding));
        Self { stream: Some(stream), writer, out: Vec::new(), encoder, trailers: None }
    }

    /// Adds a message that was taken from the stream.
    pub(super) fn put(&mut self, wire: Bytes) -> Result<(), Status> {
        self.writer.put(wire, &mut self.out)
    }

    /// Ends the body after a successful stream.
    pub(super) fn finish(&mut self) {
        let trailers = self.stream.take().and_then(|mut stream| stream.take_trailers());
        self.trailers = self.writer.end(Ok(&trailers.unwrap_or_default()), &mut self.out);
    }

    /// Cancels the handler and ends the body with `status`.
    fn fail(&mut self, status: &Status) {
        self.stream = None;
        self.trailers = self.writer.end(Err(status), &mut self.out);
    }

    /// Takes the pending data. The client can decode all of it on arrival.
    fn take_piece(&mut self) -> Option<Frame<Bytes>> {
        let mut out = std::mem::take(&mut self.out);
        if let Some(encoder) = self.encoder.as_mut().filter(|_| !out.is_empty()) {
            out = encoder.push(out);
        }
        if self.stream.is_none()
            && let Some(encoder) = self.encoder.take()
        {
            out.extend(encoder.finish());
        }
        (!out.is_empty()).then(|| Frame::data(compact(out)))
    }
}

impl<W: MessageWriter> http_body::Body for StreamingBody<W> {
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
                    if let Err(status) = this.put(wire) {
                        this.fail(&status);
                    }
                }
                Poll::Ready(Some(Err(status))) => this.fail(&status),
                Poll::Ready(None) => this.finish(),
            }
        }
        let piece = this.take_piece().or_else(|| this.trailers.take().map(Frame::trailers));
        Poll::Ready(piece.map(Ok))
    }

    fn is_end_stream(&self) -> bool {
        self.stream.is_none() && self.out.is_empty() && self.encoder.is_none() && self.trailers.is_none()
    }
}
