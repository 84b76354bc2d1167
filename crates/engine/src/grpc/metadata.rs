//! Custom metadata: conversion between a [`HeaderMap`] and header fields.

use base64::Engine;
use http::{
    HeaderMap, HeaderName, HeaderValue,
    header::{InvalidHeaderName, InvalidHeaderValue},
};
use thalweg_core::metadata::BASE64;
use thalweg_http2::fields::{Field, FieldList, Indexing};

use crate::status::{Code, Status};

/// Maximum metadata sent by one call, in bytes as counted by RFC 9113 §10.5.1. Most servers accept this much.
pub const SENT_SIZE_MAX: usize = 16 * 1024;

/// Size counted for a field in addition to name and value, in bytes (RFC 9113 §6.5.2).
pub(super) const FIELD_OVERHEAD: usize = 32;

/// Maximum header list that is sent, in bytes: 1 GiB. It has precedence over higher limits of caller and peer, and
/// keeps the arithmetic within the 4 GiB of a [`FieldList`].
pub(super) const LIST_SIZE_MAX: usize = 1 << 30;

/// Appends the custom metadata of a request or response to `fields`.
///
/// Fields written by gRPC or HTTP/2 are left out, since an application's values would contradict the transport. Binary
/// values are sent without padding, text without surrounding spaces, and sensitive values as never indexed. Nothing is
/// allocated except space in `fields`.
///
/// `fields` may grow to `size_max` bytes as counted by [`FieldList::size`]. It is unchanged on error.
pub(crate) fn emit(
    metadata: &HeaderMap,
    size_max: usize,
    fields: &mut FieldList,
) -> Result<(), MetadataTooLarge> {
    if metadata.is_empty() {
        return Ok(());
    }
    push_all(|| outgoing(metadata, is_written_by_transport), size_max, fields)
}

/// Like [`emit`], for raw headers or trailers. Leaves out only the fields that HTTP/2 forbids (RFC 9113 §8.2.2), and
/// those selected by `is_left_out`.
pub(crate) fn emit_raw(
    headers: &HeaderMap,
    is_left_out: impl Fn(&str) -> bool,
    size_max: usize,
    fields: &mut FieldList,
) -> Result<(), MetadataTooLarge> {
    let is_left_out = |name: &str| is_hop_by_hop(name) || is_left_out(name);
    push_all(|| outgoing(headers, is_left_out), size_max, fields)
}

#[inline]
fn push_all<'a, I>(
    outgoing: impl Fn() -> I,
    size_max: usize,
    fields: &mut FieldList,
) -> Result<(), MetadataTooLarge>
where
    I: Iterator<Item = Field<'a>>,
{
    if fields.size() + outgoing().map(|field| field_size(&field)).sum::<usize>() > size_max.min(LIST_SIZE_MAX)
    {
        return Err(MetadataTooLarge { size_max });
    }
    outgoing().for_each(|field| fields.push(field.name, field.value, field.indexing));
    Ok(())
}

/// Returns the metadata of a received header block without other fields.
pub(crate) fn receive<'a>(fields: impl IntoIterator<Item = Field<'a>>) -> Result<HeaderMap, MetadataError> {
    let collected =
        fields.into_iter().try_fold(Collector::default(), |collector, field| collector.with(&field))?;
    Ok(collected.finish())
}

/// Returns the custom metadata of headers received over another protocol. Leaves out fields defined by gRPC,
/// hop-by-hop fields, and those selected by `is_left_out`. Binary values are converted to gRPC's form.
///
/// # Errors
///
/// INTERNAL if a binary value is not Base64.
pub fn receive_from_other_protocol(
    headers: &HeaderMap,
    is_left_out: impl Fn(&str) -> bool,
) -> Result<HeaderMap, Status> {
    let mut received = Collector::default();
    for (name, value) in headers {
        let name_text = name.as_str();
        if is_hop_by_hop(name_text) || is_read_by_transport(name_text.as_bytes()) || is_left_out(name_text) {
            continue;
        }
        if !name_text.ends_with("-bin") {
            received.append_value(name.clone(), Ok(value.clone()), value.is_sensitive())?;
            continue;
        }
        let indexing = if value.is_sensitive() { Indexing::Never } else { Indexing::Literal };
        received.append(&Field { name: name_text.as_bytes(), value: value.as_bytes(), indexing })?;
    }
    Ok(received.finish())
}

