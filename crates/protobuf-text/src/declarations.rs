//! Prints the declarations of a descriptor set as `.proto` text that compiles to the same descriptors.

mod comments;
mod descriptor;
mod names;
mod options;
mod print;

use thalweg_protobuf::sources::{self, SourceError};
use thalweg_protobuf::wire::{Reader, Tag, WireType, put_varint};
use thalweg_protobuf::{DecodeError, Limits, Message, MessageRef, Schema, SchemaError};

use descriptor::{Declared, Found, find, list, text};
use names::Names;
use print::Printer;

/// The file that declares the descriptor types.
const DESCRIPTOR_PROTO: &str = "google/protobuf/descriptor.proto";
/// Maximum nesting depth of messages, in descriptors and their options.
const DEPTH_MAX: usize = 200;

/// Descriptors that can be printed as `.proto` text. The text includes comments if the set has them, options including
/// custom ones, defaults, reserved names and extension ranges.
///
/// ```
/// use thalweg_protobuf_text::declarations::Declarations;
///
/// # let source = "syntax = 'proto3'; package shop;
/// #     // What is for sale.
/// #     message Item { string name = 1; int32 old = 2 [deprecated = true]; }";
/// # let set = thalweg_protobuf::sources::compile(&["shop.proto"], |_| Some(source.to_owned()))?;
/// let declarations = Declarations::of(&set)?;
/// assert_eq!(
///     declarations.get("shop.Item").as_deref(),
///     Some("// What is for sale.\nmessage Item {\n  string name = 1;\n  int32 old = 2 [deprecated = true];\n}\n")
/// );
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Declarations {
    set: Message,
    names: Names,
}

/// Error for a set that cannot be printed as text.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DeclarationsError {
    /// The files contradict each other.
    #[error(transparent)]
    Schema(#[from] Box<SchemaError>),
    /// The descriptor types could not be compiled.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// `google/protobuf/descriptor.proto` lacks the type of descriptor sets.
    #[error("{DESCRIPTOR_PROTO} does not declare FileDescriptorSet")]
    Types,
    /// The bytes are not a `google.protobuf.FileDescriptorSet`.
    #[error("invalid descriptor set: {0}")]
    Decode(#[from] DecodeError),
}

impl Declarations {
    /// Creates declarations from an encoded `google.protobuf.FileDescriptorSet`.
    ///
    /// # Errors
    ///
    /// Returns an error if the set is malformed, or if its files contradict each other.
    pub fn of(set: &[u8]) -> Result<Self, DeclarationsError> {
        // Options are extensions of these types, and the set's own copy may be outdated.
        let mut with_descriptors = sources::compile(&[DESCRIPTOR_PROTO], |_| None)?;
        append_others(set, &mut with_descriptors);
        let schema = Schema::from_descriptor_set(&with_descriptors).map_err(Box::new)?;
        let Some(of) = schema.message("google.protobuf.FileDescriptorSet") else {
            return Err(DeclarationsError::Types);
        };
        let mut limits = Limits::default();
        limits.depth_max = DEPTH_MAX;
        let set = Message::decode_within(of, set.to_vec(), &limits)?;
        let names = Names::of(list(set.as_ref(), "file"));
        Ok(Self { set, names })
    }

    /// Returns the text of a whole file.
    pub fn file(&self, name: &str) -> Option<String> {
        let file = self.files().find(|file| text(*file, "name") == name)?;
        Some(Printer::new(file, &self.names).file())
    }

    /// Returns the name of the file that declares a service, method, message, enum or extension.
    pub fn file_of(&self, full_name: &str) -> Option<String> {
        let (file, _) = self.found(full_name)?;
        Some(text(file, "name").to_owned())
    }

    /// Returns the declaration of a service, method, message, enum or extension, by its full name.
    pub fn get(&self, full_name: &str) -> Option<String> {
        let (file, found) = self.found(full_name)?;
        Some(Printer::new(file, &self.names).declaration(&found))
    }

    fn files(&self) -> impl Iterator<Item = MessageRef<'_>> {
        list(self.set.as_ref(), "file")
    }

    fn found(&self, full_name: &str) -> Option<(MessageRef<'_>, Found<'_>)> {
        self.files().find_map(|file| {
            let package = text(file, "package");
            let name = match package {
                "" => full_name,
                package => full_name.strip_prefix(package)?.strip_prefix('.')?,
            };
            Some((file, find(file, Declared::File, package, name, &[])?))
        })
    }
}

/// Copies all files except `descriptor.proto`, which is already there.
fn append_others(set: &[u8], to: &mut Vec<u8>) {
    let mut reader = Reader::new(set);
    while let Ok(tag) = reader.tag() {
        if tag != Tag::new(1, WireType::Len) {
            if reader.skip(tag, DEPTH_MAX).is_err() {
                return;
            }
            continue;
        }
        let Ok(file) = reader.len_prefixed() else { return };
        let named = |bytes: &[u8]| {
            let mut reader = Reader::new(bytes);
            while let Ok(tag) = reader.tag() {
                if tag == Tag::new(1, WireType::Len) {
                    return reader.len_prefixed().is_ok_and(|name| name == DESCRIPTOR_PROTO.as_bytes());
                }
                if reader.skip(tag, DEPTH_MAX).is_err() {
                    break;
                }
            }
            false
        };
        if !named(file) {
            to.push(0x0a);
            put_varint(to, file.len() as u64);
            to.extend_from_slice(file);
        }
    }
}

#[cfg(test)]
mod tests;
