//! The schema itself: a pool, shared by all who have a clone of it.

use std::fmt;
use std::sync::Arc;

use super::compile;
use super::error::SchemaError;
use super::pool::Pool;
use super::raw;

/// A set of `.proto` files, checked and compiled. Cloning it is cheap: the clones share one.
///
/// ```
/// use thalweg_protobuf::{Kind, Schema};
///
/// // What `protoc --include_imports -o` writes for: syntax = "proto3"; message Point { int32 x = 1; }
/// let set = b"\x0a\x25\x0a\x07p.proto\x22\x12\x0a\x05Point\x12\x09\x0a\x01x\x18\x01\x20\x01\x28\x05\x62\x06proto3";
/// let schema = Schema::from_descriptor_set(set)?;
/// let point = schema.message("Point").expect("it is in the file");
/// assert_eq!(point.field("x").map(|field| field.kind()), Some(Kind::Int32));
/// # Ok::<(), thalweg_protobuf::SchemaError>(())
/// ```
#[derive(Clone)]
pub struct Schema(Arc<Pool>);

impl Schema {
    /// From the bytes of a `google.protobuf.FileDescriptorSet`, imports included (`protoc --include_imports -o`), in
    /// any order.
    ///
    /// # Errors
    ///
    /// For bytes that are no descriptors, and for descriptors that are no schema: with the file and the element.
    pub fn from_descriptor_set(set: &[u8]) -> Result<Schema, SchemaError> {
        let files = raw::files_of_set(set).map_err(|problem| SchemaError {
            file: String::new(),
            element: String::new(),
            problem,
        })?;
        Schema::from_files(files)
    }

    /// From the bytes of `google.protobuf.FileDescriptorProto`s, as gRPC's reflection gives them, in any order. A file
    /// that comes twice is taken once. Imports that nothing refers to may be missing.
    ///
    /// # Errors
    ///
    /// As for [`Schema::from_descriptor_set`].
    pub fn from_files<'a>(files: impl IntoIterator<Item = &'a [u8]>) -> Result<Schema, SchemaError> {
        let files: Vec<&[u8]> = files.into_iter().collect();
        compile::compile(&files).map(|pool| Schema(Arc::new(pool)))
    }

    #[inline(always)]
    pub(crate) fn pool(&self) -> &Pool {
        &self.0
    }

    /// Whether both are the same schema: indexes of one mean something in the other.
    pub(crate) fn is(&self, other: &Schema) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl fmt::Debug for Schema {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_list().entries(self.0.files.iter().map(|file| &file.name)).finish()
    }
}
