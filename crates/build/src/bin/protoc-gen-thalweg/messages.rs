//! The messages of `google/protobuf/compiler/plugin.proto` that the plugin uses.
//!
//! `prost_types::compiler` has these messages too, but would drop custom options and has no editions.

use prost::Message;

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Request {
    /// Names of the files to generate code for.
    #[prost(string, repeated, tag = "1")]
    pub(crate) file_to_generate: Vec<String>,
    #[prost(string, optional, tag = "2")]
    pub(crate) parameter: Option<String>,
    /// The `FileDescriptorProto`s of those files and of all that they import, encoded.
    #[prost(bytes = "vec", repeated, tag = "15")]
    pub(crate) proto_file: Vec<Vec<u8>>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Response {
    #[prost(string, optional, tag = "1")]
    pub(crate) error: Option<String>,
    #[prost(uint64, optional, tag = "2")]
    supported_features: Option<u64>,
    #[prost(int32, optional, tag = "3")]
    minimum_edition: Option<i32>,
    #[prost(int32, optional, tag = "4")]
    maximum_edition: Option<i32>,
    #[prost(message, repeated, tag = "15")]
    pub(crate) file: Vec<File>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct File {
    #[prost(string, optional, tag = "1")]
    pub(crate) name: Option<String>,
    /// A `string` of proto2, so protoc accepts bytes that are not UTF-8: embedded descriptors.
    #[prost(bytes = "vec", optional, tag = "15")]
    pub(crate) content: Option<Vec<u8>>,
}

/// `FEATURE_PROTO3_OPTIONAL` and `FEATURE_SUPPORTS_EDITIONS`.
const FEATURES: u64 = 1 | 2;
/// From `EDITION_PROTO2` to `EDITION_2024`.
const EDITIONS: (i32, i32) = (998, 1001);

impl Response {
    pub(crate) fn success(file: Vec<File>) -> Self {
        Response {
            error: None,
            supported_features: Some(FEATURES),
            minimum_edition: Some(EDITIONS.0),
            maximum_edition: Some(EDITIONS.1),
            file,
        }
    }

    pub(crate) fn failure(error: String) -> Self {
        Response { error: Some(error), ..Response::success(Vec::new()) }
    }
}

/// A `FileDescriptorSet` whose files stay encoded.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct EncodedSet {
    #[prost(bytes = "vec", repeated, tag = "1")]
    pub(crate) file: Vec<Vec<u8>>,
}

/// The name and the package of a `FileDescriptorProto`.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct FileName {
    #[prost(string, optional, tag = "1")]
    pub(crate) name: Option<String>,
    #[prost(string, optional, tag = "2")]
    pub(crate) package: Option<String>,
}