/// Returns the raw fields of received headers or trailers.
pub(crate) fn receive_raw<'a>(
    fields: impl IntoIterator<Item = Field<'a>>,
) -> Result<HeaderMap, MetadataError> {
    let mut received = Collector::default();
    for field in fields {
        let name = HeaderName::from_bytes(field.name)
            .map_err(|cause| MetadataError::Name { name: lossy(field.name), cause })?;
        let sensitive = field.indexing == Indexing::Never;
        received.append_value(name, HeaderValue::from_bytes(field.value), sensitive)?;
    }
    Ok(received.finish())
}

/// Collects the custom metadata of a received header block: all fields except those defined by gRPC.
///
/// `user-agent` is included, as in other implementations. A binary field with comma-separated values becomes several
/// entries. Fields marked as never indexed become sensitive values, so that a proxy keeps the mark (RFC 7541 §6.2.3).
/// Nothing is allocated without custom metadata.
#[derive(Default)]
pub(super) struct Collector(HeaderMap);

impl Collector {
    /// Adds the metadata in `field`, if any.
    pub(super) fn with(mut self, field: &Field<'_>) -> Result<Collector, MetadataError> {
        if !is_read_by_transport(field.name) {
            self.append(field)?;
        }
        Ok(self)
    }

    fn append(&mut self, field: &Field<'_>) -> Result<(), MetadataError> {
        let sensitive = field.indexing == Indexing::Never;
        let name = HeaderName::from_bytes(field.name)
            .map_err(|cause| MetadataError::Name { name: lossy(field.name), cause })?;
        if !field.name.ends_with(b"-bin") {
            return self.append_value(name, HeaderValue::from_bytes(field.value), sensitive);
        }
        for encoded in field.value.split(|byte| *byte == b',') {
            let encoded = encoded.trim_ascii();
            let decoded = decode_binary(field.name, encoded)?;
            // Canonical form, for stricter decoders of the application.
            let canonical = BASE64.encode(decoded);
            self.append_value(name.clone(), HeaderValue::try_from(canonical), sensitive)?;
        }
        Ok(())
    }

    /// Returns the readable part of the metadata in these fields.
    pub(super) fn readable<'a>(fields: impl IntoIterator<Item = Field<'a>>) -> Self {
        let mut readable = Self::default();
        for field in fields.into_iter().filter(|field| !is_read_by_transport(field.name)) {
            // Unreadable fields are left out.
            let _ = readable.append(&field);
        }
        readable
    }

    pub(super) fn finish(self) -> HeaderMap {
        self.0
    }

    fn append_value(
        &mut self,
        name: HeaderName,
        value: Result<HeaderValue, InvalidHeaderValue>,
        sensitive: bool,
    ) -> Result<(), MetadataError> {
        let mut value =
            value.map_err(|cause| MetadataError::Value { name: name.as_str().to_owned(), cause })?;
        value.set_sensitive(sensitive);
        match self.0.try_append(name, value) {
            Ok(_) => Ok(()),
            Err(_) => Err(MetadataError::TooMany),
        }
    }
}

/// Decodes one binary value, padded or not.
pub(crate) fn decode_binary(name: &[u8], encoded: &[u8]) -> Result<Vec<u8>, MetadataError> {
    BASE64.decode(encoded).map_err(|cause| MetadataError::Binary { name: lossy(name), cause })
}

/// The metadata is larger than the peer accepts, or than our own limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the metadata to send exceeds the header list size of {size_max} bytes")]
pub struct MetadataTooLarge {
    /// The limit, in bytes.
    pub size_max: usize,
}

impl From<MetadataTooLarge> for Status {
    fn from(error: MetadataTooLarge) -> Status {
        Status::local(Code::ResourceExhausted, error.to_string())
    }
}

/// Invalid received metadata.
#[derive(Debug, thiserror::Error)]
pub(crate) enum MetadataError {
    /// A binary value is not Base64.
    #[error("malformed binary metadata in {name:?}: {cause}")]
    Binary {
        /// The name of the field.
        name: String,
        /// The problem with the value.
        cause: base64::DecodeError,
    },
    /// A name is not a valid header name.
    #[error("malformed metadata name {name:?}: {cause}")]
    Name {
        /// The name of the field.
        name: String,
        /// The problem with the name.
        cause: InvalidHeaderName,
    },
    /// A value is not a valid header value.
    #[error("malformed metadata value of {name:?}: {cause}")]
    Value {
        /// The name of the field.
        name: String,
        /// The problem with the value.
        cause: InvalidHeaderValue,
    },
    /// There are more entries than a [`HeaderMap`] can hold (32,768).
    #[error("too many metadata entries")]
    TooMany,
}

