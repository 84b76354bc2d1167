//! Errors in descriptors.

use thalweg::prost::DecodeError;

/// Error in the descriptors of a [`ReflectionBuilder`](super::ReflectionBuilder). Sets are numbered from 1 in the order
/// they were added.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DescriptorError {
    /// The bytes are not a valid set.
    #[error("descriptor set {set} is not a valid google.protobuf.FileDescriptorSet: {source}")]
    Set {
        /// Number of the set.
        set: usize,
        /// Decoder error.
        source: DecodeError,
    },
    /// A file in a set is invalid.
    #[error(
        "file {file} of descriptor set {set} is not a valid google.protobuf.FileDescriptorProto: {source}"
    )]
    File {
        /// Number of the set.
        set: usize,
        /// Number of the file in the set, from 1.
        file: usize,
        /// Decoder error.
        source: DecodeError,
    },
    /// A file has no name, which imports need.
    #[error("file {file} of descriptor set {set} has no name")]
    NoName {
        /// Number of the set.
        set: usize,
        /// Number of the file in the set, from 1.
        file: usize,
    },
    /// An import is missing, without which clients cannot use the file.
    #[error(
        "{file} imports {import}, which is in no descriptor set; include imports in the set (thalweg-build always \
         does; use --include_imports with protoc)"
    )]
    MissingImport {
        /// The importing file.
        file: String,
        /// The missing file.
        import: String,
    },
}
