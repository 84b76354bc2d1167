//! The bodies of streaming responses: [`JsonWriter`] and [`RawResponseBody`].

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use futures_core::Stream;
use http::HeaderMap;
use http_body::Frame;
use thalweg_engine::Status;
use thalweg_engine::server::LocalStream;

use super::call::TranscodedCall;
use super::metadata::TRAILER_PREFIX;
use crate::fields;
use crate::service::streaming_body::MessageWriter;

/// Writes messages as JSON, in the framing chosen by the request.
pub(super) struct JsonWriter {
    call: TranscodedCall,
    has_message: bool,
}

impl JsonWriter {
    pub(super) fn new(call: TranscodedCall) -> JsonWriter {
        JsonWriter { call, has_message: false }
    }
}

impl MessageWriter for JsonWriter {
    fn put(&mut self, wire: Bytes, out: &mut Vec<u8>) -> Result<(), Status> {
        let call = &self.call;
        call.head().framing.put_message(!self.has_message, out, |out| call.print(&wire, out))?;
        self.has_message = true;
        Ok(())
    }

    fn end(&mut self, outcome: Result<&HeaderMap, &Status>, out: &mut Vec<u8>) -> Option<HeaderMap> {
        let framing = self.call.head().framing;
        match outcome {
            Ok(trailing) => {
                framing.put_end(!self.has_message, out);
                trailers(&self.call, trailing)
            }
            Err(status) => {
                framing.put_failure(!self.has_message, &self.call.status(status), out);
                None
            }
        }
    }
}

/// Concatenates the data of `google.api.HttpBody` messages. A failure truncates the body.
pub(super) struct RawResponseBody {
    call: TranscodedCall,
    first: Option<Bytes>,
    /// `None` once it has ended.
    stream: Option<LocalStream>,
}

impl RawResponseBody {
    pub(super) fn new(call: TranscodedCall, stream: LocalStream, first: Option<Bytes>) -> RawResponseBody {
        RawResponseBody { call, first, stream: Some(stream) }
    }
}

impl http_body::Body for RawResponseBody {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        let this = self.get_mut();
        if let Some(first) = this.first.take().filter(|first| !first.is_empty()) {
            return Poll::Ready(Some(Ok(Frame::data(first))));
        }
        while let Some(stream) = &mut this.stream {
            let Some(message) = ready!(Pin::new(&mut *stream).poll_next(cx)) else {
                let trailing = stream.take_trailers().unwrap_or_default();
                this.stream = None;
                let trailers = trailers(&this.call, &trailing);
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

/// Returns the trailers of a successful body, if the client accepts trailers.
fn trailers(call: &TranscodedCall, trailing: &HeaderMap) -> Option<HeaderMap> {
    if !call.head().accepts_trailers {
        return None;
    }
    let mut fields = HeaderMap::new();
    // The call has limited its size.
    let _ = fields::append(trailing, TRAILER_PREFIX, &mut fields);
    (!fields.is_empty()).then_some(fields)
}
