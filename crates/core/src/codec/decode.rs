//! [`Streaming`]: the messages of a body.

use std::fmt;
use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes, BytesMut};
use http::{HeaderMap, StatusCode};
use http_body::{Body, Frame};
use http_body_util::BodyExt;
use sync_wrapper::SyncWrapper;
use tokio_stream::Stream;

use super::buffer::DecodeBuf;
use super::codecs::{Decoder, HEADER_SIZE};
use super::compression::{CompressionEncoding, decompress};
use crate::error::BoxError;
use crate::metadata::MetadataMap;
use crate::status::{missing, outcome};
use crate::{Code, Status};

/// Maximum size of a received message, in bytes, if none is set: 4 MiB.
pub const MAX_DECODING_MESSAGE_SIZE: usize = 4 * 1024 * 1024;

/// The messages that a peer sends in one call.
///
/// It ends after the last message. A failed call ends with its status, once.
pub struct Streaming<T> {
    decoder: SyncWrapper<Box<dyn Decoder<Item = T, Error = Status> + Send + 'static>>,
    bytes: ReceivedBytes,
}

type BoxBody = Pin<Box<dyn Body<Data = Bytes, Error = Status> + Send + 'static>>;

/// The bytes of a body, cut into messages.
struct ReceivedBytes {
    body: SyncWrapper<BoxBody>,
    direction: Direction,
    encoding: Option<CompressionEncoding>,
    message_size_max: usize,
    /// Received bytes, from the start of the next prefix or message. Messages are decoded from there, without a copy.
    buffer: Bytes,
    /// The prefix of the message that is awaited, if it has been read.
    prefix: Option<Prefix>,
    trailers: Option<HeaderMap>,
    has_ended: bool,
}

/// The sender of the body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Direction {
    Request,
    /// A server, with this HTTP status.
    Response(StatusCode),
    /// A server whose headers had the status of the call already.
    EmptyResponse,
}

#[derive(Clone, Copy, Debug)]
struct Prefix {
    is_compressed: bool,
    len: usize,
}

impl<T> Streaming<T> {
    /// Decodes the body of a response with this HTTP status.
    ///
    /// Messages of more than `message_size_max` bytes, 4 MiB by default, fail with OUT_OF_RANGE.
    #[doc(hidden)]
    pub fn new_response<B, D>(
        decoder: D,
        body: B,
        http_status: StatusCode,
        encoding: Option<CompressionEncoding>,
        message_size_max: Option<usize>,
    ) -> Self
    where
        B: Body + Send + 'static,
        B::Error: Into<BoxError>,
        D: Decoder<Item = T, Error = Status> + Send + 'static,
    {
        Self::new(decoder, body, Direction::Response(http_status), encoding, message_size_max)
    }

    /// Decodes the body of a response whose headers had the status of the call.
    #[doc(hidden)]
    pub fn new_empty<B, D>(decoder: D, body: B) -> Self
    where
        B: Body + Send + 'static,
        B::Error: Into<BoxError>,
        D: Decoder<Item = T, Error = Status> + Send + 'static,
    {
        Self::new(decoder, body, Direction::EmptyResponse, None, None)
    }

    /// Decodes the body of a request.
    ///
    /// Messages of more than `message_size_max` bytes, 4 MiB by default, fail with OUT_OF_RANGE.
    #[doc(hidden)]
    pub fn new_request<B, D>(
        decoder: D,
        body: B,
        encoding: Option<CompressionEncoding>,
        message_size_max: Option<usize>,
    ) -> Self
    where
        B: Body + Send + 'static,
        B::Error: Into<BoxError>,
        D: Decoder<Item = T, Error = Status> + Send + 'static,
    {
        Self::new(decoder, body, Direction::Request, encoding, message_size_max)
    }

    fn new<B, D>(
        decoder: D,
        body: B,
        direction: Direction,
        encoding: Option<CompressionEncoding>,
        message_size_max: Option<usize>,
    ) -> Self
    where
        B: Body + Send + 'static,
        B::Error: Into<BoxError>,
        D: Decoder<Item = T, Error = Status> + Send + 'static,
    {
        let body = body.map_frame(|frame| frame.map_data(|mut data| data.copy_to_bytes(data.remaining())));
        let body: BoxBody = Box::pin(body.map_err(|error| Status::from_error(error.into())));
        Self {
            decoder: SyncWrapper::new(Box::new(decoder)),
            bytes: ReceivedBytes {
                body: SyncWrapper::new(body),
                direction,
                encoding,
                message_size_max: message_size_max.unwrap_or(MAX_DECODING_MESSAGE_SIZE),
                buffer: Bytes::new(),
                prefix: None,
                trailers: None,
                has_ended: false,
            },
        }
    }

