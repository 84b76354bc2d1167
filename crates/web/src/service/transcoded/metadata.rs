//! Conversion between headers and metadata.

use std::borrow::Cow;
use std::time::Duration;

use http::{HeaderMap, HeaderName};
use thalweg_engine::{Code, Status, request_timeout};

use crate::connect::timeout;
use crate::fields;

/// Prefix of metadata names that grpc-gateway clients use.
const PREFIX: &str = "grpc-metadata-";

/// Prefix of trailing metadata names, as in grpc-gateway.
pub(super) const TRAILER_PREFIX: &str = "grpc-trailer-";

/// Returns the metadata of a request.
///
/// # Errors
/// INVALID_ARGUMENT if it is malformed.
pub(super) fn received(headers: &HeaderMap) -> Result<HeaderMap, Status> {
    fields::received(&unprefixed(headers)).map_err(as_invalid_argument)
}

/// Returns the caller's timeout, the smaller one if both headers are present.
///
/// # Errors
/// INVALID_ARGUMENT if it is malformed.
pub(super) fn timeout(headers: &HeaderMap) -> Result<Option<Duration>, Status> {
    let (grpc, connect) = (request_timeout(headers).map_err(as_invalid_argument)?, timeout::read(headers)?);
    Ok(match (grpc, connect) {
        (Some(grpc), Some(connect)) => Some(grpc.min(connect)),
        (grpc, connect) => grpc.or(connect),
    })
}

/// Malformed metadata is INTERNAL in gRPC, but here it is the client's fault.
fn as_invalid_argument(status: Status) -> Status {
    match status.code() {
        Code::Internal => Status::new(Code::InvalidArgument, status.message().to_owned()),
        _ => status,
    }
}

/// Removes the prefixes. A header without prefix wins, since for example a proxy sets it on purpose.
fn unprefixed(headers: &HeaderMap) -> Cow<'_, HeaderMap> {
    let is_prefixed = |name: &HeaderName| name.as_str().starts_with(PREFIX);
    if !headers.keys().any(is_prefixed) {
        return Cow::Borrowed(headers);
    }
    let mut plain = HeaderMap::with_capacity(headers.len());
    for (name, value) in headers {
        let plain_name =
            name.as_str().strip_prefix(PREFIX).and_then(|plain_name| HeaderName::try_from(plain_name).ok());
        let name = match plain_name {
            Some(plain_name) if headers.contains_key(&plain_name) => continue,
            Some(plain_name) => plain_name,
            None => name.clone(),
        };
        // There are no more fields than before.
        let _ = plain.try_append(name, value.clone());
    }
    Cow::Owned(plain)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{header_lines, headers};

    #[test]
    fn request_headers_become_metadata() {
        let check = |list: &[(&str, &str)], expected: &str| {
            assert_eq!(header_lines(&received(&headers(list)).unwrap()), expected);
        };
        check(&[], "");
        check(&[("X-A", "1"), ("authorization", "b")], "authorization: b\nx-a: 1");
        let protocol_headers = ["connection", "host", "content-type", "content-length", "te", "grpc-timeout"];
        check(&protocol_headers.map(|name| (name, "1")), "");
        check(&[("grpc-metadata-x-a", "1"), ("x-b", "2")], "x-a: 1\nx-b: 2");
        check(&[("grpc-metadata-x", "1"), ("Grpc-Metadata-X", "2")], "x: 1\nx: 2");
        check(&[("grpc-metadata-x", "1"), ("x", "2")], "x: 2");
        check(&[("grpc-metadata-a-bin", "YQ==")], "a-bin: YQ");
        // A prefix does not turn protocol headers into metadata.
        check(&protocol_headers.map(|name| (&*format!("grpc-metadata-{name}").leak(), "1")), "");
        check(&[("grpc-metadata-", "1")], "grpc-metadata-: 1");
        let status = received(&headers(&[("a-bin", "?")])).unwrap_err();
        assert_eq!(status.code(), Code::InvalidArgument);
    }

    #[test]
    fn shorter_timeout_wins() {
        let check = |list: &[(&str, &str)], expected: Result<Option<u64>, Code>| {
            let actual = timeout(&headers(list)).map(|time| time.map(|time| time.as_millis() as u64));
            assert_eq!(actual.map_err(|status| status.code()), expected);
        };
        check(&[], Ok(None));
        check(&[("grpc-timeout", "2S")], Ok(Some(2000)));
        check(&[("connect-timeout-ms", "1500")], Ok(Some(1500)));
        check(&[("connect-timeout-ms", "1500"), ("grpc-timeout", "2S")], Ok(Some(1500)));
        check(&[("connect-timeout-ms", "2500"), ("grpc-timeout", "2S")], Ok(Some(2000)));
        check(&[("grpc-timeout", "2")], Err(Code::InvalidArgument));
        check(&[("connect-timeout-ms", "x")], Err(Code::InvalidArgument));
    }
}
