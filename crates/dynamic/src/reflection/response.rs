//! Reflection responses with parts left encoded until needed. An empty file or name takes two bytes on the wire but a
//! dozen times as much decoded.

use std::str::Utf8Error;

use prost::Message as _;
use thalweg::bytes::Bytes;
use thalweg_protobuf::wire::{Reader, WireError, WireType};
use thalweg_services::reflection::pb::ErrorResponse;

/// `ServerReflectionResponse`.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct EncodedResponse {
    /// `FileDescriptorResponse`.
    #[prost(bytes = "bytes", optional, tag = "4")]
    pub(super) files: Option<Bytes>,
    /// `ExtensionNumberResponse`, never requested.
    #[prost(bytes = "bytes", optional, tag = "5")]
    pub(super) extensions: Option<Bytes>,
    /// `ListServiceResponse`.
    #[prost(bytes = "bytes", optional, tag = "6")]
    pub(super) services: Option<Bytes>,
    #[prost(message, optional, tag = "7")]
    pub(super) error: Option<ErrorResponse>,
}

/// `FileDescriptorResponse.file_descriptor_proto`.
pub(super) const FILE: u32 = 1;
/// `FileDescriptorSet.file`.
pub(super) const SET_FILE: u32 = 1;
/// `FileDescriptorProto.name`.
pub(super) const FILE_NAME: u32 = 1;
/// `FileDescriptorProto.dependency`.
pub(super) const FILE_DEPENDENCY: u32 = 3;
/// `ListServiceResponse.service`.
pub(super) const SERVICE: u32 = 1;
/// `ServiceResponse.name`.
pub(super) const SERVICE_NAME: u32 = 1;

impl EncodedResponse {
    /// Returns whether the response has no content.
    pub(super) fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Returns the size on the wire in bytes.
    pub(super) fn len(&self) -> usize {
        self.encoded_len()
    }
}

/// Returns the values of the length-delimited field with this number. An error is the last item.
pub(super) fn items(message: &Bytes, number: u32) -> impl Iterator<Item = Result<Bytes, WireError>> {
    let mut reader = Reader::new(message);
    let mut has_failed = false;
    std::iter::from_fn(move || {
        if has_failed {
            return None;
        }
        let next = next(&mut reader, number).map(|value| value.map(|value| message.slice_ref(value)));
        has_failed = next.is_err();
        next.transpose()
    })
}

/// Decodes a string.
pub(super) fn text(value: &Bytes) -> Result<String, Utf8Error> {
    std::str::from_utf8(value).map(str::to_owned)
}

/// Maximum nesting of groups in skipped fields.
const SKIP_DEPTH_MAX: usize = 100;

fn next<'m>(reader: &mut Reader<'m>, number: u32) -> Result<Option<&'m [u8]>, WireError> {
    while !reader.is_empty() {
        let tag = reader.tag()?;
        if tag.number == number && tag.wire_type == WireType::Len {
            return reader.len_prefixed().map(Some);
        }
        reader.skip(tag, SKIP_DEPTH_MAX)?;
    }
    Ok(None)
}
