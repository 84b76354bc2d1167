//! Responses: written by servers, read by clients.

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode};
use thalweg_engine::http2::fields::FieldList;
use thalweg_engine::{Code, EncodingSet, Status, wire};

use super::content_type::ContentType;
use super::parts::{self, TRAILERS};
use super::trailers;
use crate::compression::Compression;
use crate::envelope::{EnvelopeReader, ResponseReader};
use crate::fields;

const GRPC_ACCEPT: HeaderName = HeaderName::from_static("grpc-accept-encoding");

/// Format of the response to a request.
#[derive(Clone, Copy, Debug)]
pub struct ResponseFormat<'a> {
    /// Content type of the response.
    pub content_type: ContentType<'a>,
    /// Compression of the messages.
    pub compression: Compression,
    /// Encodings that the client may use for requests.
    pub accepts: EncodingSet,
}

impl ResponseFormat<'_> {
    /// Returns the response headers.
    ///
    /// # Errors
    /// RESOURCE_EXHAUSTED if the metadata is too large; respond with [`failure`](Self::failure) then.
    pub fn head(&self, metadata: &HeaderMap) -> Result<Response<()>, Status> {
        let mut fields = FieldList::new();
        wire::emit_response(self.compression.encoding, metadata, wire::METADATA_SIZE_MAX, &mut fields)?;
        Ok(self.build(&fields))
    }

    /// Appends a message to `out`.
    ///
    /// # Errors
    /// RESOURCE_EXHAUSTED if the message exceeds the range of the length prefix.
    pub fn message(&self, message: &[u8], out: &mut Vec<u8>) -> Result<(), Status> {
        parts::put_message(message, &self.compression, self.content_type.is_text, out)
    }

    /// Appends the end of the response to `out`: the trailing metadata of a success, or the status of a failure.
    pub fn end(&self, outcome: Result<&HeaderMap, &Status>, out: &mut Vec<u8>) {
        parts::put_trailers(outcome, self.content_type.is_text, out);
    }

    /// Returns the complete response of a call that failed before its response started. The status is in the body,
    /// which browsers expose to pages without further CORS headers.
    pub fn failure(&self, status: &Status) -> Response<Bytes> {
        let mut body = Vec::new();
        self.end(Err(status), &mut body);
        self.build(&FieldList::new()).map(|()| body.into())
    }

    /// Returns the response headers of a call without messages (Trailers-Only).
    pub fn trailers_only(&self, outcome: Result<&HeaderMap, &Status>) -> Response<()> {
        let mut fields = FieldList::new();
        wire::emit_trailers(outcome, wire::METADATA_SIZE_MAX, &mut fields);
        self.build(&fields)
    }

    fn build(&self, fields: &FieldList) -> Response<()> {
        let mut response = Response::new(());
        let headers = response.headers_mut();
        fields::append_fields(fields, headers);
        headers.insert(CONTENT_TYPE, self.content_type.value());
        headers.insert(GRPC_ACCEPT, HeaderValue::from_static(self.accepts.value()));
        response
    }
}

/// Reads the response headers of a call with this codec. Returns the leading metadata and the reader of the body.
/// Messages have at most `size_max` bytes.
///
/// # Errors
/// A status that describes a response that is not gRPC-Web.
pub fn read_response(
    http_status: StatusCode,
    headers: &HeaderMap,
    codec: &str,
    accepts: EncodingSet,
    size_max: usize,
) -> Result<(HeaderMap, ResponseReader), Status> {
    let content_type = headers.get(CONTENT_TYPE).map(HeaderValue::as_bytes).unwrap_or_default();
    let response_type = ContentType::parse(content_type).filter(|_| http_status == StatusCode::OK);
    let Some(response_type) = response_type else {
        return Err(not_grpc_web(http_status, headers, content_type));
    };
    if !response_type.codec().eq_ignore_ascii_case(codec) {
        let content_type = String::from_utf8_lossy(content_type);
        let why = format!("the server sent the content type {content_type}, not {codec}");
        return Err(Status::new(Code::Internal, why));
    }
    let head = wire::receive_response(Some(200), accepts, fields::grpc_fields(headers))?;
    let reader = EnvelopeReader::new(TRAILERS, head.encoding, size_max).with_text(response_type.is_text);
    let without_body = wire::receive_trailers_only(Some(200), fields::grpc_fields(headers));
    let truncated = "body truncated: no trailers";
    Ok((head.metadata, ResponseReader::new(reader, trailers::read, Some(without_body), truncated)))
}

