//! Request headers: read by servers, written by clients.

use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT_ENCODING, ALLOW, CONTENT_ENCODING, CONTENT_TYPE};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode, Uri};
use thalweg_engine::{Code, Encoding, EncodingSet, Status};

use super::names::{PROTOCOL_VERSION, STREAM_ENCODING, STREAM_SUBTYPE, VERSION};
use super::query::{self, Query};
use super::response::ResponseFormat;
use super::timeout;
use crate::compression::{self, Compression};
use crate::content_type::{self, strip_prefix};
use crate::fields;

const STREAM_ACCEPT: HeaderName = HeaderName::from_static("connect-accept-encoding");

/// Requests that a server accepts.
#[derive(Clone, Copy, Debug)]
pub struct Rules<'a> {
    /// Accepted codecs: `proto`, `json`.
    pub codecs: &'a [&'a str],
    /// Whether unary requests must have the protocol version. If not, a plain `curl` request is accepted too.
    pub requires_version: bool,
    /// Accepted encodings of requests.
    pub accepts: EncodingSet,
    /// Encodings offered for responses.
    pub offers: EncodingSet,
}

/// Location of a request's messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Shape {
    /// The body is the message.
    Post,
    /// The query has the message, decoded but still compressed. Allowed only for methods without side effects.
    Get {
        /// The message.
        message: Bytes,
    },
    /// The body is a sequence of envelopes.
    Stream,
}

/// Decoded request headers.
#[derive(Clone, Debug)]
pub struct RequestHead<'a> {
    /// Location of the messages.
    pub shape: Shape,
    /// Codec of the messages, one of [`Rules::codecs`].
    pub codec: &'a str,
    /// The caller's timeout.
    pub timeout: Option<Duration>,
    /// Encoding of the request messages.
    pub encoding: Encoding,
    /// Encoding of the response messages.
    pub response_encoding: Encoding,
    /// The metadata, including `user-agent`.
    pub metadata: HeaderMap,
}

impl<'a> RequestHead<'a> {
    /// Returns the format of the response.
    pub fn response_format(&self) -> ResponseFormat<'a> {
        ResponseFormat {
            compression: Compression::with(self.response_encoding),
            is_stream: self.shape == Shape::Stream,
            is_get: matches!(self.shape, Shape::Get { .. }),
            ..ResponseFormat::unary(self.codec)
        }
    }
}

/// Reason why a request is not accepted as a call.
#[derive(Clone, Debug)]
pub enum Refusal<'a> {
    /// Neither POST nor GET: HTTP status 405.
    MethodNotAllowed,
    /// The server does not support the codec: HTTP status 415.
    UnsupportedMediaType,
    /// A Connect request that is malformed or unsupported: the call fails with this status.
    Status(Status, ResponseFormat<'a>),
}

impl Refusal<'_> {
    /// Returns the response.
    pub fn response(&self) -> Response<Bytes> {
        let (status, allow) = match self {
            Refusal::Status(status, response_format) => return response_format.failure(status),
            Refusal::MethodNotAllowed => (StatusCode::METHOD_NOT_ALLOWED, Some("GET, POST")),
            Refusal::UnsupportedMediaType => (StatusCode::UNSUPPORTED_MEDIA_TYPE, None),
        };
        let mut response = Response::new(Bytes::new());
        *response.status_mut() = status;
        if let Some(allow) = allow {
            response.headers_mut().insert(ALLOW, HeaderValue::from_static(allow));
        }
        response
    }
}

/// Reads the headers of a request. A request to a method's path is a Connect request if
///
/// - it is a POST of `application/…` that belongs to no other protocol, or
/// - it is a GET whose query has Connect's parameters; other GETs return `None`.
///
/// # Errors
/// # Errors
/// See [`Refusal`].
pub fn read_request<'a>(
    method: &Method,
    uri: &Uri,
    headers: &HeaderMap,
    rules: &Rules<'a>,
) -> Result<Option<RequestHead<'a>>, Refusal<'a>> {
    match *method {
        Method::POST => read_post(headers, rules).map(Some),
        Method::GET => {
            let query = Query::parse(uri.query().unwrap_or_default());
            if query.is_connect() { read_get(query, headers, rules).map(Some) } else { Ok(None) }
        }
        _ => Err(Refusal::MethodNotAllowed),
    }
}

