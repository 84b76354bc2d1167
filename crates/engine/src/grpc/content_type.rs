//! `content-type`: what tells a gRPC request or response from any other.

/// What we send: the format of the messages is agreed on elsewhere.
pub(crate) const GRPC: &str = "application/grpc";

/// The subtype of a gRPC content type: `proto` of `application/grpc+proto`, empty if there is none.
///
/// `None` says that the value is not gRPC's: a server answers 415, a client looks at the HTTP status. Parameters behind
/// `;` are allowed and ignored. `application/grpc-web` is another protocol.
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
