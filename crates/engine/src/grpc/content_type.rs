//! `content-type`, which distinguishes gRPC requests and responses from others.

use std::borrow::Cow;

/// Content type for Protobuf, or any format agreed on elsewhere.
pub(crate) const GRPC: &str = "application/grpc";

/// Returns the content type for a subtype: `application/grpc+json`, or `application/grpc` if the subtype is empty.
pub(crate) fn of(subtype: &str) -> Cow<'static, str> {
    if subtype.is_empty() { Cow::Borrowed(GRPC) } else { Cow::Owned(format!("{GRPC}+{subtype}")) }
}

/// Returns whether a content type can have this subtype: it must be empty or a token (RFC 9110 §5.6.2).
pub(crate) const fn is_legal_subtype(subtype: &str) -> bool {
    let (bytes, mut at) = (subtype.as_bytes(), 0);
    while at < bytes.len() {
        if !(bytes[at].is_ascii_alphanumeric() || matches!(bytes[at], b'-' | b'.' | b'_' | b'+')) {
            return false;
        }
        at += 1;
    }
    true
}

/// Returns the subtype of a gRPC content type: `proto` for `application/grpc+proto`, or empty if there is none.
///
/// Returns `None` for other content types: a server responds with 415, a client uses the HTTP status. Parameters after
/// `;` are ignored. `application/grpc-web` is another protocol.
pub(crate) fn subtype(content_type: &[u8]) -> Option<&[u8]> {
    let (essence, rest) = content_type.split_at_checked(GRPC.len())?;
    if !essence.eq_ignore_ascii_case(GRPC.as_bytes()) {
        return None;
    }
    match rest {
        [] | [b';', ..] => Some(b""),
        [b'+', subtype @ ..] => {
            Some(subtype.split(|byte| *byte == b';').next().unwrap_or_default().trim_ascii())
        }
        [b' ' | b'\t', ..] if rest.trim_ascii_start().starts_with(b";") => Some(b""),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_subtype_is_read_as_it_was_written() {
        let check = |subtype: &str, expected: &str| {
            assert_eq!(of(subtype), expected);
            assert!(is_legal_subtype(subtype));
            assert_eq!(super::subtype(expected.as_bytes()), Some(subtype.as_bytes()));
        };
        check("", "application/grpc");
        check("json", "application/grpc+json");
        check("vnd.x-y+cbor", "application/grpc+vnd.x-y+cbor");
        for illegal in ["a b", "a;b", "a,b", "ä", "a\r\nb"] {
            assert!(!is_legal_subtype(illegal), "{illegal:?}");
        }
    }

    #[test]
    fn content_types() {
        let check = |content_type: &str, expected: Option<&str>| {
            assert_eq!(subtype(content_type.as_bytes()), expected.map(str::as_bytes), "{content_type:?}");
        };
        check("application/grpc", Some(""));
        check("application/grpc+proto", Some("proto"));
        check("application/grpc+json;charset=utf-8", Some("json"));
        check("application/grpc;proto", Some(""));
        check("application/grpc ; x=y", Some(""));
        check("Application/GRPC+proto", Some("proto"));
        check("", None);
        check("application/grp", None);
        check("application/grpc-web", None);
        check("application/grpc-web+proto", None);
        check("application/grpcd", None);
        check("application/grpc x", None);
        check("application/json", None);
        check("text/html; application/grpc", None);
    }
}
