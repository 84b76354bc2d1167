//! Execution of calls up to the start of the response.

use std::time::Duration;

use bytes::Bytes;
use futures_core::Stream;
use http::header::{CACHE_CONTROL, CONTENT_ENCODING, CONTENT_TYPE, VARY};
use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode};
use thalweg_engine::server::{LocalResponse, LocalStream};
use thalweg_engine::{RequestHead, Status, compact, wire};

use super::call::TranscodedCall;
use super::failure::Failure;
use super::metadata::TRAILER_PREFIX;
use super::requests::{SingleMessage, TranscodedRequests};
use super::responses::{JsonWriter, RawResponseBody};
use super::target::BodyFormat;
use crate::body::Body;
use crate::compression::{decompress, too_large};
use crate::deadline::Deadline;
use crate::fields;
use crate::service::streaming_body::StreamingBody;
use crate::transcoding::{Content, Framing, response};

/// Maximum time that a started response waits for its first message, which may be a failure. Then the response headers
/// are sent.
const FIRST_MESSAGE_WAIT: Duration = Duration::from_secs(1);

impl TranscodedCall {
    /// Calls the method and waits until its response starts.
    ///
    /// # Errors
    /// The failure to respond with.
    pub(super) async fn respond(
        self,
        request_head: RequestHead,
        body: Body,
    ) -> Result<Response<Body>, Failure> {
        let binding = self.binding();
        // Without a body there is at most one message.
        let sends_many = binding.is_client_streaming() && self.target().body_format != BodyFormat::Empty;
        if sends_many {
            let requests = TranscodedRequests::new(body, self.clone());
            let refusal_slot = requests.refusal_slot();
            let stream = self.stream(request_head, requests);
            return self.respond_to_stream(stream).await.map_err(|failure| {
                // If the handler passes on the error of the request stream, the refusal has the better HTTP status.
                let refusal =
                    refusal_slot.get().filter(|refusal| refusal.status().code() == failure.status().code());
                refusal.cloned().unwrap_or(failure)
            });
        }
        let deadline = Deadline::after(request_head.timeout);
        let mut accounting = body.memory_accounting();
        let sent = deadline
            .collect_bytes(body, self.size_max(), &mut accounting)
            .await
            .map_err(Failure::unreadable)?;
        let message = self.message(sent)?;
        accounting.decoded(message.len());
        // Including the field mask, which may be longer than the body.
        accounting.set_bytes(message.len());
        let request_head = RequestHead { timeout: deadline.remaining(), ..request_head };
        let stream = self.stream(request_head, SingleMessage::of(message));
        self.respond_to_stream(stream).await
    }

    fn stream<S>(&self, request_head: RequestHead, requests: S) -> LocalStream
    where
        S: Stream<Item = Result<Bytes, Status>> + Send + 'static,
    {
        self.routes.context.calls.call_stream(self.binding().path(), request_head, requests)
    }

    async fn respond_to_stream(self, stream: LocalStream) -> Result<Response<Body>, Failure> {
        if self.binding().is_server_streaming() {
            self.streaming_response(stream).await
        } else {
            self.unary_response(&single_response(stream).await?)
        }
    }

    /// Returns the response of a unary method.
    pub(super) fn unary_response(&self, response: &LocalResponse) -> Result<Response<Body>, Failure> {
        let mut headers = HeaderMap::new();
        fields::append(&response.metadata, "", &mut headers)?;
        fields::append(&response.trailers, TRAILER_PREFIX, &mut headers)?;
        if self.target().is_raw_response {
            let content = self.content(&response.message)?;
            headers.insert(CONTENT_TYPE, content_type(&content));
            return Ok(with_headers(headers, Body::full(content.data)));
        }
        headers.insert(CONTENT_TYPE, JSON);
        self.vary(&mut headers);
        let mut json = Vec::with_capacity(response.message.len() * 2 + 16);
        self.print(&response.message, &mut json)?;
        if let Some(compressed) = self.head().response_compression.compress(&json) {
            let name = self.head().response_compression.encoding.name();
            headers.insert(CONTENT_ENCODING, HeaderValue::from_static(name));
            json = compressed;
        }
        Ok(with_headers(headers, Body::full(compact(json))))
    }

