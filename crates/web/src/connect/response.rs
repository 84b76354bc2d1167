//! Responses: the server's encoder, and the client's decoder for unary calls.

use bytes::Bytes;
use http::header::{ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_TYPE, VARY};
use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode};
use thalweg_engine::{Code, EncodingSet, Status, compact};

use super::code::http_status;
use super::error::{self, DetailJson};
use super::names::{END_STREAM, STREAM_ENCODING, STREAM_SUBTYPE, TRAILER};
use crate::compression::{self, Compression};
use crate::content_type;
use crate::envelope::{self, END_SIZE_MAX};
use crate::fields;

/// Format of the response to a request. [`RequestHead`](super::RequestHead::response_format) has it.
#[derive(Clone, Copy, Debug)]
pub struct ResponseFormat<'a> {
    /// Codec of the messages.
    pub codec: &'a str,
    /// Whether the messages are enveloped.
    pub is_stream: bool,
    /// Whether the request was a GET: then the response varies by `accept-encoding`.
    pub is_get: bool,
    /// Compression of the messages.
    pub compression: Compression,
    /// Converts error details to readable JSON.
    pub detail_json: DetailJson<'a>,
}

impl<'a> ResponseFormat<'a> {
    /// Returns the format for a unary request: no compression, and no JSON for details.
    pub fn unary(codec: &'a str) -> ResponseFormat<'a> {
        ResponseFormat {
            codec,
            is_stream: false,
            is_get: false,
            compression: Compression::NONE,
            detail_json: DetailJson::default(),
        }
    }

    /// Returns the response of a successful unary call.
    pub fn success(&self, metadata: &HeaderMap, trailers: &HeaderMap, message: Bytes) -> Response<Bytes> {
        let compressed = self.compression.compress(&message);
        let mut headers = HeaderMap::new();
        let appended = fields::append(metadata, "", &mut headers)
            .and_then(|()| fields::append(trailers, TRAILER, &mut headers));
        if let Err(too_large) = appended {
            return self.failure(&too_large);
        }
        headers.insert(CONTENT_TYPE, content_type_of("", self.codec));
        if compressed.is_some() {
            headers.insert(CONTENT_ENCODING, HeaderValue::from_static(self.compression.encoding.name()));
        }
        self.build(StatusCode::OK, headers, compressed.map_or(message, compact))
    }

    /// Returns the complete response of a call that failed before its response started. For a stream, it is an empty
    /// stream that ends with the error.
    pub fn failure(&self, status: &Status) -> Response<Bytes> {
        let mut headers = HeaderMap::new();
        if self.is_stream {
            let mut body = Vec::new();
            self.end(Err(status), &mut body);
            headers.insert(CONTENT_TYPE, content_type_of(STREAM_SUBTYPE, self.codec));
            return self.build(StatusCode::OK, headers, body.into());
        }
        // The error is sent even if its metadata is too large.
        let _ = fields::append(status.metadata().as_ref(), TRAILER, &mut headers)
            .inspect_err(|_| headers.clear());
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        self.build(http_status(status.code()), headers, error::write(status, self.detail_json).into())
    }

    /// Returns the response headers of a stream.
    ///
    /// # Errors
    /// RESOURCE_EXHAUSTED if the metadata is too large; respond with [`failure`](Self::failure) then.
    pub fn head(&self, metadata: &HeaderMap) -> Result<Response<()>, Status> {
        let mut head = Response::new(());
        let headers = head.headers_mut();
        fields::append(metadata, "", headers)?;
        headers.insert(CONTENT_TYPE, content_type_of(STREAM_SUBTYPE, self.codec));
        if self.compression.encoding.compresses() {
            headers.insert(STREAM_ENCODING, HeaderValue::from_static(self.compression.encoding.name()));
        }
        Ok(head)
    }

    /// Appends a message of a stream to `out`.
    ///
    /// # Errors
    /// RESOURCE_EXHAUSTED if the message exceeds the range of the length prefix.
    pub fn message(&self, message: &[u8], out: &mut Vec<u8>) -> Result<(), Status> {
        envelope::put_message(message, &self.compression, out)
    }

    /// Appends the end of a stream to `out`: the trailing metadata of a success, or the status of a failure.
    pub fn end(&self, outcome: Result<&HeaderMap, &Status>, out: &mut Vec<u8>) {
        let mut end = error::write_end(outcome, self.detail_json);
        if end.len() > END_SIZE_MAX
            && let Err(status) = outcome
        {
            // Clients reject longer ends, so only the code is sent.
            end = error::write_end(Err(&Status::new(status.code(), "")), DetailJson::default());
        }
        // It is much shorter than the limit of the length prefix.
        let _ = envelope::put(END_STREAM, &end, out);
    }

    fn build(&self, status: StatusCode, mut headers: HeaderMap, body: Bytes) -> Response<Bytes> {
        if self.is_get {
            headers.append(VARY, HeaderValue::from(ACCEPT_ENCODING));
        }
        let mut response = Response::new(body);
        *response.status_mut() = status;
        *response.headers_mut() = headers;
        response
    }
}

/// The codec came from a content type, so it is a valid header value.
fn content_type_of(prefix: &str, codec: &str) -> HeaderValue {
    let content_type = HeaderValue::try_from(format!("application/{prefix}{codec}"));
    content_type.unwrap_or_else(|_| HeaderValue::from_static("application/octet-stream"))
}

/// Response of a successful unary call, decoded by a client.
#[derive(Clone, Debug)]
pub struct UnaryResponse {
    /// The leading metadata.
    pub metadata: HeaderMap,
    /// The trailing metadata.
    pub trailers: HeaderMap,
    /// The message.
    pub message: Bytes,
}

impl UnaryResponse {
    /// Reads the response to a call with this codec. The message has at most `size_max` bytes.
    ///
    /// # Errors
    /// The server's status, or a status that describes a response that is not Connect.
    pub fn read(
        http_status: StatusCode,
        headers: &HeaderMap,
        body: Bytes,
        codec: &str,
        accepts: EncodingSet,
        size_max: usize,
    ) -> Result<UnaryResponse, Status> {
        let content_type = headers.get(CONTENT_TYPE).map(HeaderValue::as_bytes).unwrap_or_default();
        let subtype = content_type::application(content_type);
        let is = |expected: &str| subtype.is_some_and(|subtype| subtype.eq_ignore_ascii_case(expected));
        if http_status == StatusCode::OK && !is(codec) {
            return Err(unexpected(content_type, subtype.is_some(), &format!("application/{codec}")));
        }
        if http_status != StatusCode::OK && !is("json") {
            return Err(not_connect(http_status, content_type));
        }
        let named = headers.get(CONTENT_ENCODING).map(HeaderValue::as_bytes);
        let encoding =
            compression::parse_encoding("content-encoding", named, accepts).map_err(as_internal)?;
        if http_status == StatusCode::OK {
            let message = compression::decompress(encoding, body, size_max)?;
            let (metadata, trailers) = split(headers);
            return Ok(UnaryResponse {
                metadata: fields::received(&metadata)?,
                trailers: fields::received(&trailers)?,
                message,
            });
        }
        let error = compression::decompress(encoding, body, END_SIZE_MAX);
        let read = error.ok().and_then(|error| {
            error::read(&error, Code::from_http_status(http_status.as_u16()), all_metadata(headers))
        });
        Err(read.unwrap_or_else(|| not_connect(http_status, content_type)))
    }
}

/// Splits headers into leading and trailing metadata, undecoded.
fn split(headers: &HeaderMap) -> (HeaderMap, HeaderMap) {
    let (mut metadata, mut trailers) = (HeaderMap::new(), HeaderMap::new());
    for (name, value) in headers {
        let trailer = name.as_str().strip_prefix(TRAILER).map(|name| HeaderName::from_bytes(name.as_bytes()));
        let _ = match trailer {
            Some(Ok(trailer)) => trailers.try_append(trailer, value.clone()),
            _ => metadata.try_append(name, value.clone()),
        };
    }
    (metadata, trailers)
}

/// Returns all readable metadata: a failure does not separate leading and trailing metadata.
fn all_metadata(headers: &HeaderMap) -> HeaderMap {
    let (metadata, trailers) = split(headers);
    let mut all = fields::received(&metadata).unwrap_or_default();
    for (name, value) in &fields::received(&trailers).unwrap_or_default() {
        let _ = all.try_append(name, value.clone());
    }
    all
}

/// Returns a status derived from the HTTP status alone.
pub(super) fn not_connect(http_status: StatusCode, content_type: &[u8]) -> Status {
    let content_type =
        if content_type.is_empty() { "none".into() } else { String::from_utf8_lossy(content_type) };
    let code = Code::from_http_status(http_status.as_u16());
    let why =
        format!("not a Connect response: HTTP status {}, content type {content_type}", http_status.as_u16());
    Status::new(code, why)
}

/// Returns the status of a response with an unexpected content type. If Connect has such a content type, the server
/// violates the protocol; otherwise the response may come from an intermediary.
pub(super) fn unexpected(content_type: &[u8], is_like_connect: bool, expected: &str) -> Status {
    if !is_like_connect {
        return not_connect(StatusCode::OK, content_type);
    }
    let content_type = String::from_utf8_lossy(content_type);
    let why = format!("expected the content type {expected}, the server sent {content_type}");
    Status::new(Code::Internal, why)
}

/// Turns a server's violation of negotiated parameters into INTERNAL.
#[expect(clippy::needless_pass_by_value, reason = "for `map_err`")]
pub(super) fn as_internal(status: Status) -> Status {
    Status::new(Code::Internal, status.message())
}

#[cfg(test)]
mod tests {
    use thalweg_engine::Encoding;

