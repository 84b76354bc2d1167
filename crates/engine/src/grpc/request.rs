//! Request headers.

use std::sync::Arc;
use std::time::Duration;

use http::{HeaderMap, HeaderName, HeaderValue};
use thalweg_core::timeout::{self, TimeoutValue};
use thalweg_http2::fields::{Field, FieldList, Indexing};

use super::{
    compression::{self, Encoding, EncodingSet},
    content_type,
    metadata::{self, Collector, MetadataTooLarge},
};
use crate::connection_info::ConnectionInfo;
use crate::status::{Code, Status};

/// Values common to all requests for one method on one channel.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Method<'a> {
    /// `http` or `https`.
    pub scheme: &'a str,
    /// `host:port`, without user info.
    pub authority: &'a str,
    /// `/package.Service/Method`.
    pub path: &'a str,
    /// Format of the messages; empty if it is not sent.
    pub content_subtype: &'a str,
    /// See [`user_agent`](super::user_agent).
    pub user_agent: &'a str,
    /// Encodings accepted for responses.
    pub accepts: EncodingSet,
    /// Timeout, if it is the same for all calls.
    pub timeout: Option<Duration>,
}

impl Method<'_> {
    /// Returns the first fields of every request.
    pub(crate) fn fixed_fields(&self) -> FieldList {
        let mut fields = FieldList::new();
        let mut push =
            |name: &str, value: &str| fields.push(name.as_bytes(), value.as_bytes(), Indexing::Insert);
        push(":method", "POST");
        push(":scheme", self.scheme);
        push(":path", self.path);
        push(":authority", self.authority);
        push("te", "trailers");
        push("content-type", &content_type::of(self.content_subtype));
        push("user-agent", self.user_agent);
        push("grpc-accept-encoding", self.accepts.value());
        if let Some(timeout) = self.timeout {
            push_timeout(timeout, Indexing::Insert, &mut fields);
        }
        fields
    }
}

fn push_timeout(timeout: Duration, indexing: Indexing, fields: &mut FieldList) {
    fields.push(timeout::NAME.as_str().as_bytes(), TimeoutValue::new(timeout).as_bytes(), indexing);
}

/// Appends the variable fields: the time left, the encoding of the messages, and the metadata.
///
/// `fields` may grow to `size_max` bytes as counted by [`FieldList::size`]. On error it has no metadata.
#[inline]
pub fn emit(
    timeout: Option<Duration>,
    encoding: Encoding,
    metadata: &HeaderMap,
    size_max: usize,
    fields: &mut FieldList,
) -> Result<(), MetadataTooLarge> {
    if timeout.is_none() && !encoding.compresses() && metadata.is_empty() {
        return Ok(());
    }
    emit_some(timeout, encoding, metadata, size_max, fields)
}

fn emit_some(
    timeout: Option<Duration>,
    encoding: Encoding,
    metadata: &HeaderMap,
    size_max: usize,
    fields: &mut FieldList,
) -> Result<(), MetadataTooLarge> {
    if let Some(timeout) = timeout {
        // The value differs in every call, so it would displace reusable entries of the dynamic table.
        push_timeout(timeout, Indexing::Literal, fields);
    }
    compression::emit(encoding, fields);
    metadata::emit(metadata, size_max, fields)
}

/// Request headers, as received by a server.
#[derive(Clone, Debug)]
pub struct RequestHead {
    /// Time that the caller waits, from the arrival of the headers.
    pub timeout: Option<Duration>,
    /// The encoding of messages flagged as compressed.
    pub encoding: Encoding,
    /// Encodings accepted for the response.
    pub accepts: EncodingSet,
    /// The metadata, including `user-agent`.
    pub metadata: HeaderMap,
    /// Information about the connection, if the server is set up to provide it.
    pub connection: Option<Arc<ConnectionInfo>>,
}

impl RequestHead {
    /// Creates the headers of a call without a connection of this library. Its messages are not compressed in either
    /// direction.
    pub fn new(
        metadata: HeaderMap,
        timeout: Option<Duration>,
        connection: Option<Arc<ConnectionInfo>>,
    ) -> Self {
        Self { timeout, encoding: Encoding::Identity, accepts: EncodingSet::IDENTITY, metadata, connection }
    }

