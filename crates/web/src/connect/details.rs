//! The details of a status: gRPC has them as a `google.rpc.Status` of Protobuf, Connect as a list in JSON.

use thalweg_engine::Code;
use thalweg_protobuf::wire::{Reader, Tag, WireError, WireType, put_tag, put_varint};

/// A detail: a message and which one it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Detail {
    /// `google.rpc.RetryInfo`.
    pub(super) type_name: String,
    /// The message, as wire bytes.
    pub(super) value: Vec<u8>,
}

/// What an `Any` has before the name of a type, unless it says otherwise.
const TYPE_URL: &str = "type.googleapis.com/";

/// The details in a `google.rpc.Status`. What can't be read has none: a failure must not get lost for its details.
pub(super) fn of_status(status: &[u8]) -> Vec<Detail> {
    read_status(status).unwrap_or_default()
}

fn read_status(status: &[u8]) -> Result<Vec<Detail>, WireError> {
    let mut details = Vec::new();
    each_record(status, |number, bytes| {
        if number == 3 {
            let (mut type_name, mut value) = (String::new(), Vec::new());
            each_record(bytes, |number, bytes| {
                match number {
                    1 => {
                        let url = String::from_utf8_lossy(bytes);
                        url.rsplit('/').next().unwrap_or_default().clone_into(&mut type_name);
                    }
                    2 => value = bytes.to_vec(),
                    _ => {}
                }
                Ok(())
            })?;
            details.push(Detail { type_name, value });
        }
        Ok(())
    })?;
    Ok(details)
}

/// Calls `take` with each record that has a length. Neither message here has one of a group.
fn each_record<'a>(
    message: &'a [u8],
    mut take: impl FnMut(u32, &'a [u8]) -> Result<(), WireError>,
) -> Result<(), WireError> {
    let mut reader = Reader::new(message);
    while !reader.is_empty() {
        let tag = reader.tag()?;
        match tag.wire_type {
            WireType::Varint => drop(reader.varint()?),
            WireType::Fixed64 => drop(reader.fixed64()?),
            WireType::Fixed32 => drop(reader.fixed32()?),
            WireType::Len => take(tag.number, reader.len_prefixed()?)?,
            WireType::StartGroup | WireType::EndGroup => return Ok(()),
        }
    }
    Ok(())
}

/// A `google.rpc.Status`, or nothing if there are no details: code and message are said elsewhere.
pub(super) fn to_status(code: Code, message: &str, details: &[Detail]) -> Vec<u8> {
    let mut status = Vec::new();
    if details.is_empty() {
        return status;
    }
    put_tag(&mut status, Tag { number: 1, wire_type: WireType::Varint });
    put_varint(&mut status, u64::from(code.number()));
    put_bytes(&mut status, 2, message.as_bytes());
    for detail in details {
        let mut any = Vec::new();
        put_bytes(&mut any, 1, format!("{TYPE_URL}{}", detail.type_name).as_bytes());
        put_bytes(&mut any, 2, &detail.value);
        put_bytes(&mut status, 3, &any);
    }
    status
}

fn put_bytes(out: &mut Vec<u8>, number: u32, bytes: &[u8]) {
    put_tag(out, Tag { number, wire_type: WireType::Len });
    put_varint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Seeded;

    #[test]
    fn details_come_back() {
        let check = |details: &[(&str, &[u8])]| {
            let detail =
                |(name, value): &(&str, &[u8])| Detail { type_name: (*name).into(), value: value.to_vec() };
            let details: Vec<Detail> = details.iter().map(detail).collect();
            let status = to_status(Code::NotFound, "gone", &details);
            assert_eq!(status.is_empty(), details.is_empty());
            assert_eq!(of_status(&status), details);
        };
        check(&[]);
        check(&[("a.B", b"\x08\x01")]);
        check(&[("a.B", b""), ("", &[0xff; 200])]);
    }

    #[test]
    fn what_others_write() {
        let check = |status: &[u8], expected: &[&str]| {
            let names: Vec<String> = of_status(status).into_iter().map(|detail| detail.type_name).collect();
            assert_eq!(names, expected);
        };
        check(b"\x1a\x07\x0a\x05x/y/z\x20\x01", &["z"]);
        check(b"\x1a\x00", &[""]);
        check(b"\x1a\x03\x0a\x01\xff", &["\u{fffd}"]);
        // Cut off, or no message at all: no details.
        check(b"\x1a\x07\x0a\x05x/y", &[]);
        check(b"\xff", &[]);
        check(b"\x1b", &[]);
    }

    #[test]
    fn random_bytes_do_no_harm() {
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
