//! Conversion between metadata, HTTP headers and gRPC fields.

use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderName, HeaderValue};
use thalweg_engine::http2::fields::{Field, FieldList, Indexing};
use thalweg_engine::{Code, Status, wire};

/// Overhead of a field in bytes (RFC 9113 §6.5.2).
const FIELD_OVERHEAD: usize = 32;

/// Appends `metadata` to `headers` with `prefix` before each name, except fields owned by the protocols. Padding of
/// binary values and spaces around text values are removed.
/// # Errors
/// RESOURCE_EXHAUSTED if `headers` would exceed gRPC's limit for metadata.
pub(crate) fn append(metadata: &HeaderMap, prefix: &str, headers: &mut HeaderMap) -> Result<(), Status> {
    let mut free = wire::METADATA_SIZE_MAX;
    let too_large = || {
        let why = format!("the metadata to send exceeds {} bytes", wire::METADATA_SIZE_MAX);
        Status::new(Code::ResourceExhausted, why)
    };
    for (name, value) in metadata.iter().filter(|(name, _)| !is_written_by_protocol(name.as_str())) {
        let size = prefix.len() + name.as_str().len() + value.len() + FIELD_OVERHEAD;
        free = free.checked_sub(size).ok_or_else(too_large)?;
        let sent_name = match prefix {
            "" => name.clone(),
            _ => HeaderName::try_from(format!("{prefix}{name}")).map_err(|_| too_large())?,
        };
        headers.try_append(sent_name, sent_value(name, value)).map_err(|_| too_large())?;
    }
    Ok(())
}

/// Returns the form in which a metadata value is sent.
pub(crate) fn sent_value(name: &HeaderName, value: &HeaderValue) -> HeaderValue {
    let bytes = value.as_bytes();
    let mut sent = bytes.trim_ascii();
    if name.as_str().ends_with("-bin") {
        sent = &sent[..sent.iter().rposition(|byte| *byte != b'=').map_or(0, |last| last + 1)];
    }
    if sent.len() == bytes.len() {
        return value.clone();
    }
    // A part of a valid value is valid.
    let mut cut = HeaderValue::from_bytes(sent).unwrap_or_else(|_| HeaderValue::from_static(""));
    cut.set_sensitive(value.is_sensitive());
    cut
}

/// Returns whether a field belongs to gRPC, HTTP or Connect and is not metadata.
pub(crate) fn is_written_by_protocol(name: &str) -> bool {
    wire::is_written_by_transport(name) || is_read_by_protocol(name)
}

/// Returns whether receivers ignore a field, in addition to those that gRPC ignores.
fn is_read_by_protocol(name: &str) -> bool {
    matches!(name, "content-length" | "content-encoding" | "accept-encoding" | "x-grpc-web")
        || name.starts_with("connect-")
}

/// Returns the metadata in `headers`.
pub(crate) fn received(headers: &HeaderMap) -> Result<HeaderMap, Status> {
    wire::receive_from_other_protocol(headers, is_read_by_protocol)
}

/// Returns the gRPC fields in `headers`, with the other protocol's content type replaced by gRPC's.
pub(crate) fn grpc_fields(headers: &HeaderMap) -> impl Iterator<Item = Field<'_>> {
    let is_left_out = |name: &HeaderName| {
        *name == CONTENT_TYPE || is_read_by_protocol(name.as_str()) || is_hop_by_hop(name.as_str())
    };
    let fields = headers.iter().filter(move |(name, _)| !is_left_out(name)).map(|(name, value)| Field {
        name: name.as_str().as_bytes(),
        value: value.as_bytes(),
        indexing: if value.is_sensitive() { Indexing::Never } else { Indexing::Literal },
    });
    let content_type =
        Field { name: b"content-type", value: b"application/grpc", indexing: Indexing::Literal };
    std::iter::once(content_type).chain(fields)
}

/// Hop-by-hop fields (RFC 9110 §7.6.1), and `host`, which HTTP/2 replaces.
fn is_hop_by_hop(name: &str) -> bool {
    matches!(
        name,
        "connection" | "keep-alive" | "proxy-connection" | "transfer-encoding" | "upgrade" | "host"
    )
}

pub(crate) fn append_fields(fields: &FieldList, headers: &mut HeaderMap) {
    for field in fields.iter() {
        let (name, value) = (HeaderName::from_bytes(field.name), HeaderValue::from_bytes(field.value));
        // The engine writes valid names and values only.
        if let (Ok(name), Ok(mut value)) = (name, value) {
            value.set_sensitive(field.indexing == Indexing::Never);
            let _ = headers.try_append(name, value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{failure, header_lines, headers};

    #[test]
    fn metadata_is_filtered_in_both_directions() {
        let check = |metadata: &[(&str, &str)], prefix: &str, sent: &str, read: &str| {
            let mut out = HeaderMap::new();
            append(&headers(metadata), prefix, &mut out).unwrap();
            assert_eq!(header_lines(&out), sent);
            assert_eq!(header_lines(&received(&out).unwrap()), read);
        };
        check(&[], "", "", "");
        check(&[("x-a", "1"), ("x-a", "2")], "", "x-a: 1\nx-a: 2", "x-a: 1\nx-a: 2");
        check(&[("x-bin", "YQ=="), ("y-bin", "")], "", "x-bin: YQ\ny-bin: ", "x-bin: YQ\ny-bin: ");
        check(&[("x-bin", "YQ==")], "trailer-", "trailer-x-bin: YQ", "trailer-x-bin: YQ");
        let protocol_headers = [
            ("content-type", "x"),
            ("content-length", "1"),
            ("content-encoding", "gzip"),
            ("accept-encoding", "gzip"),
            ("connect-timeout-ms", "1"),
            ("grpc-status", "1"),
            ("grpc-timeout", "1S"),
            ("transfer-encoding", "chunked"),
            ("te", "trailers"),
            ("x-grpc-web", "1"),
            ("host", "a"),
        ];
        check(&protocol_headers, "", "", "");
        assert_eq!(header_lines(&received(&headers(&protocol_headers)).unwrap()), "");
        let padded = headers(&[("x-bin", "YQ==,YWI="), ("user-agent", "a")]);
        assert_eq!(header_lines(&received(&padded).unwrap()), "user-agent: a\nx-bin: YQ\nx-bin: YWI");
        assert_eq!(failure(received(&headers(&[("x-bin", "?")]))).0, Code::Internal);
    }

    #[test]
    fn oversized_metadata_is_rejected() {
        let value = "v".repeat(wire::METADATA_SIZE_MAX - 3 - FIELD_OVERHEAD);
        let mut out = HeaderMap::new();
        append(&headers(&[("x-a", &value)]), "", &mut out).unwrap();
        let outcome = append(&headers(&[("x-ab", &value)]), "", &mut out);
        let expected = "the metadata to send exceeds 16384 bytes".to_owned();
        assert_eq!(failure(outcome), (Code::ResourceExhausted, expected));
    }

    #[test]
    fn sensitive_values_stay_sensitive() {
        let mut metadata = headers(&[("x-a", " a")]);
        metadata.get_mut("x-a").unwrap().set_sensitive(true);
        let mut out = HeaderMap::new();
        append(&metadata, "", &mut out).unwrap();
        assert!(out["x-a"].is_sensitive());
        assert!(received(&out).unwrap()["x-a"].is_sensitive());
    }
}