    /// Returns the approximate memory of the metadata, in bytes. A peer that uses indexed fields sends a hundredth of
    /// that.
    pub(crate) fn metadata_len(&self) -> usize {
        let field =
            |(name, value): (&HeaderName, &HeaderValue)| name.as_str().len() + value.len() + ENTRY_LEN;
        self.metadata.iter().map(field).sum()
    }
}

/// Memory of a [`HeaderMap`] entry in addition to name and value, in bytes.
const ENTRY_LEN: usize = 100;

/// Parses request headers. `accepts` are the encodings that the server accepts.
pub fn receive<'a>(
    method: Option<&[u8]>,
    accepts: EncodingSet,
    fields: impl IntoIterator<Item = Field<'a>>,
) -> Result<RequestHead, Refusal> {
    if method != Some(b"POST") {
        return Err(Refusal::MethodNotAllowed);
    }
    let mut is_grpc = false;
    let mut timeout = Ok(None);
    let mut encoding = Ok(Encoding::Identity);
    let mut peer_accepts = EncodingSet::IDENTITY;
    let mut collector = Ok(Collector::default());
    for field in fields {
        match field.name {
            b"content-type" => is_grpc = content_type::subtype(field.value).is_some(),
            b"grpc-timeout" => timeout = timeout::parse(field.value).map(Some),
            b"grpc-encoding" => encoding = accepts.choose(field.value),
            b"grpc-accept-encoding" => peer_accepts = EncodingSet::parse(field.value),
            _ => collector = collector.and_then(|collector| collector.with(&field)),
        }
    }
    if !is_grpc {
        return Err(Refusal::UnsupportedMediaType);
    }
    Ok(RequestHead {
        timeout: timeout.map_err(Status::from)?,
        encoding: encoding.map_err(Status::from)?,
        accepts: peer_accepts,
        metadata: collector.map_err(Status::from)?.finish(),
        connection: None,
    })
}

/// Returns the timeout, if it is the only one of `fields`.
pub(crate) fn only_timeout<'a>(mut fields: impl Iterator<Item = Field<'a>>) -> Option<Duration> {
    let field = fields.next().filter(|field| field.name == b"grpc-timeout")?;
    if fields.next().is_some() { None } else { timeout::parse(field.value).ok() }
}

/// Returns the content subtype of a request to a method with messages of `subtype`: that or none.
///
/// # Errors
///
/// UNIMPLEMENTED for another subtype. Requests that are not gRPC are [refused](receive) separately.
pub(crate) fn content_subtype<'a>(
    fields: impl IntoIterator<Item = Field<'a>>,
    subtype: &'static str,
) -> Result<&'static str, Status> {
    let Some(field) = fields.into_iter().find(|field| field.name == b"content-type") else { return Ok("") };
    match content_type::subtype(field.value) {
        None | Some(b"") => Ok(""),
        Some(requested) if requested.eq_ignore_ascii_case(subtype.as_bytes()) => Ok(subtype),
        Some(_) => {
            let (requested, plain) = (String::from_utf8_lossy(field.value), content_type::of(""));
            let typed = content_type::of(subtype);
            let why =
                format!("content-type {requested:?} is not supported; accepted are {plain} and {typed}");
            Err(Status::local(Code::Unimplemented, why))
        }
    }
}

/// Returns the readable metadata of a [refused](receive) request.
pub(crate) fn readable_metadata<'a>(fields: impl IntoIterator<Item = Field<'a>>) -> HeaderMap {
    Collector::readable(fields).finish()
}

