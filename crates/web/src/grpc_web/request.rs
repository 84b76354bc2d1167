//! Request headers: read by servers, written by clients. Except for the content type they are gRPC's.

use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, ALLOW, CONTENT_TYPE};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode, Uri};
use thalweg_engine::http2::fields::FieldList;
use thalweg_engine::{Code, EncodingSet, Status, wire};

use super::content_type::ContentType;
use super::parts;
use super::response::ResponseFormat;
use crate::compression::{self, Compression};
use crate::fields;

const GRPC_WEB: HeaderName = HeaderName::from_static("x-grpc-web");
const GRPC_ACCEPT: HeaderName = HeaderName::from_static("grpc-accept-encoding");

/// Requests that a server accepts.
#[derive(Clone, Copy, Debug)]
pub struct Rules<'a> {
    /// Accepted codecs: `proto`, `json`.
    pub codecs: &'a [&'a str],
    /// Accepted encodings of requests.
    pub accepts: EncodingSet,
    /// Encodings offered for responses.
    pub offers: EncodingSet,
}

/// Decoded request headers.
#[derive(Clone, Debug)]
pub struct RequestHead<'a> {
    /// Whether the body is Base64.
    pub is_text: bool,
    /// Codec of the messages, one of [`Rules::codecs`].
    pub codec: &'a str,
    /// The gRPC part: timeout, encoding, metadata.
    pub head: thalweg_engine::RequestHead,
    /// Format of the response.
    pub response_format: ResponseFormat<'a>,
}

/// Reason why a request is not accepted as a call.
#[derive(Clone, Debug)]
pub enum Refusal<'a> {
    /// Not a POST: HTTP status 405.
    MethodNotAllowed,
    /// Not gRPC-Web, or an unsupported codec: HTTP status 415.
    UnsupportedMediaType,
    /// A gRPC-Web request that is malformed or unsupported: the call fails with this status.
    Status(Status, ResponseFormat<'a>),
}

impl Refusal<'_> {
    /// Returns the response.
    pub fn response(&self) -> Response<Bytes> {
        let mut response = Response::new(Bytes::new());
        match self {
            Refusal::Status(status, response_format) => return response_format.failure(status),
            Refusal::MethodNotAllowed => {
                *response.status_mut() = StatusCode::METHOD_NOT_ALLOWED;
                response.headers_mut().insert(ALLOW, HeaderValue::from_static("POST"));
            }
            Refusal::UnsupportedMediaType => *response.status_mut() = StatusCode::UNSUPPORTED_MEDIA_TYPE,
        }
        response
    }
}

/// Reads the headers of a request.
///
/// # Errors
/// See [`Refusal`].
pub fn read_request<'a>(
    method: &Method,
    headers: &HeaderMap,
    rules: &Rules<'a>,
) -> Result<RequestHead<'a>, Refusal<'a>> {
    if *method != Method::POST {
        return Err(Refusal::MethodNotAllowed);
    }
    let content_type = headers.get(CONTENT_TYPE).map(HeaderValue::as_bytes).unwrap_or_default();
    let requested = ContentType::parse(content_type).ok_or(Refusal::UnsupportedMediaType)?;
    let codec = rules.codecs.iter().copied().find(|codec| codec.eq_ignore_ascii_case(requested.codec()));
    let codec = codec.ok_or(Refusal::UnsupportedMediaType)?;
    // `accept` may ask for another response format; usually it is equal or a wildcard.
    let wanted = headers.get(ACCEPT).and_then(|accept| ContentType::parse(accept.as_bytes()));
    let content_type = ContentType {
        is_text: wanted.map_or(requested.is_text, |wanted| wanted.is_text),
        codec: if requested.codec.is_empty() { "" } else { codec },
    };
    let mut response_format =
        ResponseFormat { content_type, compression: Compression::NONE, accepts: rules.accepts };
    let fields = fields::grpc_fields(headers).filter(|field| field.name != b"accept");
    let head =
        wire::receive_request(Some(b"POST"), rules.accepts, fields).map_err(|refusal| match refusal {
            wire::Refusal::Status(status) => Refusal::Status(status, response_format),
            wire::Refusal::MethodNotAllowed => Refusal::MethodNotAllowed,
            wire::Refusal::UnsupportedMediaType => Refusal::UnsupportedMediaType,
        })?;
    response_format.compression = Compression::with(compression::first_common(rules.offers, head.accepts));
    Ok(RequestHead { is_text: requested.is_text, codec, head, response_format })
}