/// Returns whether a GET has a Connect query.
pub(crate) fn is_get(uri: &Uri) -> bool {
    Query::parse(uri.query().unwrap_or_default()).is_connect()
}

fn read_post<'a>(headers: &HeaderMap, rules: &Rules<'a>) -> Result<RequestHead<'a>, Refusal<'a>> {
    let content_type = headers.get(CONTENT_TYPE).map(HeaderValue::as_bytes).unwrap_or_default();
    let subtype = content_type::application(content_type).ok_or(Refusal::UnsupportedMediaType)?;
    let stream = strip_prefix(subtype, STREAM_SUBTYPE);
    let codec = rules.codec(stream.unwrap_or(subtype).as_bytes())?;
    let response_format = ResponseFormat { is_stream: stream.is_some(), ..ResponseFormat::unary(codec) };
    let shape = if stream.is_some() { Shape::Stream } else { Shape::Post };
    let (encoding, accept) =
        if stream.is_some() { (STREAM_ENCODING, STREAM_ACCEPT) } else { (CONTENT_ENCODING, ACCEPT_ENCODING) };
    let named = headers.get(&encoding).map(HeaderValue::as_bytes);
    let encoding = compression::parse_encoding(encoding.as_str(), named, rules.accepts);
    // The content type of a stream identifies the protocol.
    let version = check_version(headers, rules.requires_version && stream.is_none());
    let read =
        version.and(encoding).and_then(|encoding| head(shape, codec, encoding, &accept, headers, rules));
    read.map_err(|status| Refusal::Status(status, response_format))
}

fn read_get<'a>(
    query: Query<'_>,
    headers: &HeaderMap,
    rules: &Rules<'a>,
) -> Result<RequestHead<'a>, Refusal<'a>> {
    let response_format = ResponseFormat { is_get: true, ..ResponseFormat::unary("") };
    let refused = |status| Refusal::Status(status, response_format);
    query.check_version(rules.requires_version).map_err(refused)?;
    let codec = rules.codec(query.encoding().map_err(refused)?)?;
    let read = || {
        let encoding = compression::parse_encoding("compression", query.compression(), rules.accepts)?;
        let message = query.message()?.into();
        head(Shape::Get { message }, codec, encoding, &ACCEPT_ENCODING, headers, rules)
    };
    read().map_err(refused)
}

fn head<'a>(
    shape: Shape,
    codec: &'a str,
    encoding: Encoding,
    accept: &HeaderName,
    headers: &HeaderMap,
    rules: &Rules<'_>,
) -> Result<RequestHead<'a>, Status> {
    let accept = headers.get_all(accept).iter().map(HeaderValue::as_bytes);
    Ok(RequestHead {
        shape,
        codec,
        timeout: timeout::read(headers)?,
        encoding,
        response_encoding: compression::negotiate(accept, encoding, rules.offers),
        metadata: fields::received(headers)?,
    })
}

fn check_version(headers: &HeaderMap, is_required: bool) -> Result<(), Status> {
    let why = match headers.get(PROTOCOL_VERSION) {
        Some(version) if version == VERSION => return Ok(()),
        None if !is_required => return Ok(()),
        None => format!("missing {PROTOCOL_VERSION}: {VERSION}, which this server requires"),
        Some(other) => format!("invalid {PROTOCOL_VERSION}; expected {VERSION}, found {other:?}"),
    };
    Err(Status::new(Code::InvalidArgument, why))
}

impl<'a> Rules<'a> {
    fn codec(&self, name: &[u8]) -> Result<&'a str, Refusal<'a>> {
        let known = self.codecs.iter().find(|codec| codec.as_bytes().eq_ignore_ascii_case(name));
        known.copied().ok_or(Refusal::UnsupportedMediaType)
    }
}

/// Input for the request headers of a call.
#[derive(Clone, Copy, Debug)]
pub struct Call<'a> {
    /// `/package.Service/Method`, with an optional prefix.
    pub path: &'a str,
    /// Codec of the messages.
    pub codec: &'a str,
    /// Timeout of the call.
    pub timeout: Option<Duration>,
    /// Compression of the request messages.
    pub compression: Compression,
    /// Accepted encodings of the response messages.
    pub accepts: EncodingSet,
    /// The metadata. Headers owned by the protocols and HTTP are omitted, including `user-agent`.
    pub metadata: &'a HeaderMap,
}