/// Reason why a request is not accepted as a call.
#[derive(Clone, Debug, thiserror::Error)]
pub enum Refusal {
    /// Not gRPC: HTTP status 405, with `allow: POST`.
    #[error("gRPC requests are POST requests")]
    MethodNotAllowed,
    /// Not gRPC: HTTP status 415.
    #[error("the content type of gRPC requests is application/grpc")]
    UnsupportedMediaType,
    /// gRPC, but malformed or unsupported: the call ends with this status.
    #[error(transparent)]
    Status(#[from] Status),
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grpc::testing::fields;

    const GRPC: (&str, &str) = ("content-type", "application/grpc");

    #[test]
    fn invalid_requests_are_refused() {
        let check = |method: &str, list: &[(&str, &str)], expected: &str| {
            let refusal =
                receive(Some(method.as_bytes()), EncodingSet::IDENTITY, fields(list).iter()).unwrap_err();
            let refusal = match refusal {
                Refusal::Status(status) => format!("{:?}: {}", status.code(), status.message()),
                Refusal::MethodNotAllowed => "405".to_owned(),
                Refusal::UnsupportedMediaType => "415".to_owned(),
            };
            assert!(refusal.starts_with(expected), "{refusal}");
        };
        check("GET", &[GRPC], "405");
        check("POST", &[], "415");
        check("POST", &[("content-type", "application/json")], "415");
        check("POST", &[("grpc-timeout", "x"), ("content-type", "text/plain")], "415");
        check("POST", &[GRPC, ("grpc-timeout", "1x")], "Internal: malformed grpc-timeout \"1x\"");
        check(
            "POST",
            &[GRPC, ("grpc-encoding", "gzip")],
            "Unimplemented: grpc-encoding \"gzip\" is not supported",
        );
        check("POST", &[GRPC, ("x-bin", "?")], "Internal: malformed binary metadata in \"x-bin\"");
    }

    #[test]
    fn request_headers_round_trip() {
        let check = |shared: Option<Duration>,
                     own_timeout: Option<Duration>,
                     encoding: Encoding,
                     metadata: &HeaderMap| {
            let method = Method {
                scheme: "http",
                authority: "localhost:50051",
                path: "/package.Service/Method",
                content_subtype: "json",
                user_agent: "test/1",
                accepts: EncodingSet::ALL,
                timeout: shared,
            };
            let mut fields = method.fixed_fields();
            emit(own_timeout, encoding, metadata, usize::MAX, &mut fields).unwrap();
            assert_eq!(fields.get(b":path"), Some(&b"/package.Service/Method"[..]));
            assert_eq!(fields.get(b"te"), Some(&b"trailers"[..]));
            assert_eq!(content_subtype(fields.iter(), "json").unwrap(), "json");
            let head = receive(fields.get(b":method"), EncodingSet::ALL, fields.iter()).unwrap();
            assert_eq!(
                (head.timeout, head.encoding, head.accepts),
                (shared.or(own_timeout), encoding, EncodingSet::ALL)
            );
            let mut received = head.metadata;
            assert_eq!(received.remove("user-agent").unwrap(), "test/1");
            assert_eq!(received, *metadata);
        };
        let mut metadata = HeaderMap::new();
        check(None, None, Encoding::Identity, &metadata);
        metadata.insert("x-a", "b".parse().unwrap());
        let (round, rest) = (Duration::from_secs(10), Duration::from_micros(9_999_873));
        check(Some(round), None, Encoding::Gzip, &metadata);
        check(None, Some(rest), Encoding::Gzip, &metadata);
    }

    #[test]
    fn content_subtypes() {
        let check = |content_type: &str, expected: Result<&str, &str>| {
            let requested = content_subtype(fields(&[("content-type", content_type)]).iter(), "json");
            assert_eq!(requested.as_deref().map_err(Status::message), expected, "{content_type}");
        };
        check("application/grpc", Ok(""));
        check("application/grpc+json", Ok("json"));
        check("application/grpc+JSON; charset=utf-8", Ok("json"));
        check("text/html", Ok(""));
        let proto = "content-type \"application/grpc+proto\" is not supported; accepted are application/grpc and \
                     application/grpc+json";
        check("application/grpc+proto", Err(proto));
        assert_eq!(content_subtype(fields(&[]).iter(), "json").unwrap(), "");
    }

    #[test]
    fn plain_request_allocates_no_metadata() {
        let mut extra = FieldList::new();
        emit(None, Encoding::Identity, &HeaderMap::new(), 0, &mut extra).unwrap();
        assert!(extra.is_empty());
        let head = receive(Some(b"POST"), EncodingSet::ALL, fields(&[GRPC]).iter()).unwrap();
        assert_eq!((head.accepts, head.metadata.capacity()), (EncodingSet::IDENTITY, 0));
    }
}
