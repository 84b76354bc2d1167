//! Status of a call: `grpc-status`, `grpc-message` and `grpc-status-details-bin`.

use std::borrow::Cow;

use base64::Engine;
use http::HeaderMap;
use thalweg_core::metadata::{BASE64, MetadataMap};
use thalweg_core::percent;
use thalweg_core::status::missing;
use thalweg_http2::fields::{Field, FieldList, Indexing};

use super::metadata::{self, FIELD_OVERHEAD, LIST_SIZE_MAX, MetadataError};
use crate::status::{Code, Status};

const STATUS: &[u8] = b"grpc-status";
const MESSAGE: &[u8] = b"grpc-message";
const DETAILS: &[u8] = b"grpc-status-details-bin";

/// Appends the end of a call to `fields`: the trailing metadata of a success, or the status of a failure with its
/// metadata. The same fields serve as trailers and after response headers (Trailers-Only).
///
/// `fields` may grow to `size_max` bytes as counted by [`FieldList::size`]. A status that does not fit loses its
/// metadata and details, and its message is truncated: the code always arrives. A success whose metadata does not fit
/// becomes RESOURCE_EXHAUSTED.
pub fn emit(outcome: Result<&HeaderMap, &Status>, size_max: usize, fields: &mut FieldList) {
    match outcome {
        Ok(trailers) => match metadata::emit(trailers, size_max.saturating_sub(CODE_SIZE), fields) {
            Ok(()) => push_code(Code::Ok, fields),
            Err(error) => emit_failure(&Status::from(error), size_max, fields),
        },
        // A handler may fail with `Code::Ok`. Its caller sees a success, as with tonic.
        Err(status) => emit_failure(status, size_max, fields),
    }
}

/// Maximum size of the field `grpc-status`: `grpc-status: 16`.
const CODE_SIZE: usize = STATUS.len() + 2 + FIELD_OVERHEAD;

fn emit_failure(status: &Status, size_max: usize, fields: &mut FieldList) {
    let message = percent::encode(status.message());
    let details = BASE64.encode(status.details());
    let optional_size = |name: &[u8], value: &[u8]| match value {
        [] => 0,
        _ => name.len() + value.len() + FIELD_OVERHEAD,
    };
    let needed = CODE_SIZE + optional_size(MESSAGE, &message) + optional_size(DETAILS, details.as_bytes());
    let free = size_max.min(LIST_SIZE_MAX).saturating_sub(fields.size());
    let fits =
        needed <= free && metadata::emit(status.metadata().as_ref(), size_max - needed, fields).is_ok();

    push_code(status.code(), fields);
    if fits {
        push_if_any(MESSAGE, &message, fields);
        push_if_any(DETAILS, details.as_bytes(), fields);
    } else if CODE_SIZE + optional_size(MESSAGE, &message) <= free {
        push_if_any(MESSAGE, &message, fields);
    } else {
        // Percent coding expands a byte to up to three.
        let len = free.saturating_sub(CODE_SIZE + MESSAGE.len() + FIELD_OVERHEAD) / 3;
        push_if_any(MESSAGE, &percent::encode(cut(status.message(), len)), fields);
    }
}

fn push_code(code: Code, fields: &mut FieldList) {
    let code = code.number();
    let digits = [b'0' + code / 10, b'0' + code % 10];
    let start = usize::from(code < 10);
    fields.push(STATUS, &digits[start..], Indexing::Insert);
}

fn push_if_any(name: &[u8], value: &[u8], fields: &mut FieldList) {
    if !value.is_empty() {
        fields.push(name, value, Indexing::Literal);
    }
}

/// Returns at most `len` bytes from the front of `text`, in whole characters.
fn cut(text: &str, len: usize) -> &str {
    let len = len.min(text.len());
    let boundary = (0..=len).rev().find(|index| text.is_char_boundary(*index));
    &text[..boundary.unwrap_or(0)]
}

/// The raw status fields of a received header block.
#[derive(Default)]
pub(super) struct StatusFields<'a> {
    code: Option<&'a [u8]>,
    message: &'a [u8],
    details: &'a [u8],
}

impl<'a> StatusFields<'a> {
    /// Takes `field` if it belongs to the status, and returns whether it did.
    pub(super) fn take(&mut self, field: &Field<'a>) -> bool {
        match field.name {
            STATUS => self.code = Some(field.value),
            MESSAGE => self.message = field.value,
            DETAILS => self.details = field.value,
            _ => return false,
        }
        true
    }

    /// Returns whether the peer sent a status.
    pub(super) fn is_present(&self) -> bool {
        self.code.is_some()
    }