    use super::*;
    use crate::testing::{Seeded, header_lines, headers};

    fn read(response: Response<Bytes>) -> Result<UnaryResponse, Status> {
        let (parts, body) = response.into_parts();
        UnaryResponse::read(parts.status, &parts.headers, body, "proto", EncodingSet::ALL, 1000)
    }

    fn with_metadata(code: Code, message: &'static str, metadata: &[(&str, &str)]) -> Status {
        Status::new(code, message).prepend_metadata(&headers(metadata))
    }

    #[test]
    fn successful_response_round_trips() {
        let gzip = Compression { encoding: Encoding::Gzip, threshold: 100 };
        let response_format = ResponseFormat { compression: gzip, ..ResponseFormat::unary("proto") };
        let metadata = headers(&[("x-a", "1"), ("x-a", "2")]);
        let trailers = headers(&[("x-a", "3"), ("y-bin", "YQ==")]);
        let check = |message: &'static [u8], expected: &str| {
            let response = response_format.success(&metadata, &trailers, Bytes::from_static(message));
            assert_eq!(response.status(), StatusCode::OK);
            assert_eq!(header_lines(response.headers()), expected);
            let read = read(response).unwrap();
            assert_eq!(read.message, message);
            assert_eq!(header_lines(&read.metadata), "x-a: 1\nx-a: 2");
            assert_eq!(header_lines(&read.trailers), "x-a: 3\ny-bin: YQ");
        };
        let rest = "content-type: application/proto\ntrailer-x-a: 3\ntrailer-y-bin: YQ\nx-a: 1\nx-a: 2";
        check(b"", rest);
        check(b"abc", rest);
        check(&[7; 100], &format!("content-encoding: gzip\n{rest}"));
    }