impl Call<'_> {
    /// Returns the request of a unary call.
    ///
    /// # Errors
    /// INTERNAL for a path that is invalid in a URL, RESOURCE_EXHAUSTED for metadata that is too large.
    pub fn post(&self, message: &[u8]) -> Result<Request<Bytes>, Status> {
        let compressed = self.compression.compress(message);
        let mut headers = self.headers(&ACCEPT_ENCODING)?;
        headers.insert(CONTENT_TYPE, value(&format!("application/{}", self.codec))?);
        headers.insert(PROTOCOL_VERSION, HeaderValue::from_static(VERSION));
        if compressed.is_some() {
            headers.insert(CONTENT_ENCODING, HeaderValue::from_static(self.compression.encoding.name()));
        }
        let body = compressed.map_or_else(|| Bytes::copy_from_slice(message), Bytes::from);
        self.request(Method::POST, self.path, headers, body)
    }

    /// Returns the request of a unary call without side effects. Its URL contains the message; if it is too long, use
    /// [`post`](Self::post).
    ///
    /// # Errors
    /// See [`post`](Self::post).
    pub fn get(&self, message: &[u8]) -> Result<Request<()>, Status> {
        let compressed = self.compression.compress(message);
        let compression = compressed.is_some().then(|| self.compression.encoding.name());
        let is_text = compressed.is_none() && self.codec == "json";
        let query = query::write(self.codec, compression, compressed.as_deref().unwrap_or(message), is_text);
        self.request(Method::GET, &format!("{}?{query}", self.path), self.headers(&ACCEPT_ENCODING)?, ())
    }

    /// Returns the request headers of a streaming call. Each message is in an [envelope](crate::envelope::put_message).
    ///
    /// # Errors
    /// See [`post`](Self::post).
    pub fn stream(&self) -> Result<Request<()>, Status> {
        let mut headers = self.headers(&STREAM_ACCEPT)?;
        headers.insert(CONTENT_TYPE, value(&format!("application/{STREAM_SUBTYPE}{}", self.codec))?);
        headers.insert(PROTOCOL_VERSION, HeaderValue::from_static(VERSION));
        if self.compression.encoding.compresses() {
            headers.insert(STREAM_ENCODING, HeaderValue::from_static(self.compression.encoding.name()));
        }
        self.request(Method::POST, self.path, headers, ())
    }

    /// Returns the headers that all requests have.
    fn headers(&self, accept: &HeaderName) -> Result<HeaderMap, Status> {
        let mut headers = HeaderMap::new();
        fields::append(self.metadata, "", &mut headers)?;
        headers.insert(accept, value(&compression::accept_value(self.accepts))?);
        if let Some(timeout) = self.timeout {
            headers.insert(timeout::NAME, timeout::value(timeout));
        }
        Ok(headers)
    }

    /// Puts a request together. Its parts come first, because a request is large to move.
    fn request<B>(
        &self,
        method: Method,
        uri: &str,
        headers: HeaderMap,
        body: B,
    ) -> Result<Request<B>, Status> {
        let uri =
            Uri::try_from(uri).map_err(|error| internal(format!("invalid path {:?}: {error}", self.path)))?;
        let mut request = Request::new(body);
        *request.method_mut() = method;
        *request.uri_mut() = uri;
        *request.headers_mut() = headers;
        Ok(request)
    }
}

/// Returns a header value, which a codec's name may not be.
fn value(text: &str) -> Result<HeaderValue, Status> {
    HeaderValue::try_from(text).map_err(|_| internal(format!("invalid header value {text:?}")))
}

