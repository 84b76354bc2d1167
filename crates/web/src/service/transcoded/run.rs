//! Execution of calls up to the start of the response.

use std::time::Duration;

use bytes::Bytes;
use futures_core::Stream;
use http::header::{CACHE_CONTROL, CONTENT_ENCODING, CONTENT_TYPE, VARY};
use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode};
use thalweg_engine::server::{LocalResponse, LocalStream};
use thalweg_engine::{RequestHead, Status, compact, wire};

use super::answers::{JsonMessages, RawAnswers};
use super::call::Call;
use super::failure::Failure;
use super::metadata::TRAILER_PREFIX;
use super::requests::{One, Requests};
use super::target::Takes;
use crate::body::Body;
use crate::compression::{decompress, too_large};
use crate::deadline::Deadline;
use crate::fields;
use crate::service::answers::Answers;
use crate::transcoding::{Content, Framing, response};

/// Maximum time that a started response waits for its first message, which may be a failure. Then the response headers
/// are sent.
const FIRST_MESSAGE_WAIT: Duration = Duration::from_secs(1);

impl Call {
    /// Calls the method and waits until its response starts.
    ///
    /// # Errors
    /// The failure to respond with.
    pub(super) async fn answer(self, asked: RequestHead, body: Body) -> Result<Response<Body>, Failure> {
        let binding = self.binding();
        // Without a body there is at most one message.
        let sends_many = binding.is_client_streaming() && self.target().takes != Takes::Nothing;
        if sends_many {
            let requests = Requests::new(body, self.clone());
            let refused = requests.refused();
            let stream = self.stream(asked, requests);
            return self.answer_of(stream).await.map_err(|failure| {
                // If the handler passes on the error of the request stream, the refusal has the better HTTP status.
                let told = refused.get().filter(|told| told.status().code() == failure.status().code());
                told.cloned().unwrap_or(failure)
            });
        }
        let deadline = Deadline::after(asked.timeout);
        let mut share = body.share();
        let sent = deadline.gather(body, self.size_max(), &mut share).await.map_err(Failure::unreadable)?;
        let message = self.message(sent)?;
        share.decoded(message.len());
        // Including the field mask, which may be longer than the body.
        share.hold(message.len());
        let asked = RequestHead { timeout: deadline.left(), ..asked };
        let stream = self.stream(asked, One::of(message));
        self.answer_of(stream).await
    }

    fn stream<S>(&self, asked: RequestHead, requests: S) -> LocalStream
    where
        S: Stream<Item = Result<Bytes, Status>> + Send + 'static,
    {
        self.routes.context.calls.call_stream(self.binding().path(), asked, requests)
    }

    async fn answer_of(self, stream: LocalStream) -> Result<Response<Body>, Failure> {
        if self.binding().is_server_streaming() {
            self.answers(stream).await
        } else {
            self.whole(&only(stream).await?)
        }
    }

    /// Returns the response of a unary method.
    pub(super) fn whole(&self, answer: &LocalResponse) -> Result<Response<Body>, Failure> {
        let mut headers = HeaderMap::new();
        fields::append(&answer.metadata, "", &mut headers)?;
        fields::append(&answer.trailers, TRAILER_PREFIX, &mut headers)?;
        if self.target().is_raw_answer {
            let content = self.content(&answer.message)?;
            headers.insert(CONTENT_TYPE, content_type(&content));
            return Ok(with_headers(headers, Body::whole(content.data)));
        }
        headers.insert(CONTENT_TYPE, JSON);
        self.vary(&mut headers);
        let mut json = Vec::with_capacity(answer.message.len() * 2 + 16);
        self.print(&answer.message, &mut json)?;
        if let Some(compressed) = self.head().answer.compress(&json) {
            let name = self.head().answer.encoding.name();
            headers.insert(CONTENT_ENCODING, HeaderValue::from_static(name));
            json = compressed;
        }
        Ok(with_headers(headers, Body::whole(compact(json))))
    }

    /// Adds `vary` if responses may be compressed.
    fn vary(&self, headers: &mut HeaderMap) {
        if self.target().options.send_compressed.is_some() {
            headers.append(VARY, HeaderValue::from_static("accept-encoding"));
        }
    }

    /// Returns the response of a server-streaming method.
    async fn answers(self, mut stream: LocalStream) -> Result<Response<Body>, Failure> {
        let metadata = stream.head().await?;
        let is_raw = self.target().is_raw_answer;
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
            return Ok(with_headers(headers, Body::streaming(RawAnswers::new(self, stream, data))));
        }
        let waited = tokio::time::timeout(FIRST_MESSAGE_WAIT, stream.message()).await;
        let first = waited.ok().transpose()?;
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(self.head().framing.content_type()));
        headers.append(VARY, HeaderValue::from_static("accept"));
        if self.head().framing == Framing::Events {
            pass_on_at_once(&mut headers);
        }
        self.vary(&mut headers);
        let encoding = self.head().answer.encoding;
        if encoding.compresses() {
            headers.insert(CONTENT_ENCODING, HeaderValue::from_static(encoding.name()));
        }
        let mut answers = Answers::new(stream, JsonMessages::new(self), encoding);
        match first {
            Some(Some(message)) => answers.put(message)?,
            Some(None) => answers.finish(),
            None => {}
        }
        Ok(with_headers(headers, Body::streaming(answers)))
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
fn pass_on_at_once(headers: &mut HeaderMap) {
    let fields = [(CACHE_CONTROL, "no-cache"), (HeaderName::from_static("x-accel-buffering"), "no")];
    for (name, value) in fields {
        headers.entry(name).or_insert(HeaderValue::from_static(value));
    }
}

/// Returns the content type set by the handler, if it is a valid header value.
fn content_type(content: &Content) -> HeaderValue {
    let called = HeaderValue::try_from(&content.content_type);
    called.unwrap_or_else(|_| HeaderValue::from_static(response::UNKNOWN))
}

fn with_headers(headers: HeaderMap, body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    *response.headers_mut() = headers;
    response
}

/// Returns the only response of a stream.
async fn only(mut stream: LocalStream) -> Result<LocalResponse, Status> {
    let metadata = stream.head().await?;
    let message = stream.message().await?.ok_or_else(wire::no_message)?;
    if stream.message().await?.is_some() {
        return Err(wire::more_than_one_message());
    }
    Ok(LocalResponse { metadata, message, trailers: stream.take_trailers().unwrap_or_default() })
}
