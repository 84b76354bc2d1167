//! `content-type`: binary or text, and the codec.

use http::HeaderValue;

use crate::content_type::{application, strip_prefix};

/// A gRPC-Web content type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ContentType<'a> {
    /// Whether the body is Base64.
    pub is_text: bool,
    /// Codec of the messages; empty if unspecified, which means `proto`.
    pub codec: &'a str,
}

impl<'a> ContentType<'a> {
    /// Parses a gRPC-Web content type: `application/grpc-web+proto`, `application/grpc-web-text`.
    pub fn parse(content_type: &'a [u8]) -> Option<ContentType<'a>> {
        let rest = strip_prefix(application(content_type)?, "grpc-web")?;
        let text = strip_prefix(rest, "-text");
        // Base64 is the only text format.
        let rest = text.map_or(rest, |rest| strip_prefix(rest, "-base64").unwrap_or(rest));
        let codec = if rest.is_empty() { "" } else { rest.strip_prefix('+')? };
        Some(ContentType { is_text: text.is_some(), codec })
    }

    /// Returns the codec of the messages, `proto` by default.
    pub fn codec(&self) -> &'a str {
        if self.codec.is_empty() { "proto" } else { self.codec }
    }

    pub(super) fn value(&self) -> HeaderValue {
        let text = if self.is_text { "-text" } else { "" };
        let plus = if self.codec.is_empty() { "" } else { "+" };
        let value = HeaderValue::try_from(format!("application/grpc-web{text}{plus}{}", self.codec));
        // A parsed content type is a valid header value.
        value.unwrap_or_else(|_| HeaderValue::from_static("application/grpc-web"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_types() {
        let check = |value: &str, expected: Option<(bool, &str)>| {
            let parsed = ContentType::parse(value.as_bytes());
            assert_eq!(parsed.map(|parsed| (parsed.is_text, parsed.codec())), expected, "{value}");
        };
        check("application/grpc-web", Some((false, "proto")));
        check("application/grpc-web+proto", Some((false, "proto")));
        check("Application/gRPC-Web+json; charset=utf-8", Some((false, "json")));
        check("application/grpc-web-text", Some((true, "proto")));
        check("application/grpc-web-text+json", Some((true, "json")));
        check("application/grpc-web-text-base64", Some((true, "proto")));
        for other in
            ["application/grpc", "application/grpc-webx", "application/grpc-web-", "text/grpc-web", ""]
        {
            check(other, None);
        }
    }

    #[test]
    fn content_types_round_trip() {
        for is_text in [false, true] {
            for codec in ["", "proto", "json"] {
                let content_type = ContentType { is_text, codec };
                assert_eq!(ContentType::parse(content_type.value().as_bytes()), Some(content_type));
            }
        }
    }
}