fn internal(why: String) -> Status {
    Status::new(Code::Internal, why)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Seeded, header_lines, headers};

    const RULES: Rules<'static> = Rules {
        codecs: &["proto", "json"],
        requires_version: false,
        accepts: EncodingSet::ALL,
        offers: EncodingSet::ALL,
    };

    /// Returns a description of the request or of its refusal.
    fn read(method: &str, uri: &str, list: &[(&str, &str)], rules: &Rules<'_>) -> String {
        let (method, uri) = (method.parse().unwrap(), uri.parse().unwrap());
        match read_request(&method, &uri, &headers(list), rules) {
            Ok(None) => "other".to_owned(),
            Ok(Some(head)) => {
                let shape = match &head.shape {
                    Shape::Post => "post".to_owned(),
                    Shape::Get { message } => format!("get {}", String::from_utf8_lossy(message)),
                    Shape::Stream => "stream".to_owned(),
                };
                let (encoding, response) = (head.encoding.name(), head.response_encoding.name());
                let timeout = head.timeout.map(|timeout| format!(" {timeout:?}")).unwrap_or_default();
                format!(
                    "{shape} {} {encoding} {response}{timeout} {}",
                    head.codec,
                    header_lines(&head.metadata)
                )
            }
            Err(Refusal::Status(status, response_format)) => {
                let kind = if response_format.is_stream { "stream" } else { "unary" };
                format!("{kind} {:?}: {}", status.code(), status.message())
            }
            Err(refusal) => refusal.response().status().as_str().to_owned(),
        }
    }

    #[test]
    fn post_is_read_or_rejected() {
        const PROTO: (&str, &str) = ("content-type", "application/proto");
        const STREAM: (&str, &str) = ("content-type", "application/connect+json");
        let check = |list: &[(&str, &str)], expected: &str| {
            assert_eq!(read("POST", "/a.B/C", list, &RULES), expected, "{list:?}");
        };
        check(&[PROTO], "post proto identity identity ");
        check(&[("content-type", "application/JSON; charset=utf-8")], "post json identity identity ");
        check(
            &[PROTO, ("connect-protocol-version", "1"), ("connect-timeout-ms", "1500"), ("x-a", "b")],
            "post proto identity identity 1.5s x-a: b",
        );
        check(&[PROTO, ("content-encoding", "gzip")], "post proto gzip gzip ");
        check(
            &[PROTO, ("content-encoding", "gzip"), ("accept-encoding", "rot13")],
            "post proto gzip identity ",
        );
        check(&[PROTO, ("connect-content-encoding", "gzip")], "post proto identity identity ");
        check(&[PROTO, ("accept-encoding", "rot13, deflate, gzip")], "post proto identity deflate ");
        check(&[STREAM], "stream json identity identity ");
        check(
            &[STREAM, ("connect-content-encoding", "gzip"), ("content-encoding", "foo")],
            "stream json gzip gzip ",
        );
        check(&[STREAM, ("connect-accept-encoding", "gzip")], "stream json identity gzip ");
        for other in
            ["application/foo", "application/connect+foo", "text/plain", "application/json; charset=x"]
        {
            check(&[("content-type", other)], "415");
        }
        check(&[], "415");
        let accepted = EncodingSet::ALL.value();
        check(
            &[PROTO, ("content-encoding", "foo")],
            &format!(
                "unary Unimplemented: content-encoding \"foo\" is not supported; accepted are {accepted}"
            ),
        );
        check(
            &[STREAM, ("connect-content-encoding", "foo")],
            &format!(
                "stream Unimplemented: connect-content-encoding \"foo\" is not supported; accepted are {accepted}"
            ),
        );
        let timeout = "malformed connect-timeout-ms \"1s\": expected one to ten digits";
        check(&[PROTO, ("connect-timeout-ms", "1s")], &format!("unary InvalidArgument: {timeout}"));
        check(&[STREAM, ("connect-timeout-ms", "1s")], &format!("stream InvalidArgument: {timeout}"));
        check(
            &[PROTO, ("connect-protocol-version", "2")],
            "unary InvalidArgument: invalid connect-protocol-version; expected 1, found \"2\"",
        );
        assert_eq!(read("DELETE", "/a.B/C", &[PROTO], &RULES), "405");
    }

    #[test]
    fn get_is_read_or_rejected() {
        let check = |query: &str, list: &[(&str, &str)], expected: &str| {
            assert_eq!(read("GET", &format!("/a.B/C{query}"), list, &RULES), expected, "{query}");
        };
        check("?connect=v1&encoding=json&message=%7B%7D", &[], "get {} json identity identity ");
        check(
            "?message=abc&encoding=proto",
            &[("connect-timeout-ms", "7")],
            "get abc proto identity identity 7ms ",
        );
        check("?message=YQ&encoding=proto&base64=1&compression=gzip", &[], "get a proto gzip gzip ");
        check("?message=a&encoding=proto", &[("accept-encoding", "gzip")], "get a proto identity gzip ");
        check("?message=a", &[], "other");
        check("", &[], "other");
        check("?connect=v1&message=a", &[], "unary InvalidArgument: missing encoding in the query");
        check("?connect=v1&encoding=proto", &[], "unary InvalidArgument: missing message in the query");
        check("?encoding=foo&message=a", &[], "415");
        let accepted = EncodingSet::ALL.value();
        check(
            "?encoding=json&message=a&compression=foo",
            &[],
            &format!("unary Unimplemented: compression \"foo\" is not supported; accepted are {accepted}"),
        );
    }

    #[test]
    fn missing_version_is_rejected_if_required() {
        let rules = Rules { requires_version: true, ..RULES };
        let check = |method: &str, uri: &str, list: &[(&str, &str)], expected: &str| {
            assert_eq!(read(method, uri, list, &rules), expected);
        };
        let proto = ("content-type", "application/proto");
        check(
            "POST",
            "/a.B/C",
            &[proto],
            "unary InvalidArgument: missing connect-protocol-version: 1, which this server requires",
        );
        check("POST", "/a.B/C", &[proto, ("connect-protocol-version", "1")], "post proto identity identity ");
        check(
            "POST",
            "/a.B/C",
            &[("content-type", "application/connect+proto")],
            "stream proto identity identity ",
        );
        check(
            "GET",
            "/a.B/C?encoding=proto&message=a",
            &[],
            "unary InvalidArgument: missing connect=v1 in the query, which this server requires",
        );
        check("GET", "/a.B/C?encoding=proto&message=a&connect=v1", &[], "get a proto identity identity ");
    }

    #[test]
    fn server_reads_request_written_by_client() {
        let metadata = headers(&[("x-a", "b"), ("x-bin", "YQ==")]);
        let call = Call {
            path: "/prefix/a.B/C",
            codec: "json",
            timeout: Some(Duration::from_secs(2)),
            compression: Compression { encoding: Encoding::Gzip, threshold: 100 },
            accepts: EncodingSet::IDENTITY.with(Encoding::Deflate),
            metadata: &metadata,
        };
        let check = |parts: &http::request::Parts, expected: &str| {
            assert_eq!(parts.uri.path(), call.path);
            let rules = Rules { requires_version: true, ..RULES };
            let list: Vec<(&str, &str)> =
                parts.headers.iter().map(|(name, value)| (name.as_str(), value.to_str().unwrap())).collect();
            let read = read(parts.method.as_str(), &parts.uri.to_string(), &list, &rules);
            assert_eq!(read, format!("{expected} deflate 2s x-a: b\nx-bin: YQ"));
        };
        let (parts, body) = call.post(b"{}").unwrap().into_parts();
        check(&parts, "post json identity");
        assert_eq!(&body[..], b"{}");
        let long = [b' '; 100];
        let (parts, body) = call.post(&long).unwrap().into_parts();
        check(&parts, "post json gzip");
        assert_eq!(compression::decompress(Encoding::Gzip, body, 100).unwrap(), &long[..]);
        let (parts, ()) = call.get(b"{\"a\": 1}").unwrap().into_parts();
        check(&parts, "get {\"a\": 1} json identity");
        assert!(
            call.get(&long)
                .unwrap()
                .uri()
                .query()
                .unwrap()
                .starts_with("connect=v1&base64=1&compression=gzip")
        );
        let (parts, ()) = call.stream().unwrap().into_parts();
        check(&parts, "stream json gzip");

        let bad_path = Call { path: "/a b", ..call }.post(b"").unwrap_err();
        assert_eq!(bad_path.code(), Code::Internal);
        let bad_codec = Call { codec: "a\nb", ..call }.stream().unwrap_err();
        assert_eq!(bad_codec.message(), "invalid header value \"application/connect+a\\nb\"");
    }

    #[test]
    fn random_headers_do_not_panic() {
        let names = ["content-type", "content-encoding", "connect-timeout-ms", "accept-encoding", "x-bin"];
        let words =
            ["application/", "connect+", "proto", "json", ";", "gzip", "9", ",", "charset=", "\u{e9}", " "];
        let mut seeded = Seeded(6);
        for _ in 0..3_000 {
            let mut header_map = HeaderMap::new();
            for name in names {
                if let Ok(value) = HeaderValue::try_from(seeded.words(&words, 0..5)) {
                    header_map.append(name, value);
                }
            }
            let _ = read_request(&Method::POST, &Uri::from_static("/a.B/C"), &header_map, &RULES);
            let uri = "/a.B/C?message=a&encoding=json";
            let _ = read_request(&Method::GET, &Uri::from_static(uri), &header_map, &RULES);
        }
    }
}