    /// Returns the call's outcome: its metadata, or a status that includes the metadata.
    ///
    /// Without `grpc-status`, the status is derived from `http_status`, if the headers ended the stream.
    pub(super) fn outcome(
        self,
        http_status: Option<u16>,
        metadata: Result<HeaderMap, MetadataError>,
    ) -> Result<HeaderMap, Status> {
        let Some(code) = self.code else {
            return Err(missing(http_status));
        };
        if code == b"0" {
            return metadata.map_err(Status::from);
        }
        let (code, message) = stated(code, self.message);
        let metadata = metadata?;
        let details = metadata::decode_binary(DETAILS, self.details)?;
        if code == Code::Ok {
            return Ok(metadata);
        }
        let metadata = MetadataMap::from_headers(metadata);
        Err(Status::with_details_and_metadata(code, message, details.into(), metadata))
    }
}

/// Parses `grpc-status` and `grpc-message`. Unknown numbers are UNKNOWN, since the peer may be newer, and so are
/// values that are not numbers. The message then includes the value sent by the peer.
pub(crate) fn stated<'a>(code: &[u8], message: &'a [u8]) -> (Code, Cow<'a, str>) {
    let message = percent::decode(message);
    let number = str::from_utf8(code).ok().and_then(|number| number.parse().ok());
    let problem = match number {
        Some(number) => {
            let code = Code::from_number(number);
            if u32::from(code.number()) == number {
                return (code, message);
            }
            format!("the server sent an unknown grpc-status: {number}")
        }
        None => format!("the server sent a malformed grpc-status: {:?}", String::from_utf8_lossy(code)),
    };
    (Code::Unknown, if message.is_empty() { problem } else { format!("{problem}: {message}") }.into())
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::grpc::{response, testing::Seeded};

    fn text(fields: &FieldList) -> Vec<String> {
        let lossy = |bytes| String::from_utf8_lossy(bytes).into_owned();
        fields.iter().map(|field| format!("{}: {}", lossy(field.name), lossy(field.value))).collect()
    }

    fn metadata_of(name: &'static str, value: &str) -> HeaderMap {
        let mut metadata = HeaderMap::new();
        metadata.insert(name, value.parse().unwrap());
        metadata
    }

    #[test]
    fn sent_statuses() {
        let check = |outcome: Result<&HeaderMap, &Status>, size_max: usize, expected: &[&str]| {
            let mut fields = FieldList::new();
            emit(outcome, size_max, &mut fields);
            assert_eq!(text(&fields), expected);
        };
        let metadata = metadata_of("x-a", "b");
        let status = Status::with_details_and_metadata(
            Code::NotFound,
            "no caf\u{e9}",
            Bytes::from_static(b"ab"),
            MetadataMap::from_headers(metadata.clone()),
        );
        let whole =
            ["x-a: b", "grpc-status: 5", "grpc-message: no caf%C3%A9", "grpc-status-details-bin: YWI"];
        check(Ok(&HeaderMap::new()), usize::MAX, &["grpc-status: 0"]);
        check(Ok(&metadata), usize::MAX, &["x-a: b", "grpc-status: 0"]);
        check(Err(&Status::new(Code::Unauthenticated, "")), usize::MAX, &["grpc-status: 16"]);
        check(Err(&status), usize::MAX, &whole);
        // 36 for x-a, 45 for the code, 56 for the message, 58 for the details.
        check(Err(&status), 195, &whole);
        check(Err(&status), 194, &["grpc-status: 5", "grpc-message: no caf%C3%A9"]);
        check(Err(&status), 101, &["grpc-status: 5", "grpc-message: no caf%C3%A9"]);
        check(Err(&status), 100, &["grpc-status: 5", "grpc-message: no%20"]);
        check(Err(&status), 0, &["grpc-status: 5"]);
        check(Ok(&metadata), 81, &["x-a: b", "grpc-status: 0"]);
        check(Ok(&metadata), 80, &["grpc-status: 8"]);
    }

    #[test]
    fn statuses_round_trip_within_the_size_limit() {
        for seed in 0..500_u64 {
            let mut seeded = Seeded(seed);
            let code = Code::from_number((seed % 17) as u32);
            let message = String::from_utf8_lossy(&seeded.bytes(0..30)).into_owned();
            let details = Bytes::from(seeded.bytes(0..20));
            let metadata = MetadataMap::from_headers(metadata_of("x-a", "b"));
            let sent = Status::with_details_and_metadata(code, message, details, metadata);
            let mut fields = FieldList::new();
            emit(Err(&sent), usize::MAX, &mut fields);
            match response::receive_trailers(fields.iter()) {
                Ok(metadata) => {
                    assert_eq!(code, Code::Ok);
                    assert_eq!(metadata.get("x-a").unwrap(), "b");
                }
                Err(received) => {
                    assert_eq!(received.code(), sent.code());
                    assert_eq!(received.message(), sent.message());
                    assert_eq!(received.details(), sent.details());
                    assert_eq!(received.metadata().get("x-a").unwrap(), "b");
                }
            }
            let size_max = CODE_SIZE + seeded.below(200);
            fields.clear();
            emit(Err(&sent), size_max, &mut fields);
            assert!(fields.size() <= size_max, "seed {seed}");
        }
    }
}
