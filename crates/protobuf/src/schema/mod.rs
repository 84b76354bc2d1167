//! Descriptors, compiled once into a [`Schema`].
//!
//! `raw` reads `descriptor.proto`'s messages, `features` says what the edition makes of them, `compile` declares all names
//! and links fields to their types, and `table` lays each message out for decoding and encoding. [`MessageType`], [`Field`]
//! and the other handles look into the result.

mod compile;
mod defaults;
mod error;
mod features;
mod handles;
mod kind;
mod names;
pub(crate) mod pool;
mod raw;
pub(crate) mod table;

use std::fmt;
use std::sync::Arc;

pub use error::{Problem, SchemaError};
pub use features::Edition;
pub use handles::{EnumType, EnumValue, Field, File, MessageType, Method, Oneof, Service};
pub use kind::{Cardinality, Kind, WellKnown};

pub(crate) use names::Names;
pub(crate) use pool::{EnumData, FieldData, MessageData, Pool, Preset, Symbol};

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
    /// From the bytes of a `google.protobuf.FileDescriptorSet`, imports included (`protoc --include_imports -o`), in any
    /// order.
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

    /// The message with this full name, without a dot in front.
    pub fn message(&self, full_name: &str) -> Option<MessageType<'_>> {
        match self.0.names.get(full_name) {
            Some(&Symbol::Message(index)) => Some(MessageType::new(self, index)),
            _ => None,
        }
    }

    /// The enum with this full name.
    pub fn enumeration(&self, full_name: &str) -> Option<EnumType<'_>> {
        match self.0.names.get(full_name) {
            Some(&Symbol::Enum(index)) => Some(EnumType::new(self, index)),
            _ => None,
        }
    }

    /// The extension with this full name: that of its scope and its own, not that of the message it extends.
    pub fn extension(&self, full_name: &str) -> Option<Field<'_>> {
        match self.0.names.get(full_name) {
            Some(&Symbol::Extension(index)) => Some(Field::new(self, index)),
            _ => None,
        }
    }

    /// The service with this full name.
    pub fn service(&self, full_name: &str) -> Option<Service<'_>> {
        match self.0.names.get(full_name) {
            Some(&Symbol::Service(index)) => Some(Service::new(self, index)),
            _ => None,
        }
    }

    /// A method by its service and name: `pkg.Service/Method`, `/pkg.Service/Method` or `pkg.Service.Method`.
    pub fn method(&self, path: &str) -> Option<Method<'_>> {
        let path = path.strip_prefix('/').unwrap_or(path);
        let (service, method) = path.rsplit_once('/').or_else(|| path.rsplit_once('.'))?;
        self.service(service)?.method(method)
    }

    /// All messages, those declared in others and map entries among them.
    pub fn messages(&self) -> impl ExactSizeIterator<Item = MessageType<'_>> {
        (0..self.0.messages.len() as u32).map(|index| MessageType::new(self, index))
    }

    /// All enums.
    pub fn enumerations(&self) -> impl ExactSizeIterator<Item = EnumType<'_>> {
        (0..self.0.enums.len() as u32).map(|index| EnumType::new(self, index))
    }

    /// All services.
    pub fn services(&self) -> impl ExactSizeIterator<Item = Service<'_>> {
        (0..self.0.services.len() as u32).map(|index| Service::new(self, index))
    }

    /// All files.
    pub fn files(&self) -> impl ExactSizeIterator<Item = File<'_>> {
        (0..self.0.files.len() as u32).map(|index| File::new(self, index))
    }

    pub(crate) fn message_at(&self, index: u32) -> MessageType<'_> {
        MessageType::new(self, index)
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
        out.debug_list().entries(self.files().map(File::name)).finish()
    }
}
