//! Why descriptors are no use.

use thalweg::prost::DecodeError;

/// What is wrong with the descriptors that a [`ReflectionBuilder`](super::ReflectionBuilder) was given. Sets are
/// counted from 1, in the order in which they were given.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DescriptorError {
    /// The bytes are no set.
    #[error("descriptor set {set} is no encoded google.protobuf.FileDescriptorSet: {source}")]
    Set {
        /// Which set.
        set: usize,
        /// What the decoder said.
        source: DecodeError,
    },
    /// A file of a set is none.
    #[error("file {file} of descriptor set {set} is no google.protobuf.FileDescriptorProto: {source}")]
    File {
        /// Which set.
        set: usize,
        /// Which of its files, counted from 1.
        file: usize,
        /// What the decoder said.
        source: DecodeError,
    },
    /// A file has no name, by which others could import it.
    #[error("file {file} of descriptor set {set} has no name")]
    NoName {
        /// Which set.
        set: usize,
        /// Which of its files, counted from 1.
        file: usize,
    },
    /// A client could not make anything of a file without what that imports.
    #[error(
        "{file} imports {import}, which is in no descriptor set: write the set with its imports (thalweg-build does; \
         protoc does with --include_imports)"
    )]
    MissingImport {
        /// The file that imports.
        file: String,
        /// The file that is not there.
        import: String,
    },
}
