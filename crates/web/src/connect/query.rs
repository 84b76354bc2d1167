//! The query of a unary GET call.

use std::borrow::Cow;

use base64::Engine;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use thalweg_engine::{Code, Status};

use crate::base64::URL_SAFE;

/// Characters to encode anywhere (RFC 3986 §2.3).
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// Parameters of a GET query. The first of duplicates counts, and unknown ones are ignored.
#[derive(Debug, Default)]
pub(super) struct Query<'a> {
    version: Option<Cow<'a, [u8]>>,
    encoding: Option<Cow<'a, [u8]>>,
    compression: Option<Cow<'a, [u8]>>,
    base64: Option<Cow<'a, [u8]>>,
    message: Option<Cow<'a, [u8]>>,
}

impl<'a> Query<'a> {
    pub(super) fn parse(query: &'a str) -> Query<'a> {
        let mut parsed = Query::default();
        for pair in query.split('&') {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let parameter = match &*decode(name) {
                b"connect" => &mut parsed.version,
                b"encoding" => &mut parsed.encoding,
                b"compression" => &mut parsed.compression,
                b"base64" => &mut parsed.base64,
                b"message" => &mut parsed.message,
                _ => continue,
            };
            parameter.get_or_insert_with(|| decode(value));
        }
        parsed
    }

    /// Returns whether it is a Connect query: it has the version, or both the codec and the message.
    pub(super) fn is_connect(&self) -> bool {
        self.version.is_some() || self.encoding.is_some() && self.message.is_some()
    }

    /// # Errors
    /// INVALID_ARGUMENT for an unknown version, or for a missing one if `is_required`.
    pub(super) fn check_version(&self, is_required: bool) -> Result<(), Status> {
        match self.version.as_deref() {
            Some(b"v1") => Ok(()),
            None if !is_required => Ok(()),
            None => Err(invalid("missing connect=v1 in the query, which this server requires")),
            Some(other) => {
                let other = String::from_utf8_lossy(other);
                Err(invalid(format!("connect={other} is not supported; use connect=v1")))
            }
        }
    }

    /// Returns the codec of the messages.
    ///
    /// # Errors
    /// INVALID_ARGUMENT if it is missing.
    pub(super) fn encoding(&self) -> Result<&[u8], Status> {
        self.encoding.as_deref().ok_or_else(|| invalid("missing encoding in the query"))
    }

    /// Returns the encoding of the message.
    pub(super) fn compression(&self) -> Option<&[u8]> {
        self.compression.as_deref()
    }

    /// Returns the message, still compressed.
    ///
    /// # Errors
    /// INVALID_ARGUMENT if it is missing or not valid Base64.
    pub(super) fn message(self) -> Result<Vec<u8>, Status> {
        let message = self.message.ok_or_else(|| invalid("missing message in the query"))?;
        if self.base64.as_deref() != Some(b"1") {
            return Ok(message.into_owned());
        }
        URL_SAFE
            .decode(&*message)
            .map_err(|error| invalid(format!("invalid URL-safe Base64 in the query's message: {error}")))
    }
}

/// Writes a query for `message`, with parameters in the order that makes URLs cacheable. `is_text`: the message is
/// readable text.
pub(super) fn write(codec: &str, compression: Option<&str>, message: &[u8], is_text: bool) -> String {
    let mut query = String::from("connect=v1");
    let text = str::from_utf8(message).ok().filter(|_| is_text);
    if text.is_none() {
        query.push_str("&base64=1");
    }
    if let Some(compression) = compression {
        query.push_str("&compression=");
        query.push_str(compression);
    }
    query.push_str("&encoding=");
    query.extend(utf8_percent_encode(codec, RESERVED));
    query.push_str("&message=");
    match text {
        Some(text) => query.extend(utf8_percent_encode(text, RESERVED)),
        None => URL_SAFE.encode_string(message, &mut query),
    }
    query
}

/// Decodes a name or a value. `+` is a space, as in forms; a `%` without two digits is literal.
fn decode(text: &str) -> Cow<'_, [u8]> {
    if text.contains('+') {
        return percent_decode_str(&text.replace('+', " ")).collect::<Vec<u8>>().into();
    }
    percent_decode_str(text).into()
}

fn invalid(why: impl Into<String>) -> Status {
    Status::new(Code::InvalidArgument, why)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Seeded;

    #[test]
    fn messages() {
        let check = |query: &str, expected: Result<&[u8], &str>| {
            let message = Query::parse(query).message();
            assert_eq!(message.as_deref().map_err(Status::message), expected, "{query}");
        };
        check("message=%7B%22a%22%3A1%7D&encoding=json", Ok(b"{\"a\":1}"));
        check("encoding=json&message={\"a\":1}", Ok(b"{\"a\":1}"));
        check("message=a+b%2Bc%2", Ok(b"a b+c%2"));
        check("message=", Ok(b""));
        check("message", Ok(b""));
        check("mess%61ge=a&message=b", Ok(b"a"));
        check("message=%ff", Ok(b"\xff"));
        check("x=1&&base64=1&message=-_8", Ok(b"\xfb\xff"));
        check("base64=1&message=YQ%3D%3D", Ok(b"a"));
        check("base64=1&message=YQ==", Ok(b"a"));
        check("base64=1&message=", Ok(b""));
        check("base64=0&message=YQ", Ok(b"YQ"));
        check("base64=&message=YQ", Ok(b"YQ"));
        let malformed = "invalid URL-safe Base64 in the query's message: Invalid symbol 47, offset 0.";
        check("base64=1&message=/w", Err(malformed));
        check("encoding=json", Err("missing message in the query"));
        check("", Err("missing message in the query"));
    }

    #[test]
    fn versions() {
        let check = |query: &str, is_required, expected: Result<(), &str>| {
            let outcome = Query::parse(query).check_version(is_required);
            assert_eq!(outcome.as_ref().map_err(Status::message).copied(), expected, "{query}");
        };
        check("connect=v1", true, Ok(()));
        check("message=", false, Ok(()));
        check("message=", true, Err("missing connect=v1 in the query, which this server requires"));
        check("connect=v2", false, Err("connect=v2 is not supported; use connect=v1"));
        check("connect=", false, Err("connect= is not supported; use connect=v1"));
    }

    #[test]
    fn connect_query_is_recognized() {
        let check = |query: &str, expected| assert_eq!(Query::parse(query).is_connect(), expected, "{query}");
        check("connect=v1", true);
        check("encoding=json&message=a", true);
        check("message=a", false);
        check("encoding=json", false);
        check("", false);
    }

    #[test]
    fn queries_round_trip() {
        let mut seeded = Seeded(5);
        for _ in 0..2_000 {
            let message = seeded.bytes(0..30);
            for is_text in [false, true] {
                let query = write("a+b", Some("gzip"), &message, is_text);
                assert!(query.starts_with("connect=v1"), "{query}");
                let parsed = Query::parse(&query);
                assert_eq!(parsed.encoding().unwrap(), b"a+b");
                assert_eq!(parsed.compression(), Some(&b"gzip"[..]));
                assert_eq!(parsed.message().unwrap(), message);
            }
            let noise =
                seeded.words(&["message=", "base64=1", "&", "%", "4", "g", "=", "+", "\u{e9}"], 0..10);
            let _ = Query::parse(&noise).message();
        }
        assert_eq!(
            write("json", None, b"{\"a\": 1}", true),
            "connect=v1&encoding=json&message=%7B%22a%22%3A%201%7D"
        );
        assert_eq!(write("proto", None, b"a", false), "connect=v1&base64=1&encoding=proto&message=YQ");
    }
}
