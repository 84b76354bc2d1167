//! The schema: a shared pool.

use std::fmt;
use std::sync::Arc;

use super::compile;
use super::error::SchemaError;
use super::pool::Pool;
use super::raw;

/// A checked and compiled set of `.proto` files. Clones are cheap and share their data.
///
/// ```
/// use thalweg_protobuf::{Kind, Schema};
///
/// // What `protoc --include_imports -o` writes for: syntax = "proto3"; message Point { int32 x = 1; }
/// let set = b"\x0a\x25\x0a\x07p.proto\x22\x12\x0a\x05Point\x12\x09\x0a\x01x\x18\x01\x20\x01\x28\x05\x62\x06proto3";
/// let schema = Schema::from_descriptor_set(set)?;
/// let point = schema.message("Point").expect("declared in the file");
/// assert_eq!(point.field("x").map(|field| field.kind()), Some(Kind::Int32));
/// # Ok::<(), thalweg_protobuf::SchemaError>(())
/// ```
#[derive(Clone)]
pub struct Schema(Arc<Pool>);

impl Schema {
    /// Creates a schema from the bytes of a `google.protobuf.FileDescriptorSet`. It must include imports (`protoc
    /// --include_imports -o`); files may be in any order.
    ///
    /// # Errors
    ///
    /// Returns an error with the file and the element if the bytes are not descriptors, or if these do not form a
    /// valid schema.
    pub fn from_descriptor_set(set: &[u8]) -> Result<Schema, SchemaError> {
        let files = raw::files_of_set(set).map_err(|problem| SchemaError {
            file: String::new(),
            element: String::new(),
            problem,
        })?;
        Schema::from_files(files)
    }

    /// Creates a schema from the bytes of `google.protobuf.FileDescriptorProto`s, as gRPC reflection sends them, in
    /// any order. Identical duplicates are ignored. Imports that nothing refers to may be missing.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`Schema::from_descriptor_set`].
    pub fn from_files<'a>(files: impl IntoIterator<Item = &'a [u8]>) -> Result<Schema, SchemaError> {
        let files: Vec<&[u8]> = files.into_iter().collect();
        compile::compile(&files).map(|pool| Schema(Arc::new(pool)))
    }

    #[inline(always)]
    pub(crate) fn pool(&self) -> &Pool {
        &self.0
    }

    /// Whether both are the same schema, so that indexes are interchangeable.
    pub(crate) fn is(&self, other: &Schema) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl fmt::Debug for Schema {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_list().entries(self.0.files.iter().map(|file| &file.name)).finish()
    }
}