    #[test]
    fn failed_response_round_trips() {
        let status = with_metadata(Code::Unavailable, "overloaded", &[("x-a", "1")]);
        let response = ResponseFormat::unary("proto").failure(&status);
        assert_eq!(response.status().as_u16(), 503);
        assert_eq!(header_lines(response.headers()), "content-type: application/json\ntrailer-x-a: 1");
        assert_eq!(response.body(), r#"{"code":"unavailable","message":"overloaded"}"#);
        let read = read(response).unwrap_err();
        assert_eq!((read.code(), read.message()), (Code::Unavailable, "overloaded"));
        assert_eq!(header_lines(read.metadata().as_ref()), "x-a: 1");
    }

    #[test]
    fn response_to_get_has_vary() {
        let response_format = ResponseFormat { is_get: true, ..ResponseFormat::unary("proto") };
        let none = HeaderMap::new();
        assert_eq!(response_format.success(&none, &none, Bytes::new()).headers()[VARY], "accept-encoding");
        let failure = response_format.failure(&Status::new(Code::NotFound, ""));
        assert_eq!(failure.headers()[VARY], "accept-encoding");
    }

    #[test]
    fn oversized_metadata_fails_the_call() {
        let large = "a".repeat(10_000);
        let metadata = headers(&[("x-a", &large), ("x-b", &large)]);
        let response_format = ResponseFormat::unary("proto");
        let response = response_format.success(&metadata, &HeaderMap::new(), Bytes::new());
        assert_eq!(response.status().as_u16(), 429);
        assert_eq!(read(response).unwrap_err().message(), "the metadata to send exceeds 16384 bytes");
        let failure = Status::new(Code::Aborted, "").prepend_metadata(&metadata);
        assert_eq!(
            header_lines(response_format.failure(&failure).headers()),
            "content-type: application/json"
        );
        assert_eq!(response_format.head(&metadata).unwrap_err().code(), Code::ResourceExhausted);
    }

    #[test]
    fn oversized_failure_keeps_only_its_code() {
        let status = Status::new(Code::Aborted, "a".repeat(END_SIZE_MAX));
        let mut out = Vec::new();
        ResponseFormat::unary("proto").end(Err(&status), &mut out);
        assert_eq!(&out[5..], br#"{"error":{"code":"aborted"}}"#);
    }

    #[test]
    fn stream_failure_is_an_end_envelope() {
        let response_format = ResponseFormat { is_stream: true, ..ResponseFormat::unary("json") };
        let response = response_format.failure(&with_metadata(Code::NotFound, "", &[("x-a", "1")]));
        assert_eq!(response.status(), StatusCode::OK);
        assert_eq!(header_lines(response.headers()), "content-type: application/connect+json");
        let end = r#"{"error":{"code":"not_found"},"metadata":{"x-a":["1"]}}"#;
        assert_eq!(response.body()[..5], [2, 0, 0, 0, end.len() as u8]);
        assert_eq!(&response.body()[5..], end.as_bytes());
    }

    #[test]
    fn responses_of_other_servers_are_read() {
        const PROTO: (&str, &str) = ("content-type", "application/proto");
        const JSON: (&str, &str) = ("content-type", "application/json; charset=utf-8");
        let check =
            |status: u16, list: &[(&str, &str)], body: &[u8], expected: Result<&[u8], (Code, &str)>| {
                let mut response = Response::new(Bytes::copy_from_slice(body));
                *response.status_mut() = StatusCode::from_u16(status).unwrap();
                *response.headers_mut() = headers(list);
                let outcome = read(response).map(|response| response.message);
                let outcome = outcome.as_deref().map_err(|status| (status.code(), status.message()));
                assert_eq!(outcome, expected, "{status} {list:?}");
            };
        check(200, &[PROTO], b"", Ok(b""));
        check(200, &[PROTO, ("content-encoding", "gzip")], b"", Ok(b""));
        let other =
            "expected the content type application/proto, the server sent application/json; charset=utf-8";
        check(200, &[JSON], b"{}", Err((Code::Internal, other)));
        let jpeg = "not a Connect response: HTTP status 200, content type image/jpeg";
        check(200, &[("content-type", "image/jpeg")], b"", Err((Code::Unknown, jpeg)));
        let unknown =
            format!("content-encoding \"foo\" is not supported; accepted are {}", EncodingSet::ALL.value());
        check(200, &[PROTO, ("content-encoding", "foo")], b"a", Err((Code::Internal, &unknown)));
        check(418, &[JSON, ("content-encoding", "foo")], b"a", Err((Code::Internal, &unknown)));
        check(401, &[JSON], br#"{"message":"oops"}"#, Err((Code::Unauthenticated, "oops")));
        check(429, &[JSON], br#"{"code":"foobar","message":"oops"}"#, Err((Code::Unavailable, "oops")));
        check(422, &[JSON], br#"{"code":"out_of_range"}"#, Err((Code::OutOfRange, "")));
        let none = "not a Connect response: HTTP status 401, content type application/json; charset=utf-8";
        check(401, &[JSON], b"null", Err((Code::Unauthenticated, none)));
        check(401, &[JSON, ("content-encoding", "gzip")], b"{}", Err((Code::Unauthenticated, none)));
        let proto = "not a Connect response: HTTP status 403, content type application/proto";
        check(403, &[PROTO], b"", Err((Code::PermissionDenied, proto)));
        check(403, &[PROTO], br#"{"code":"aborted"}"#, Err((Code::PermissionDenied, proto)));
        let nothing = "not a Connect response: HTTP status 800, content type none";
        check(800, &[], b"", Err((Code::Unknown, nothing)));
        let mut error = Vec::new();
        Encoding::Gzip.compress(br#"{"code":"aborted"}"#, &mut error);
        check(409, &[JSON, ("content-encoding", "gzip")], &error, Err((Code::Aborted, "")));
        let large =
            "received message larger than max (1001 vs. 1000): see the receiver's max_decoding_message_size";
        check(200, &[PROTO], &[0; 1001], Err((Code::ResourceExhausted, large)));
    }

    #[test]
    fn random_responses_do_not_panic() {
        let words = ["{", "}", "\"code\"", ":", "\"aborted\"", ",", "\"details\"", "[", "]", "\u{e9}"];
        let mut seeded = Seeded(7);
        for _ in 0..2_000 {
            let status = StatusCode::from_u16(100 + seeded.below(900) as u16).unwrap();
            let list = [
                ("content-type", ["application/json", "application/proto"][seeded.below(2)]),
                ("content-encoding", ["", "gzip", "identity"][seeded.below(3)]),
                ("trailer-", "x"),
                ("trailer-x-bin", ["YQ", "?"][seeded.below(2)]),
            ];
            let body = Bytes::from(seeded.words(&words, 0..12));
            let _ = UnaryResponse::read(status, &headers(&list), body, "proto", EncodingSet::ALL, 100);
        }
    }
}
