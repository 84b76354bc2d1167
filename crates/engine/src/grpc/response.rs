//! Header blocks of a response: headers and trailers.

use http::HeaderMap;
use thalweg_http2::fields::{Field, FieldList, Indexing};

use super::{
    compression::{self, Encoding, EncodingSet},
    content_type,
    metadata::{self, Collector, MetadataError, MetadataTooLarge},
    status::StatusFields,
};
use crate::status::{Code, Status};

/// Returns the first fields of every server response with this content subtype, Trailers-Only included.
///
/// `accepts` is part of them: a client whose encoding is refused must be notified (PROTOCOL-HTTP2), and HPACK encodes
/// a constant field in one byte.
pub(crate) fn fixed_fields(accepts: EncodingSet, content_subtype: &str) -> FieldList {
    let mut fields = FieldList::new();
    fields.push(b":status", b"200", Indexing::Insert);
    fields.push(b"content-type", content_type::of(content_subtype).as_bytes(), Indexing::Insert);
    fields.push(b"grpc-accept-encoding", accepts.value().as_bytes(), Indexing::Insert);
    fields
}

/// Appends the variable fields: the encoding of the messages and the initial metadata.
///
/// `fields` may grow to `size_max` bytes as counted by [`FieldList::size`]. On error it has no metadata.
pub fn emit_headers(
    encoding: Encoding,
    metadata: &HeaderMap,
    size_max: usize,
    fields: &mut FieldList,
) -> Result<(), MetadataTooLarge> {
    compression::emit(encoding, fields);
    metadata::emit(metadata, size_max, fields)
}

/// Response headers, as received by a client.
#[derive(Clone, Debug)]
pub struct ResponseHeaders {
    /// The encoding of messages flagged as compressed.
    pub encoding: Encoding,
    /// The initial metadata; for raw headers, all fields.
    pub metadata: HeaderMap,
    /// `:status`.
    pub http_status: u16,
}

impl ResponseHeaders {
    /// Returns the status of a Trailers-Only response that failed.
    pub(crate) fn failure(&self) -> Option<Status> {
        let number = self.metadata.get("grpc-status")?.to_str().ok()?.parse().ok()?;
        let code = Code::from_number(number);
        (code != Code::Ok).then(|| Status::new(code, "").prepend_metadata(&self.metadata))
    }
}

/// Parses response headers that do not end the stream.
///
/// # Errors
///
/// The status to end the call with: the response is not gRPC, its metadata is malformed, or its encoding is not in
/// `accepts` (INTERNAL, since the server knows the accepted encodings).
pub fn receive_headers<'a>(
    http_status: Option<u16>,
    accepts: EncodingSet,
    fields: impl IntoIterator<Item = Field<'a>>,
) -> Result<ResponseHeaders, Status> {
    let received = ResponseFields::receive(fields);
    let is_grpc = received.content_type.is_some_and(|value| content_type::subtype(value).is_some());
    if !is_grpc || http_status != Some(200) {
        return Err(received.refusal(http_status));
    }
    let encoding = match received.encoding {
        Some(name) => {
            accepts.choose(name).map_err(|error| Status::local(Code::Internal, error.to_string()))?
        }
        None => Encoding::Identity,
    };
    Ok(ResponseHeaders { encoding, metadata: received.metadata?, http_status: 200 })
}

/// Receives raw response headers.
pub(crate) fn receive_raw_headers<'a>(
    http_status: Option<u16>,
    fields: impl IntoIterator<Item = Field<'a>>,
) -> Result<ResponseHeaders, Status> {
    let metadata = metadata::receive_raw(fields)?;
    Ok(ResponseHeaders {
        encoding: Encoding::Identity,
        metadata,
        http_status: http_status.unwrap_or_default(),
    })
}

/// Parses response headers that end the stream (Trailers-Only): the metadata of a success, or the status of a failure.
pub fn receive_trailers_only<'a>(
    http_status: Option<u16>,
    fields: impl IntoIterator<Item = Field<'a>>,
) -> Result<HeaderMap, Status> {
    let received = ResponseFields::receive(fields);
    received.status.outcome(http_status, received.metadata)
}

/// Parses trailers: the trailing metadata of a success, or the status of a failure.
///
/// `grpc-status: 0` alone allocates nothing.
pub fn receive_trailers<'a>(fields: impl IntoIterator<Item = Field<'a>>) -> Result<HeaderMap, Status> {
    receive_trailers_only(None, fields)
}

/// The fields of a response's header block, by purpose.
struct ResponseFields<'a> {
    status: StatusFields<'a>,
    content_type: Option<&'a [u8]>,
    encoding: Option<&'a [u8]>,
    metadata: Result<HeaderMap, MetadataError>,
}