    /// Adds `vary` if responses may be compressed.
    fn vary(&self, headers: &mut HeaderMap) {
        if self.target().options.send_compressed.is_some() {
            headers.append(VARY, HeaderValue::from_static("accept-encoding"));
        }
    }

    /// Returns the response of a server-streaming method.
    async fn streaming_response(self, mut stream: LocalStream) -> Result<Response<Body>, Failure> {
        let metadata = stream.headers().await?;
        let is_raw = self.target().is_raw_response;
        let mut headers = HeaderMap::new();
        fields::append(&metadata, "", &mut headers)?;
        if is_raw {
            // The first message has the content type. Without a message it is unknown.
            let mut data = None;
            if let Some(message) = stream.message().await? {
                let content = self.content(&message)?;
                headers.insert(CONTENT_TYPE, content_type(&content));
                data = Some(content.data);
            }
            return Ok(with_headers(headers, Body::streaming(RawResponseBody::new(self, stream, data))));
        }
        let waited = tokio::time::timeout(FIRST_MESSAGE_WAIT, stream.message()).await;
        let first = waited.ok().transpose()?;
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(self.head().framing.content_type()));
        headers.append(VARY, HeaderValue::from_static("accept"));
        if self.head().framing == Framing::Events {
            disable_buffering(&mut headers);
        }
        self.vary(&mut headers);
        let encoding = self.head().response_compression.encoding;
        if encoding.compresses() {
            headers.insert(CONTENT_ENCODING, HeaderValue::from_static(encoding.name()));
        }
        let mut body = StreamingBody::new(stream, JsonWriter::new(self), encoding);
        match first {
            Some(Some(message)) => body.put(message)?,
            Some(None) => body.finish(),
            None => {}
        }
        Ok(with_headers(headers, Body::streaming(body)))
    }

    /// Returns the message of a body, with the fields of path and query.
    pub(super) fn message(&self, sent: Bytes) -> Result<Bytes, Failure> {
        let size_max = self.size_max();
        let data = decompress(self.head().encoding, sent, size_max).map_err(Failure::unreadable)?;
        let content = Content { content_type: self.head().content_type.clone(), data };
        let wire = self.wire(&content, true).map_err(Failure::unreadable)?;
        if wire.len() > size_max {
            return Err(Failure::new(StatusCode::PAYLOAD_TOO_LARGE, too_large(wire.len(), size_max)));
        }
        Ok(wire)
    }
}

const JSON: HeaderValue = HeaderValue::from_static(response::JSON);

/// Keeps caches and proxies such as nginx from buffering events. The handler may override it.
fn disable_buffering(headers: &mut HeaderMap) {
    let fields = [(CACHE_CONTROL, "no-cache"), (HeaderName::from_static("x-accel-buffering"), "no")];
    for (name, value) in fields {
        headers.entry(name).or_insert(HeaderValue::from_static(value));
    }
}

/// Returns the content type set by the handler, if it is a valid header value.
fn content_type(content: &Content) -> HeaderValue {
    let named = HeaderValue::try_from(&content.content_type);
    named.unwrap_or_else(|_| HeaderValue::from_static(response::UNKNOWN))
}

fn with_headers(headers: HeaderMap, body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    *response.headers_mut() = headers;
    response
}

/// Returns the only response of a stream.
async fn single_response(mut stream: LocalStream) -> Result<LocalResponse, Status> {
    let metadata = stream.headers().await?;
    let message = stream.message().await?.ok_or_else(wire::no_message)?;
    if stream.message().await?.is_some() {
        return Err(wire::more_than_one_message());
    }
    Ok(LocalResponse { metadata, message, trailers: stream.take_trailers().unwrap_or_default() })
}