/// Input for a request.
#[derive(Clone, Copy, Debug)]
pub struct Call<'a> {
    /// `/package.Service/Method`, with an optional prefix.
    pub path: &'a str,
    /// Content type of the request.
    pub content_type: ContentType<'a>,
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
    /// Returns the request headers.
    ///
    /// # Errors
    /// INTERNAL for a path that is invalid in a URL, RESOURCE_EXHAUSTED for metadata that is too large.
    pub fn head(&self) -> Result<Request<()>, Status> {
        let mut request = Request::new(());
        *request.method_mut() = Method::POST;
        *request.uri_mut() = Uri::try_from(self.path)
            .map_err(|error| Status::new(Code::Internal, format!("invalid path {:?}: {error}", self.path)))?;
        let mut fields = FieldList::new();
        let encoding = self.compression.encoding;
        wire::emit_request(self.timeout, encoding, self.metadata, wire::METADATA_SIZE_MAX, &mut fields)?;
        let headers = request.headers_mut();
        fields::append_fields(&fields, headers);
        headers.insert(CONTENT_TYPE, self.content_type.value());
        headers.insert(ACCEPT, self.content_type.value());
        headers.insert(GRPC_ACCEPT, HeaderValue::from_static(self.accepts.value()));
        headers.insert(GRPC_WEB, HeaderValue::from_static("1"));
        Ok(request)
    }

    /// Appends a message to the body `out`.
    ///
    /// # Errors
    /// RESOURCE_EXHAUSTED if the message exceeds the range of the length prefix.
    pub fn message(&self, message: &[u8], out: &mut Vec<u8>) -> Result<(), Status> {
        parts::put_message(message, &self.compression, self.content_type.is_text, out)
    }
}

#[cfg(test)]
mod tests {
    use thalweg_engine::Encoding;

    use super::*;
    use crate::envelope::EnvelopeReader;
    use crate::testing::{Seeded, header_lines, headers};

    const RULES: Rules<'static> =
        Rules { codecs: &["proto", "json"], accepts: EncodingSet::ALL, offers: EncodingSet::ALL };

    /// Returns a description of the request or of its refusal.
    fn read(list: &[(&str, &str)]) -> String {
        match read_request(&Method::POST, &headers(list), &RULES) {
            Ok(read) => {
                let timeout = read.head.timeout.map(|timeout| format!(" {timeout:?}")).unwrap_or_default();
                let response = read.response_format.content_type.value();
                format!(
                    "{} {} {}{timeout} -> {} {} {}",
                    if read.is_text { "text" } else { "binary" },
                    read.codec,
                    read.head.encoding.name(),
                    response.to_str().unwrap(),
                    read.response_format.compression.encoding.name(),
                    header_lines(&read.head.metadata)
                )
            }
            Err(Refusal::Status(status, _)) => format!("{:?}: {}", status.code(), status.message()),
            Err(refusal) => refusal.response().status().as_str().to_owned(),
        }
    }

    #[test]
    fn request_headers_are_read_or_rejected() {
        const WEB: (&str, &str) = ("content-type", "application/grpc-web");
        const TEXT: (&str, &str) = ("content-type", "application/grpc-web-text+proto");
        let check = |list: &[(&str, &str)], expected: &str| assert_eq!(read(list), expected, "{list:?}");
        check(&[WEB], "binary proto identity -> application/grpc-web identity ");
        check(&[TEXT], "text proto identity -> application/grpc-web-text+proto identity ");
        check(
            &[TEXT, ("accept", "application/grpc-web")],
            "text proto identity -> application/grpc-web+proto identity ",
        );
        check(
            &[WEB, ("accept", "application/grpc-web-text")],
            "binary proto identity -> application/grpc-web-text identity ",
        );
        check(&[TEXT, ("accept", "*/*")], "text proto identity -> application/grpc-web-text+proto identity ");
        check(
            &[
                ("content-type", "application/grpc-web+JSON"),
                ("grpc-timeout", "1S"),
                ("grpc-encoding", "gzip"),
                ("grpc-accept-encoding", "identity,deflate"),
                ("accept-encoding", "gzip"),
                ("content-encoding", "foo"),
                ("content-length", "1"),
                ("x-grpc-web", "1"),
                ("host", "a"),
                ("x-user-agent", "grpc-web-javascript/0.1"),
                ("x-bin", "YQ=="),
            ],
            "binary json gzip 1s -> application/grpc-web+json deflate \
             x-bin: YQ\nx-user-agent: grpc-web-javascript/0.1",
        );
        check(
            &[WEB, ("grpc-accept-encoding", "gzip,identity")],
            "binary proto identity -> application/grpc-web gzip ",
        );
        check(&[WEB, ("grpc-encoding", "gzip")], "binary proto gzip -> application/grpc-web identity ");
        for other in ["application/grpc-web+foo", "application/grpc", "application/json"] {
            check(&[("content-type", other)], "415");
        }
        check(&[], "415");
        let accepted = EncodingSet::ALL.value();
        check(
            &[WEB, ("grpc-encoding", "foo")],
            &format!("Unimplemented: grpc-encoding \"foo\" is not supported; accepted are {accepted}"),
        );
        check(
            &[WEB, ("grpc-timeout", "1")],
            "Internal: malformed grpc-timeout \"1\": expected one to eight digits and one of H, M, S, m, u, n",
        );
        let refusal = read_request(&Method::GET, &headers(&[WEB]), &RULES).unwrap_err();
        assert_eq!(refusal.response().headers()[ALLOW], "POST");
    }