impl<'a> ResponseFields<'a> {
    fn receive(fields: impl IntoIterator<Item = Field<'a>>) -> ResponseFields<'a> {
        let (mut status, mut content_type, mut encoding) = (StatusFields::default(), None, None);
        let mut collector = Ok(Collector::default());
        for field in fields {
            match field.name {
                b"content-type" => content_type = Some(field.value),
                b"grpc-encoding" => encoding = Some(field.value),
                _ if status.take(&field) => {}
                _ => collector = collector.and_then(|collector| collector.with(&field)),
            }
        }
        ResponseFields { status, content_type, encoding, metadata: collector.map(Collector::finish) }
    }

    /// Returns the status of a call with a non-gRPC response, unless the response has one itself.
    fn refusal(self, http_status: Option<u16>) -> Status {
        if self.status.is_present()
            && let Err(status) = self.status.outcome(http_status, self.metadata)
        {
            return status;
        }
        let content_type = String::from_utf8_lossy(self.content_type.unwrap_or(b"none"));
        let http_status = http_status.unwrap_or_default();
        Status::local(
            Code::from_http_status(http_status),
            format!(
                "not a gRPC response: HTTP status {http_status}, content type {content_type}{}",
                hint(http_status)
            ),
        )
    }
}

/// Returns a hint at the source of a non-gRPC response.
fn hint(http_status: u16) -> &'static str {
    match http_status {
        200 | 404 | 405 | 415 => " (check that this is the port of a gRPC server)",
        401 | 403 | 407 => " (a proxy may require credentials)",
        429 => " (a proxy limits the rate of calls)",
        502..=504 => " (a proxy has no server for the request)",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grpc::testing::fields;
    use crate::status::Code;

    fn error(status: &Status) -> (Code, &str) {
        (status.code(), status.message())
    }

    #[test]
    fn trailers() {
        let check = |http_status, list: &[(&str, &str)], expected: Result<usize, (Code, &str)>| {
            let fields = fields(list);
            let outcome = receive_trailers_only(http_status, fields.iter());
            assert_eq!(outcome.as_ref().map(HeaderMap::len).map_err(error), expected, "{list:?}");
        };
        check(None, &[("grpc-status", "0")], Ok(0));
        check(None, &[("grpc-status", "0"), ("grpc-message", "fine"), ("x-a", "b")], Ok(1));
        check(None, &[("grpc-status", "00")], Ok(0));
        check(
            None,
            &[("grpc-status", "5"), ("grpc-message", "no%20way"), ("x-a", "b")],
            Err((Code::NotFound, "no way")),
        );
        let unknown = "the server sent an unknown grpc-status: 99";
        check(None, &[("grpc-status", "99")], Err((Code::Unknown, unknown)));
        let unknown = "the server sent an unknown grpc-status: 99: no way";
        check(None, &[("grpc-status", "99"), ("grpc-message", "no%20way")], Err((Code::Unknown, unknown)));
        let unknown = "the server sent an unknown grpc-status: 4294967295";
        check(None, &[("grpc-status", "4294967295")], Err((Code::Unknown, unknown)));
        let malformed = "the server sent a malformed grpc-status: \"-1\"";
        check(None, &[("grpc-status", "-1")], Err((Code::Unknown, malformed)));
        let missing = "the server ended the call without grpc-status (a proxy may have dropped the trailers)";
        check(None, &[("x-a", "b")], Err((Code::Unknown, missing)));
        check(Some(200), &[], Err((Code::Unknown, missing)));
        let unavailable = "the server responded with HTTP status 503 and no grpc-status";
        check(Some(503), &[], Err((Code::Unavailable, unavailable)));
        // An existing status has precedence over the HTTP status.
        check(Some(503), &[("grpc-status", "7")], Err((Code::PermissionDenied, "")));
        let binary = "malformed binary metadata in \"x-bin\": Invalid symbol 63, offset 0.";
        check(None, &[("grpc-status", "0"), ("x-bin", "??")], Err((Code::Internal, binary)));
        let details =
            "malformed binary metadata in \"grpc-status-details-bin\": Invalid symbol 63, offset 0.";
        check(
            None,
            &[("grpc-status", "5"), ("grpc-status-details-bin", "??")],
            Err((Code::Internal, details)),
        );
    }

    #[test]
    fn response_headers() {
        const GRPC: (&str, &str) = ("content-type", "application/grpc+proto");
        let check =
            |http_status, list: &[(&str, &str)], expected: Result<(Encoding, usize), (Code, &str)>| {
                let fields = fields(list);
                let headers = receive_headers(http_status, EncodingSet::ALL, fields.iter());
                let headers =
                    headers.as_ref().map(|headers| (headers.encoding, headers.metadata.len())).map_err(error);
                assert_eq!(headers, expected, "{list:?}");
            };
        check(Some(200), &[GRPC], Ok((Encoding::Identity, 0)));
        check(Some(200), &[GRPC, ("grpc-encoding", "gzip"), ("x-a", "b")], Ok((Encoding::Gzip, 1)));
        let accepted = EncodingSet::ALL.value();
        let snappy = format!("grpc-encoding \"snappy\" is not supported; accepted are {accepted}");
        check(Some(200), &[GRPC, ("grpc-encoding", "snappy")], Err((Code::Internal, &snappy)));
        let html = "not a gRPC response: HTTP status 200, content type text/html (check that this is the port of a \
                    gRPC server)";
        check(Some(200), &[("content-type", "text/html")], Err((Code::Unknown, html)));
        let not_found = "not a gRPC response: HTTP status 404, content type none (check that this is the port of a \
                         gRPC server)";
        check(Some(404), &[], Err((Code::Unimplemented, not_found)));
        check(Some(403), &[GRPC, ("grpc-status", "16")], Err((Code::Unauthenticated, "")));
        let bad_gateway = "not a gRPC response: HTTP status 502, content type application/grpc+proto (a proxy has no \
                           server for the request)";
        check(Some(502), &[GRPC, ("grpc-status", "0")], Err((Code::Unavailable, bad_gateway)));
    }

    #[test]
    fn response_headers_round_trip() {
        let mut fields = fixed_fields(EncodingSet::ALL, "");
        let mut metadata = HeaderMap::new();
        metadata.insert("x-a", "b".parse().unwrap());
        emit_headers(Encoding::Gzip, &metadata, usize::MAX, &mut fields).unwrap();
        let headers = receive_headers(Some(200), EncodingSet::ALL, fields.iter()).unwrap();
        assert_eq!(headers.encoding, Encoding::Gzip);
        assert_eq!(headers.metadata, metadata);
    }
}