impl From<MetadataError> for Status {
    fn from(error: MetadataError) -> Status {
        match error {
            MetadataError::TooMany => Status::local(Code::ResourceExhausted, error.to_string()),
            _ => Status::local(Code::Internal, error.to_string()),
        }
    }
}

/// Returns the fields for `metadata`, without those that are left out.
fn outgoing(metadata: &HeaderMap, is_left_out: impl Fn(&str) -> bool) -> impl Iterator<Item = Field<'_>> {
    metadata.iter().filter_map(move |(name, value)| {
        let (encoded, indexing) = if name.as_str().ends_with("-bin") {
            // Mostly trace contexts and the like, different in every call: not worth an entry in the dynamic table.
            let encoded = value.as_bytes();
            let len = encoded.iter().rposition(|byte| *byte != b'=').map_or(0, |last| last + 1);
            (&encoded[..len], Indexing::Literal)
        } else {
            (value.as_bytes(), if is_unique_per_request(name) { Indexing::Literal } else { Indexing::Insert })
        };
        (!is_left_out(name.as_str())).then(|| Field {
            name: name.as_str().as_bytes(),
            // RFC 9113 §8.2.1: a value that starts or ends with white space makes the whole message malformed.
            value: encoded.trim_ascii(),
            indexing: if value.is_sensitive() || is_sensitive_name(name) {
                Indexing::Never
            } else {
                indexing
            },
        })
    })
}

/// Returns whether a field's name marks it as secret. It is kept out of tables, where guesses could be checked against
/// it (RFC 7541 §7.1.3).
fn is_sensitive_name(name: &HeaderName) -> bool {
    use http::header::{AUTHORIZATION, COOKIE, PROXY_AUTHORIZATION, SET_COOKIE};
    [AUTHORIZATION, PROXY_AUTHORIZATION, COOKIE, SET_COOKIE].contains(name)
}

/// Returns whether a field's value differs each time, so that it would displace reusable entries of the dynamic table.
fn is_unique_per_request(name: &HeaderName) -> bool {
    matches!(name.as_str(), "grpc-timeout" | "grpc-message" | "content-length" | "date")
}

/// Returns the size of one field as counted by RFC 9113 §6.5.2, in bytes: `te: trailers` counts 2 + 8 + 32.
fn field_size(field: &Field<'_>) -> usize {
    field.name.len() + field.value.len() + FIELD_OVERHEAD
}

/// Returns whether a field is written by the transport, so that the application's value is not sent.
pub fn is_written_by_transport(name: &str) -> bool {
    matches!(
        name,
        "te" | "content-type"
            | "user-agent"
            | "grpc-timeout"
            | "grpc-encoding"
            | "grpc-accept-encoding"
            | "grpc-status"
            | "grpc-message"
            | "grpc-message-type"
            | "grpc-status-details-bin"
            // RFC 9113 §8.3.1: `:authority` replaces it, and must not differ.
            | "host"
            // RFC 9113 §8.1.1: a wrong value makes the message malformed, and only the transport knows the length.
            | "content-length"
    ) || is_connection_specific(name)
}

/// Returns whether HTTP/2 forbids the field (RFC 9113 §8.2.2).
fn is_connection_specific(name: &str) -> bool {
    matches!(name, "connection" | "keep-alive" | "proxy-connection" | "transfer-encoding" | "upgrade")
}

/// Returns whether the field is hop-by-hop, or replaced in HTTP/2.
fn is_hop_by_hop(name: &str) -> bool {
    name == "host" || is_connection_specific(name)
}

/// Returns whether a field is read by the transport, and is not metadata for the receiving application.
fn is_read_by_transport(name: &[u8]) -> bool {
    matches!(
        name,
        [b':', ..]
            | b"te"
            | b"content-type"
            | b"grpc-timeout"
            | b"grpc-encoding"
            | b"grpc-accept-encoding"
            | b"grpc-status"
            | b"grpc-message"
            | b"grpc-message-type"
            | b"grpc-status-details-bin"
    )
}

fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grpc::testing::{Seeded, fields};

    fn receive<'a>(fields: impl IntoIterator<Item = Field<'a>>) -> Result<HeaderMap, MetadataError> {
        let collected =
            fields.into_iter().try_fold(Collector::default(), |collector, field| collector.with(&field));
        collected.map(Collector::finish)
    }

    fn metadata(list: &[(&'static str, &str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in list {
            headers.append(*name, value.parse().unwrap());
        }
        headers
    }

    #[test]
    fn sent_metadata() {
        let check = |metadata: &HeaderMap, expected: &[(&str, &str, Indexing)]| {
            let mut fields = FieldList::new();
            emit(metadata, usize::MAX, &mut fields).unwrap();
            let emitted: Vec<_> =
                fields.iter().map(|field| (lossy(field.name), lossy(field.value), field.indexing)).collect();
            let expected: Vec<_> = expected
                .iter()
                .map(|(name, value, indexing)| (name.to_string(), value.to_string(), *indexing))
                .collect();
            assert_eq!(emitted, expected);
        };
        check(&HeaderMap::new(), &[]);
        check(
            &metadata(&[("x-a", "1"), ("x-b", "b"), ("x-a", "2")]),
            &[("x-a", "1", Indexing::Insert), ("x-a", "2", Indexing::Insert), ("x-b", "b", Indexing::Insert)],
        );
        check(
            &metadata(&[("x-bin", "YQ=="), ("y-bin", "YWI"), ("z-bin", "")]),
            &[
                ("x-bin", "YQ", Indexing::Literal),
                ("y-bin", "YWI", Indexing::Literal),
                ("z-bin", "", Indexing::Literal),
            ],
        );
        check(
            &metadata(&[("x-spaces", " a b\t"), ("x-empty", "  ")]),
            &[("x-spaces", "a b", Indexing::Insert), ("x-empty", "", Indexing::Insert)],
        );
        check(
            &metadata(&[
                ("te", "x"),
                ("content-type", "x"),
                ("user-agent", "x"),
                ("grpc-timeout", "1S"),
                ("grpc-encoding", "x"),
                ("grpc-accept-encoding", "x"),
                ("grpc-status", "1"),
                ("grpc-message", "x"),
                ("host", "x"),
                ("grpc-message-type", "x"),
                ("grpc-status-details-bin", "YQ"),
                ("content-length", "1"),
                ("connection", "x"),
                ("keep-alive", "x"),
                ("transfer-encoding", "x"),
                ("upgrade", "x"),
                ("grpc-trace-bin", "YQ"),
                ("authorization", "x"),
            ]),
            &[("grpc-trace-bin", "YQ", Indexing::Literal), ("authorization", "x", Indexing::Never)],
        );
        let mut secret = metadata(&[("authorization", "secret")]);
        secret.get_mut("authorization").unwrap().set_sensitive(true);
        check(&secret, &[("authorization", "secret", Indexing::Never)]);
    }

    #[test]
    fn metadata_of_another_protocol() {
        let check = |headers: &[(&'static str, &str)], expected: Result<&[(&str, &str)], &str>| {
            let received = receive_from_other_protocol(&metadata(headers), |name| name == "x-own");
            let fields = received.as_ref().map(|received| {
                let fields = received.iter().map(|(name, value)| (name.as_str(), value.to_str().unwrap()));
                fields.collect::<Vec<_>>()
            });
            assert_eq!(fields.as_deref().map_err(|status| status.message()), expected);
        };
        check(&[], Ok(&[]));
        check(
            &[("x-a", "1"), ("x-own", "2"), ("host", "a"), ("upgrade", "b"), ("grpc-status", "0")],
            Ok(&[("x-a", "1")]),
        );
        check(&[("x-bin", "YQ==, YWI")], Ok(&[("x-bin", "YQ"), ("x-bin", "YWI")]));
        check(&[("x-bin", "?")], Err("malformed binary metadata in \"x-bin\": Invalid symbol 63, offset 0."));
    }

    #[test]
    fn sent_metadata_is_bounded() {
        // 3 + 4 + 32 bytes, in addition to the existing 4 + 1 + 32.
        let check = |size_max: usize, expected| {
            let mut fields = fields(&[(":pth", "/")]);
            assert_eq!(emit(&metadata(&[("x-a", "four")]), size_max, &mut fields), expected);
            assert_eq!(fields.len(), if expected.is_ok() { 2 } else { 1 });
        };
        check(76, Ok(()));
        check(75, Err(MetadataTooLarge { size_max: 75 }));
        check(0, Err(MetadataTooLarge { size_max: 0 }));
    }

    #[test]
    fn received_metadata() {
        let check = |received: &[(&str, &str)], expected: &[(&'static str, &str)]| {
            let metadata_received = receive(fields(received).iter()).unwrap();
            assert_eq!(metadata_received, metadata(expected));
        };
        check(&[], &[]);
        check(
            &[("x-a", "1, 2"), ("user-agent", "me"), ("x-a", "3")],
            &[("x-a", "1, 2"), ("user-agent", "me"), ("x-a", "3")],
        );
        check(&[("x-bin", "YQ==")], &[("x-bin", "YQ")]);
        check(
            &[("x-bin", "YQ"), ("x-bin", "YWI=, YWJj,")],
            &[("x-bin", "YQ"), ("x-bin", "YWI"), ("x-bin", "YWJj"), ("x-bin", "")],
        );
        // The last character has unused bits.
        check(&[("x-bin", "YX")], &[("x-bin", "YQ")]);
        check(
            &[
                (":path", "/"),
                ("te", "trailers"),
                ("content-type", "application/grpc"),
                ("grpc-timeout", "1S"),
                ("grpc-encoding", "gzip"),
                ("grpc-accept-encoding", "gzip"),
                ("grpc-status", "0"),
                ("grpc-message", ""),
                ("grpc-message-type", "x"),
                ("grpc-status-details-bin", "?"),
                ("grpc-trace-bin", "YQ"),
            ],
            &[("grpc-trace-bin", "YQ")],
        );
    }

    #[test]
    fn never_indexed_fields_are_sensitive() {
        let mut fields = FieldList::new();
        fields.push(b"x-token", b"secret", Indexing::Never);
        fields.push(b"x-token-bin", b"YQ", Indexing::Never);
        let received = receive(fields.iter()).unwrap();
        assert!(received.get("x-token").unwrap().is_sensitive());
        assert!(received.get("x-token-bin").unwrap().is_sensitive());
    }

    #[test]
    fn malformed_metadata_is_an_error() {
        let check = |name: &str, value: &str, expected: &str| {
            let status = Status::from(receive(fields(&[(name, value)]).iter()).unwrap_err());
            assert_eq!(status.code(), Code::Internal);
            assert!(status.message().starts_with(expected), "{status:?}");
        };
        check("x-bin", "Y", "malformed binary metadata in \"x-bin\": ");
        check("x-bin", "YQ,?", "malformed binary metadata in \"x-bin\": ");
        check("x-bin", "YQ===", "malformed binary metadata in \"x-bin\": ");
        check("x-bin", "-_", "malformed binary metadata in \"x-bin\": ");
        check("x y", "z", "malformed metadata name \"x y\": ");
        check(&"x".repeat(70_000), "z", "malformed metadata name \"xxx");
        check("x", "a\nb", "malformed metadata value of \"x\": ");
        let mut crowd = FieldList::new();
        (0..40_000)
            .for_each(|number: u32| crowd.push(format!("x{number}").as_bytes(), b"", Indexing::Literal));
        let status = Status::from(receive(crowd.iter()).unwrap_err());
        assert_eq!(status.code(), Code::ResourceExhausted);
    }

    #[test]
    fn random_metadata_round_trips() {
        for seed in 0..500 {
            let mut seeded = Seeded(seed);
            let mut sent = HeaderMap::new();
            for _ in 0..seeded.below(10) {
                let key = seeded.below(4);
                let bytes = seeded.bytes(0..30);
                if seeded.below(2) == 0 {
                    let key = ["a-bin", "b-bin", "grpc-tags-bin", "-bin"][key];
                    sent.append(key, BASE64.encode(&bytes).parse().unwrap());
                } else {
                    let text: String = bytes.iter().map(|byte| char::from(b'!' + byte % 94)).collect();
                    sent.append(["a", "b", "authorization", "user-id"][key], text.parse().unwrap());
                }
            }
            let mut fields = FieldList::new();
            emit(&sent, usize::MAX, &mut fields).unwrap();
            let received = receive(fields.iter()).unwrap();
            assert_eq!(received, sent, "seed {seed}");
        }
    }
}