    #[test]
    fn server_reads_request_written_by_client() {
        let metadata = headers(&[("x-a", "b"), ("x-bin", "YQ==")]);
        for is_text in [false, true] {
            let call = Call {
                path: "/a.B/C",
                content_type: ContentType { is_text, codec: "proto" },
                timeout: Some(Duration::from_secs(2)),
                compression: Compression { encoding: Encoding::Gzip, threshold: 20 },
                accepts: EncodingSet::IDENTITY.with(Encoding::Deflate),
                metadata: &metadata,
            };
            let head = call.head().unwrap();
            assert_eq!((head.method(), head.uri().path()), (&Method::POST, "/a.B/C"));
            let read = read_request(&Method::POST, head.headers(), &RULES).unwrap();
            assert_eq!(read.is_text, is_text);
            assert_eq!(read.head.timeout, call.timeout);
            assert_eq!(header_lines(&read.head.metadata), "x-a: b\nx-bin: YQ");
            assert_eq!(read.response_format.content_type, call.content_type);
            assert_eq!(read.response_format.compression.encoding, Encoding::Deflate);
            let mut body = Vec::new();
            call.message(b"abc", &mut body).unwrap();
            call.message(&[7; 50], &mut body).unwrap();
            for piece_len in 1..=body.len() {
                let mut reader = EnvelopeReader::new(0, read.head.encoding, 50).with_text(is_text);
                let mut messages = Vec::new();
                for piece in body.chunks(piece_len) {
                    reader.push(Bytes::copy_from_slice(piece));
                    while let Some(message) = reader.message().unwrap() {
                        messages.push(message);
                    }
                }
                reader.finish().unwrap();
                assert_eq!(messages, [&b"abc"[..], &[7; 50]]);
            }
            assert_eq!(Call { path: "a b", ..call }.head().unwrap_err().code(), Code::Internal);
            let large = headers(&[("x-a", &"a".repeat(20_000))]);
            let too_large = Call { metadata: &large, ..call }.head().unwrap_err();
            assert_eq!(too_large.code(), Code::ResourceExhausted);
        }
    }

    #[test]
    fn request_with_trailers_is_rejected() {
        let mut reader = EnvelopeReader::new(0, Encoding::Identity, 50);
        reader.push(Bytes::from_static(b"\x80\0\0\0\0"));
        let why = "received an envelope with the unexpected flags 128";
        assert_eq!(reader.take().unwrap_err().message(), why);
    }

    #[test]
    fn random_headers_do_not_panic() {
        let names = ["content-type", "grpc-encoding", "grpc-timeout", "accept", "x-bin"];
        let words =
            ["application/", "grpc-web", "-text", "+", "proto", ";", "gzip", "9", "S", ",", "\u{e9}", " "];
        let mut seeded = Seeded(11);
        for _ in 0..3_000 {
            let mut header_map = HeaderMap::new();
            for name in names {
                if let Ok(value) = HeaderValue::try_from(seeded.words(&words, 0..5)) {
                    header_map.append(name, value);
                }
            }
            let _ = read_request(&Method::POST, &header_map, &RULES);
        }
    }
}
