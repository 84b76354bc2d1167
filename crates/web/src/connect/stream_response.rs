//! Streaming responses, read by clients.

use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderValue, StatusCode};
use thalweg_engine::{EncodingSet, Status};

use super::error;
use super::names::{END_STREAM, STREAM_ENCODING, STREAM_SUBTYPE};
use super::response::{as_internal, not_connect, unexpected};
use crate::compression;
use crate::content_type::{self, strip_prefix};
use crate::envelope::{EnvelopeReader, ResponseReader};
use crate::fields;

/// Reads the response headers of a call with this codec. Returns the leading metadata and the reader of the body.
/// Messages have at most `size_max` bytes.
///
/// # Errors
/// A status that describes a response that is not Connect.
pub fn read_response(
    http_status: StatusCode,
    headers: &HeaderMap,
    codec: &str,
    accepts: EncodingSet,
    size_max: usize,
) -> Result<(HeaderMap, ResponseReader), Status> {
    let content_type = headers.get(CONTENT_TYPE).map(HeaderValue::as_bytes).unwrap_or_default();
    if http_status != StatusCode::OK {
        return Err(not_connect(http_status, content_type));
    }
    let subtype = content_type::application(content_type);
    let response_codec = subtype.and_then(|subtype| strip_prefix(subtype, STREAM_SUBTYPE));
    if !response_codec.is_some_and(|response_codec| response_codec.eq_ignore_ascii_case(codec)) {
        let expected = format!("application/{STREAM_SUBTYPE}{codec}");
        return Err(unexpected(content_type, response_codec.is_some(), &expected));
    }
    let named = headers.get(STREAM_ENCODING).map(HeaderValue::as_bytes);
    let encoding =
        compression::parse_encoding(STREAM_ENCODING.as_str(), named, accepts).map_err(as_internal)?;
    let reader = EnvelopeReader::new(END_STREAM, encoding, size_max);
    let truncated = "stream truncated: no EndStreamResponse";
    Ok((fields::received(headers)?, ResponseReader::new(reader, error::read_end, None, truncated)))
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use thalweg_engine::{Code, Encoding};

    use super::*;
    use crate::compression::Compression;
    use crate::connect::ResponseFormat;
    use crate::envelope::{self, ResponsePart};
    use crate::testing::{Seeded, failure, header_lines, headers};

    fn start(status: u16, list: &[(&str, &str)]) -> Result<(HeaderMap, ResponseReader), Status> {
        let status = StatusCode::from_u16(status).unwrap();
        read_response(status, &headers(list), "proto", EncodingSet::ALL, 1000)
    }

    /// Returns a description of a body's parts.
    fn read(reader: &mut ResponseReader, body: &[u8], piece_len: usize) -> Result<Vec<String>, Status> {
        let mut parts = Vec::new();
        for piece in body.chunks(piece_len) {
            reader.push(Bytes::copy_from_slice(piece));
            while let Some(received) = reader.take()? {
                parts.push(match received {
                    ResponsePart::Message(message) => String::from_utf8_lossy(&message).into_owned(),
                    ResponsePart::End(trailers) => format!("end {}", header_lines(&trailers)),
                });
            }
        }
        reader.finish().map(|_| parts)
    }

    #[test]
    fn response_headers_are_read_or_rejected() {
        const PROTO: (&str, &str) = ("content-type", "application/connect+proto");
        let check = |status, list: &[(&str, &str)], expected: Result<&str, (Code, &str)>| {
            let outcome = start(status, list).map(|(metadata, _)| header_lines(&metadata));
            let outcome = outcome.as_deref().map_err(|status| (status.code(), status.message()));
            assert_eq!(outcome, expected, "{status} {list:?}");
        };
        check(200, &[PROTO, ("x-a", "1"), ("connect-content-encoding", "gzip")], Ok("x-a: 1"));
        let jpeg = "not a Connect response: HTTP status 200, content type image/jpeg";
        check(200, &[("content-type", "image/jpeg")], Err((Code::Unknown, jpeg)));
        let unary = "not a Connect response: HTTP status 200, content type application/proto";
        check(200, &[("content-type", "application/proto")], Err((Code::Unknown, unary)));
        let json =
            "expected the content type application/connect+proto, the server sent application/connect+json";
        check(200, &[("content-type", "application/connect+json")], Err((Code::Internal, json)));
        let status = "not a Connect response: HTTP status 503, content type application/connect+proto";
        check(503, &[PROTO], Err((Code::Unavailable, status)));
        let encoding = format!(
            "connect-content-encoding \"foo\" is not supported; accepted are {}",
            EncodingSet::ALL.value()
        );
        check(200, &[PROTO, ("connect-content-encoding", "foo")], Err((Code::Internal, &encoding)));
    }

    #[test]
    fn response_round_trips_at_any_piece_length() {
        let compression = Compression { encoding: Encoding::Gzip, threshold: 20 };
        let response_format =
            ResponseFormat { is_stream: true, compression, ..ResponseFormat::unary("proto") };
        let head = response_format.head(&headers(&[("x-a", "1")])).unwrap();
        let mut body = Vec::new();
        response_format.message(b"abc", &mut body).unwrap();
        response_format.message(&[b'x'; 50], &mut body).unwrap();
        let messages = body.len();
        response_format.end(Ok(&headers(&[("x-b", "2")])), &mut body);
        let start = || {
            let status = head.status();
            read_response(status, head.headers(), "proto", EncodingSet::ALL, 1000).unwrap()
        };
        assert_eq!(header_lines(&start().0), "x-a: 1");
        for piece_len in 1..=body.len() {
            let parts = read(&mut start().1, &body, piece_len).unwrap();
            assert_eq!(parts, ["abc".to_owned(), "x".repeat(50), "end x-b: 2".to_owned()]);
        }
        for cut in 0..body.len() {
            let (code, why) = failure(read(&mut start().1, &body[..cut], 7));
            assert_eq!(code, Code::Internal);
            let is_between = [0, 8, messages].contains(&cut);
            assert_eq!(why.starts_with("stream truncated"), is_between, "{cut}: {why}");
        }
        body.truncate(messages);
        response_format.end(Err(&Status::new(Code::Aborted, "later")), &mut body);
        assert_eq!(failure(read(&mut start().1, &body, 3)), (Code::Aborted, "later".to_owned()));
    }

    #[test]
    fn end_of_stream_may_be_compressed() {
        let head = [("content-type", "application/connect+proto"), ("connect-content-encoding", "gzip")];
        let mut end = Vec::new();
        Encoding::Gzip.compress(br#"{"error":{"code":"out_of_range"}}"#, &mut end);
        let mut body = Vec::new();
        envelope::put(END_STREAM | envelope::COMPRESSED, &end, &mut body).unwrap();
        let (_, mut reader) = start(200, &head).unwrap();
        assert_eq!(failure(read(&mut reader, &body, 5)).0, Code::OutOfRange);
    }

    #[test]
    fn random_bodies_do_not_panic() {
        let mut seeded = Seeded(8);
        for _ in 0..3_000 {
            let mut body = Vec::new();
            for _ in 0..seeded.below(3) {
                let flags = seeded.below(5) as u8;
                let payload = seeded.words(&["{", "}", "\"error\":", "null", "\"metadata\":", "{}"], 0..5);
                envelope::put(flags, payload.as_bytes(), &mut body).unwrap();
            }
            body.truncate(seeded.below(body.len() + 1));
            let (_, mut reader) = start(200, &[("content-type", "application/connect+proto")]).unwrap();
            let _ = read(&mut reader, &body, 1 + seeded.below(9));
        }
    }
}
