//! Error details of a status, which gRPC encodes as a `google.rpc.Status`.

use std::borrow::Cow;

use thalweg_engine::Code;
use thalweg_protobuf::wire::{Reader, Tag, WireError, WireType, put_tag, put_varint};

/// A message in a `google.protobuf.Any`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Detail<'a> {
    /// For example `type.googleapis.com/google.rpc.RetryInfo`.
    pub(crate) type_url: Cow<'a, str>,
    /// The message, as wire bytes.
    pub(crate) value: Cow<'a, [u8]>,
}

impl<'a> Detail<'a> {
    /// Creates a detail from the full name of its message type.
    pub(crate) fn new(type_name: &str, value: Vec<u8>) -> Self {
        Detail { type_url: format!("type.googleapis.com/{type_name}").into(), value: value.into() }
    }

    /// For example `google.rpc.RetryInfo`.
    pub(crate) fn type_name(&self) -> &str {
        self.type_url.rsplit('/').next().unwrap_or_default()
    }

    fn read(any: &'a [u8]) -> Result<Self, WireError> {
        let mut detail = Detail { type_url: "".into(), value: (&[]).into() };
        let mut any = Reader::new(any);
        while !any.is_empty() {
            match any.tag()? {
                TYPE_URL => detail.type_url = String::from_utf8_lossy(any.len_prefixed()?),
                VALUE => detail.value = any.len_prefixed()?.into(),
                tag => any.skip(tag, SKIP_DEPTH_MAX)?,
            }
        }
        Ok(detail)
    }
}

const CODE: Tag = Tag::new(1, WireType::Varint);
const MESSAGE: Tag = Tag::new(2, WireType::Len);
const DETAILS: Tag = Tag::new(3, WireType::Len);
const TYPE_URL: Tag = Tag::new(1, WireType::Len);
const VALUE: Tag = Tag::new(2, WireType::Len);

/// Maximum nesting of groups in skipped fields.
const SKIP_DEPTH_MAX: usize = 100;

/// Returns the details in a `google.rpc.Status`. A malformed one has none, so that the failure itself is not lost.
pub(crate) fn of_status(status: &[u8]) -> Vec<Detail<'_>> {
    read_status(status).unwrap_or_default()
}

fn read_status(status: &[u8]) -> Result<Vec<Detail<'_>>, WireError> {
    let mut details = Vec::new();
    let mut reader = Reader::new(status);
    while !reader.is_empty() {
        match reader.tag()? {
            DETAILS => details.push(Detail::read(reader.len_prefixed()?)?),
            tag => reader.skip(tag, SKIP_DEPTH_MAX)?,
        }
    }
    Ok(details)
}

/// Encodes a `google.rpc.Status`, or nothing without details: code and message are sent separately.
pub(crate) fn to_status(code: Code, message: &str, details: &[Detail<'_>]) -> Vec<u8> {
    let mut status = Vec::new();
    if details.is_empty() {
        return status;
    }
    put_tag(&mut status, CODE);
    put_varint(&mut status, u64::from(code.number()));
    put_bytes(&mut status, MESSAGE, message.as_bytes());
    for detail in details {
        let mut any = Vec::new();
        put_bytes(&mut any, TYPE_URL, detail.type_url.as_bytes());
        put_bytes(&mut any, VALUE, &detail.value);
        put_bytes(&mut status, DETAILS, &any);
    }
    status
}

fn put_bytes(out: &mut Vec<u8>, tag: Tag, bytes: &[u8]) {
    put_tag(out, tag);
    put_varint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Seeded;

    #[test]
    fn details_round_trip() {
        let check = |details: &[(&str, &'static [u8])]| {
            let detail = |(name, value): &(&str, &'static [u8])| Detail::new(name, value.to_vec());
            let details: Vec<Detail<'_>> = details.iter().map(detail).collect();
            let status = to_status(Code::NotFound, "gone", &details);
            assert_eq!(status.is_empty(), details.is_empty());
            assert_eq!(of_status(&status), details);
        };
        check(&[]);
        check(&[("a.B", b"\x08\x01")]);
        check(&[("a.B", b""), ("", &[0xff; 200])]);
    }

    #[test]
    fn details_of_other_stacks_are_read() {
        let check = |status: &[u8], expected: &[&str]| {
            let names: Vec<String> =
                of_status(status).iter().map(|detail| detail.type_name().to_owned()).collect();
            assert_eq!(names, expected);
        };
        check(b"\x1a\x07\x0a\x05x/y/z\x20\x01", &["z"]);
        check(b"\x1a\x00", &[""]);
        check(b"\x1a\x03\x0a\x01\xff", &["\u{fffd}"]);
        // Truncated or malformed input has no details.
        check(b"\x1a\x07\x0a\x05x/y", &[]);
        check(b"\xff", &[]);
        check(b"\x1b", &[]);
    }

    #[test]
    fn random_bytes_do_not_panic() {
        let mut seeded = Seeded(3);
        for _ in 0..5_000 {
            let mut status = seeded.bytes(0..30);
            if let Some(first) = status.first_mut() {
                *first = 0x1a;
            }
            of_status(&status);
        }
    }
}
