//! `google/protobuf/compiler/plugin.proto`, as far as it is used here.
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
    pub(crate) supported_features: Option<u64>,
    #[prost(message, repeated, tag = "15")]
    pub(crate) file: Vec<File>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct File {
    #[prost(string, optional, tag = "1")]
    pub(crate) name: Option<String>,
    /// A `string` of proto2, so protoc takes bytes that are not UTF-8: embedded descriptors.
    #[prost(bytes = "vec", optional, tag = "15")]
    pub(crate) content: Option<Vec<u8>>,
}

/// `CodeGeneratorResponse.FEATURE_PROTO3_OPTIONAL`.
const FEATURE_PROTO3_OPTIONAL: u64 = 1;

impl Response {
    pub(crate) fn success(file: Vec<File>) -> Self {
        Response { error: None, supported_features: Some(FEATURE_PROTO3_OPTIONAL), file }
    }

    pub(crate) fn failure(error: String) -> Self {
        Response { error: Some(error), supported_features: Some(FEATURE_PROTO3_OPTIONAL), file: Vec::new() }
    }
}

/// A `FileDescriptorSet` whose files stay encoded.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct EncodedSet {
    #[prost(bytes = "vec", repeated, tag = "1")]
    pub(crate) file: Vec<Vec<u8>>,
}

/// The parts of a `FileDescriptorProto` that say which package it is in.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct FileName {
    #[prost(string, optional, tag = "1")]
    pub(crate) name: Option<String>,
    #[prost(string, optional, tag = "2")]
    pub(crate) package: Option<String>,
}