/// Returns the status of a response that is not gRPC-Web: its own gRPC status, if it has one.
fn not_grpc_web(http_status: StatusCode, headers: &HeaderMap, content_type: &[u8]) -> Status {
    if headers.contains_key("grpc-status")
        && let Err(status) =
            wire::receive_trailers_only(Some(http_status.as_u16()), fields::grpc_fields(headers))
    {
        return status;
    }
    let content_type =
        if content_type.is_empty() { "none".into() } else { String::from_utf8_lossy(content_type) };
    let http_status = http_status.as_u16();
    let why = format!("not a gRPC-Web response: HTTP status {http_status}, content type {content_type}");
    Status::new(Code::from_http_status(http_status), why)
}

#[cfg(test)]
mod tests {
    use thalweg_engine::Encoding;

    use super::*;
    use crate::envelope::{self, ResponsePart};
    use crate::grpc_web::text;
    use crate::testing::{Seeded, failure, header_lines, headers};

    fn response_format(is_text: bool) -> ResponseFormat<'static> {
        ResponseFormat {
            content_type: ContentType { is_text, codec: "proto" },
            compression: Compression { encoding: Encoding::Gzip, threshold: 20 },
            accepts: EncodingSet::IDENTITY.with(Encoding::Gzip),
        }
    }

    /// Returns a description of a response's parts.
    fn read(status: u16, headers: &HeaderMap, body: &[u8], piece_len: usize) -> Result<Vec<String>, Status> {
        let status = StatusCode::from_u16(status).unwrap();
        let (metadata, mut reader) = read_response(status, headers, "proto", EncodingSet::ALL, 1000)?;
        let mut parts = vec![format!("head {}", header_lines(&metadata))];
        for piece in body.chunks(piece_len) {
            reader.push(Bytes::copy_from_slice(piece));
            while let Some(received) = reader.take()? {
                parts.push(match received {
                    ResponsePart::Message(message) => String::from_utf8_lossy(&message).into_owned(),
                    ResponsePart::End(trailers) => format!("end {}", header_lines(&trailers)),
                });
            }
        }
        parts.extend(reader.finish()?.map(|trailers| format!("end {}", header_lines(&trailers))));
        Ok(parts)
    }

    #[test]
    fn response_round_trips_at_any_piece_length() {
        for is_text in [false, true] {
            let response_format = response_format(is_text);
            let head = response_format.head(&headers(&[("x-a", "1")])).unwrap();
            let mut body = Vec::new();
            response_format.message(b"abc", &mut body).unwrap();
            response_format.message(&[b'x'; 50], &mut body).unwrap();
            let messages = body.len();
            response_format.end(Ok(&headers(&[("x-b", "2")])), &mut body);
            let x = "x".repeat(50);
            for piece_len in 1..=body.len() {
                let parts = read(200, head.headers(), &body, piece_len).unwrap();
                assert_eq!(parts, ["head x-a: 1", "abc", &x, "end x-b: 2"]);
            }
            for cut in 1..body.len() {
                assert_eq!(failure(read(200, head.headers(), &body[..cut], 7)).0, Code::Internal, "{cut}");
            }
            body.truncate(messages);
            response_format.end(Err(&Status::new(Code::Aborted, "later \u{e9}")), &mut body);
            let expected = (Code::Aborted, "later \u{e9}".to_owned());
            assert_eq!(failure(read(200, head.headers(), &body, 3)), expected);
        }
    }

    #[test]
    fn failure_is_written_to_the_body() {
        let status = Status::new(Code::NotFound, "gone").prepend_metadata(&headers(&[("x-a", "1")]));
        let response = response_format(false).failure(&status);
        let head = "content-type: application/grpc-web+proto\ngrpc-accept-encoding: identity,gzip";
        assert_eq!(header_lines(response.headers()), head);
        let block = b"x-a: 1\r\ngrpc-status: 5\r\ngrpc-message: gone\r\n";
        assert_eq!(response.body()[..5], [0x80, 0, 0, 0, block.len() as u8]);
        assert_eq!(&response.body()[5..], block);
        let read_back = read(200, response.headers(), response.body(), 9).unwrap_err();
        assert_eq!((read_back.code(), read_back.message()), (Code::NotFound, "gone"));
        assert_eq!(header_lines(read_back.metadata().as_ref()), "x-a: 1");

        let response = response_format(true).trailers_only(Err(&status));
        let head = "content-type: application/grpc-web-text+proto\ngrpc-accept-encoding: identity,gzip\n\
                    grpc-message: gone\ngrpc-status: 5\nx-a: 1";
        assert_eq!(header_lines(response.headers()), head);
        let read_back = read(200, response.headers(), b"", 9).unwrap_err();
        assert_eq!(
            (read_back.code(), header_lines(read_back.metadata().as_ref())),
            (Code::NotFound, "x-a: 1".to_owned())
        );
        let success = response_format(false).trailers_only(Ok(&headers(&[("x-a", "1")])));
        assert_eq!(read(200, success.headers(), b"", 9).unwrap(), ["head x-a: 1", "end x-a: 1"]);
    }

    #[test]
    fn responses_of_other_servers_are_read() {
        const WEB: (&str, &str) = ("content-type", "application/grpc-web");
        let check = |status, list: &[(&str, &str)], body: &[u8], expected: Result<&[&str], (Code, &str)>| {
            let outcome = read(status, &headers(list), body, 4);
            let outcome = outcome.as_ref().map_err(|status| (status.code(), status.message()));
            match (outcome, expected) {
                (Ok(parts), Ok(expected)) => assert_eq!(parts, expected),
                (outcome, expected) => assert_eq!(outcome.map(drop), expected.map(drop), "{list:?}"),
            }
        };
        check(200, &[WEB], b"\x80\0\0\0\x10grpc-status: 0\r\n", Ok(&["head ", "end "]));
        let missing = "the server ended the call without grpc-status (a proxy may have dropped the trailers)";
        check(200, &[WEB], b"\x80\0\0\0\x00", Err((Code::Unknown, missing)));
        check(200, &[WEB, ("grpc-message", "error")], b"", Err((Code::Unknown, missing)));
        // The headers count only if there is no body.
        let both = [WEB, ("grpc-status", "8")];
        check(200, &both, b"\x80\0\0\0\x0egrpc-status: 9", Err((Code::FailedPrecondition, "")));
        check(200, &both, b"", Err((Code::ResourceExhausted, "")));
        let cut = "body truncated: no trailers";
        check(200, &both, b"\0\0\0\0\0", Err((Code::Internal, cut)));
        let trailing = "bytes follow the end of the stream";
        check(200, &[WEB], b"\x80\0\0\0\x10grpc-status: 0\r\n\0", Err((Code::Internal, trailing)));
        let jpeg = "not a gRPC-Web response: HTTP status 200, content type image/jpeg";
        check(200, &[("content-type", "image/jpeg")], b"", Err((Code::Unknown, jpeg)));
        let grpc = "not a gRPC-Web response: HTTP status 200, content type application/grpc";
        check(200, &[("content-type", "application/grpc")], b"", Err((Code::Unknown, grpc)));
        let none = "not a gRPC-Web response: HTTP status 503, content type none";
        check(503, &[], b"", Err((Code::Unavailable, none)));
        check(403, &[("grpc-status", "16")], b"", Err((Code::Unauthenticated, "")));
        let json = "the server sent the content type application/grpc-web+json, not proto";
        check(200, &[("content-type", "application/grpc-web+json")], b"", Err((Code::Internal, json)));
        let encoding =
            format!("grpc-encoding \"foo\" is not supported; accepted are {}", EncodingSet::ALL.value());
        check(200, &[WEB, ("grpc-encoding", "foo")], b"", Err((Code::Internal, &encoding)));
        let compressed = "received a compressed message in a stream without compression";
        check(200, &[WEB, ("grpc-encoding", "identity")], b"\x01\0\0\0\0", Err((Code::Internal, compressed)));
        let text = "invalid base64 in the body: Invalid symbol 63, offset 0.";
        check(200, &[("content-type", "application/grpc-web-text")], b"????", Err((Code::Internal, text)));
        let mut body = vec![0x81, 0, 0, 0, 0];
        Encoding::Gzip.compress(b"grpc-status: 9\r\n", &mut body);
        body[4] = (body.len() - 5) as u8;
        check(200, &[WEB, ("grpc-encoding", "gzip")], &body, Err((Code::FailedPrecondition, "")));
    }

    #[test]
    fn random_bodies_do_not_panic() {
        let mut seeded = Seeded(12);
        for _ in 0..3_000 {
            let mut body = Vec::new();
            for _ in 0..seeded.below(3) {
                let flags = [0, 1, 0x80, 0x81, 0x82][seeded.below(5)];
                let payload = seeded.words(&["grpc-status", ":", "0", "\r\n", "x-bin", "?"], 0..6);
                envelope::put(flags, payload.as_bytes(), &mut body).unwrap();
            }
            body.truncate(seeded.below(body.len() + 1));
            let is_text = seeded.below(2) == 0;
            let content_type = ContentType { is_text, codec: "" }.value();
            let mut headers = HeaderMap::new();
            headers.insert(CONTENT_TYPE, content_type);
            let mut encoded = Vec::new();
            if is_text {
                text::encode(&body, &mut encoded);
            } else {
                encoded = body;
            }
            let _ = read(200, &headers, &encoded, 1 + seeded.below(9));
        }
    }
}