    /// Waits for the next message. Returns nothing after the last one.
    ///
    /// # Errors
    ///
    /// The status of the call if it failed.
    ///
    /// # Cancel safety
    ///
    /// No message is lost if the future is dropped.
    pub async fn message(&mut self) -> Result<Option<T>, Status> {
        poll_fn(|cx| self.poll_message(cx)).await
    }

    /// Waits for the end of the call, and returns the metadata of the trailers, if there were any. Messages that are
    /// left are dropped.
    ///
    /// # Errors
    ///
    /// The status of the call if it failed.
    pub async fn trailers(&mut self) -> Result<Option<MetadataMap>, Status> {
        if self.bytes.trailers.is_none() {
            while self.message().await?.is_some() {}
        }
        Ok(self.bytes.trailers.take().map(MetadataMap::from_headers))
    }
}

impl<T> Stream for Streaming<T> {
    type Item = Result<T, Status>;

    #[inline]
    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.get_mut().poll_message(cx).map(Result::transpose)
    }
}

impl<T> Streaming<T> {
    #[inline]
    fn poll_message(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<T>, Status>> {
        // Most messages are plain and have arrived as a whole. After the end there are no more bytes.
        if let Some(len) = self.bytes.plain_message() {
            let decoded = self.bytes.decode_plain(len, &mut **self.decoder.get_mut());
            if matches!(decoded, Ok(Some(_))) {
                return Poll::Ready(decoded);
            }
            return self.poll_after(decoded, cx);
        }
        self.poll_after(Ok(None), cx)
    }

    /// Goes on after a decoder that has returned no message, or an error, and receives more.
    #[inline(never)]
    fn poll_after(
        &mut self,
        decoded: Result<Option<T>, Status>,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Option<T>, Status>> {
        let polled = match decoded {
            Ok(_) => self.poll_next_message(cx).map(Option::transpose),
            Err(status) => Poll::Ready(Err(status)),
        };
        // After a failure there is nothing more to read.
        if !matches!(polled, Poll::Pending | Poll::Ready(Ok(Some(_)))) {
            self.bytes.end();
        }
        polled
    }

    fn poll_next_message(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<T, Status>>> {
        loop {
            if self.bytes.has_ended {
                return Poll::Ready(None);
            }
            while let Some(prefix) = self.bytes.complete_message()? {
                if let Some(message) = self.bytes.decode(prefix, &mut **self.decoder.get_mut())? {
                    return Poll::Ready(Some(Ok(message)));
                }
            }
            if !ready!(self.bytes.poll_receive(cx))? {
                return Poll::Ready(self.bytes.failure().map(Err));
            }
        }
    }
}

impl ReceivedBytes {
    /// Takes the prefix of the next message and returns its length, if it is not compressed, has a permitted length,
    /// and has arrived as a whole.
    #[inline]
    fn plain_message(&mut self) -> Option<usize> {
        let &[0, a, b, c, d] = self.buffer.first_chunk()? else { return None };
        let len = u32::from_be_bytes([a, b, c, d]) as usize;
        if self.prefix.is_some() || len > self.message_size_max || self.buffer.len() - HEADER_SIZE < len {
            return None;
        }
        self.buffer.advance(HEADER_SIZE);
        Some(len)
    }

    /// Decodes the message at the front of the buffer, which is not compressed.
    #[inline]
    fn decode_plain<T>(
        &mut self,
        len: usize,
        decoder: &mut dyn Decoder<Item = T, Error = Status>,
    ) -> Result<Option<T>, Status> {
        let mut message = DecodeBuf::new(&mut self.buffer, len);
        let decoded = decoder.decode(&mut message);
        // Bytes that the decoder leaves unread do not belong to the next message.
        if message.has_remaining() {
            message.advance(message.remaining());
        }
        decoded
    }

    /// Drops what has arrived: nothing more is read.
    fn end(&mut self) {
        self.has_ended = true;
        self.buffer.clear();
    }

    /// Takes the prefix of the next message if the whole message has arrived.
    #[inline]
    fn complete_message(&mut self) -> Result<Option<Prefix>, Status> {
        let prefix = if let Some(prefix) = self.prefix {
            prefix
        } else {
            let Some(&[flag, a, b, c, d]) = self.buffer.first_chunk() else { return Ok(None) };
            let prefix = self.check(flag, u32::from_be_bytes([a, b, c, d]) as usize)?;
            self.buffer.advance(HEADER_SIZE);
            prefix
        };
        let is_complete = self.buffer.len() >= prefix.len;
        self.prefix = if is_complete { None } else { Some(prefix) };
        Ok(is_complete.then_some(prefix))
    }

    #[inline]
    fn check(&self, flag: u8, len: usize) -> Result<Prefix, Status> {
        if (flag == 0 || (flag == 1 && self.encoding.is_some())) && len <= self.message_size_max {
            return Ok(Prefix { is_compressed: flag == 1, len });
        }
        Err(self.invalid_prefix(flag, len))
    }

    #[cold]
    fn invalid_prefix(&self, flag: u8, len: usize) -> Status {
        if flag > 1 {
            let response = match self.direction {
                Direction::Response(status) => format!(" in a response with HTTP status {status}"),
                Direction::Request | Direction::EmptyResponse => String::new(),
            };
            return Status::internal(format!(
                "the compressed flag of a message is {flag}{response}; 0 and 1 are valid"
            ));
        }
        if flag == 1 && self.encoding.is_none() {
            return Status::internal("a message is flagged as compressed, but there is no grpc-encoding");
        }
        let max = self.message_size_max;
        Status::out_of_range(format!("a message of {len} bytes is larger than {max}, the maximum"))
    }

    /// Decodes the message at the front of the buffer.
    fn decode<T>(
        &mut self,
        prefix: Prefix,
        decoder: &mut dyn Decoder<Item = T, Error = Status>,
    ) -> Result<Option<T>, Status> {
        match self.encoding {
            Some(encoding) if prefix.is_compressed => {
                let compressed = self.buffer.split_to(prefix.len);
                let mut message = decompress(encoding, &compressed, self.message_size_max)?;
                let len = message.len();
                decoder.decode(&mut DecodeBuf::new(&mut message, len))
            }
            _ => self.decode_plain(prefix.len, decoder),
        }
    }

    /// Receives more bytes or the trailers. Returns false at the end of the body.
    fn poll_receive(&mut self, cx: &mut Context<'_>) -> Poll<Result<bool, Status>> {
        let frame = match ready!(self.body.get_mut().as_mut().poll_frame(cx)) {
            Some(Ok(frame)) => frame,
            // The caller has gone: the handler sees the end of its requests.
            Some(Err(status)) if self.direction == Direction::Request && status.code() == Code::Cancelled => {
                return Poll::Ready(Ok(false));
            }
            Some(Err(status)) => return Poll::Ready(Err(status)),
            None if self.prefix.is_none() && self.buffer.is_empty() => return Poll::Ready(Ok(false)),
            None => return Poll::Ready(Err(Status::internal("the body ended within a message"))),
        };
        self.take(frame);
        Poll::Ready(Ok(true))
    }

    fn take(&mut self, frame: Frame<Bytes>) {
        match frame.into_data() {
            Ok(data) if self.buffer.is_empty() => self.buffer = data,
            Ok(data) => self.gather(&data),
            Err(frame) => {
                if let Ok(trailers) = frame.into_trailers() {
                    self.trailers.get_or_insert_default().extend(trailers);
                }
            }
        }
    }

    /// Appends to a message that is not complete. The buffer grows with what arrives, not by the declared length.
    fn gather(&mut self, data: &[u8]) {
        let buffer = std::mem::take(&mut self.buffer);
        let arrived = buffer.len() + data.len();
        let capacity = self.prefix.map_or(arrived, |prefix| prefix.len.min(2 * arrived).max(arrived));
        let mut gathered = buffer.try_into_mut().unwrap_or_else(|buffer| {
            let mut gathered = BytesMut::with_capacity(capacity);
            gathered.extend_from_slice(&buffer);
            gathered
        });
        gathered.reserve(capacity - gathered.len());
        gathered.extend_from_slice(data);
        self.buffer = gathered.freeze();
    }

    /// Returns the status of a call that has ended and failed.
    fn failure(&mut self) -> Option<Status> {
        let Direction::Response(http_status) = self.direction else { return None };
        match outcome(self.trailers.as_ref(), http_status) {
            Ok(()) => None,
            Err(Some(status)) => {
                self.trailers = None;
                Some(status)
            }
            Err(None) => Some(missing(None)),
        }
    }
}

impl<T> fmt::Debug for Streaming<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Streaming").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
