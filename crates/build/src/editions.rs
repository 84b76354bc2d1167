//! Converts files of editions for prost-build: proto3 with the features of each field made explicit.
//!
//! prost-build supports proto2 and proto3 only, and the types of `prost-types` drop `edition` and `features`. Both are
//! therefore read from the encoded descriptors.

use prost::Message;
use prost_types::field_descriptor_proto::{Label, Type};
use prost_types::{DescriptorProto, FileDescriptorProto, FileDescriptorSet};

use crate::error::Error;

/// `EDITION_2023` and `EDITION_2024`, whose defaults are the same for generated code.
const EDITIONS: [i32; 2] = [1000, 1001];

/// Rewrites the files of editions in `set`, which was decoded from `encoded`.
///
/// # Errors
///
/// [`Error::Edition`] for unsupported editions.
pub(crate) fn lower(set: &mut FileDescriptorSet, encoded: &[u8]) -> Result<(), Error> {
    if set.file.iter().all(|file| file.syntax() != "editions") {
        return Ok(());
    }
    let encoded = EncodedSet::decode(encoded).map_err(|error| Error::Other(error.to_string()))?;
    for (file, declared) in set.file.iter_mut().zip(&encoded.file) {
        if file.syntax() == "editions" {
            lower_file(file, declared)?;
        }
    }
    Ok(())
}

fn lower_file(file: &mut FileDescriptorProto, declared: &EncodedFile) -> Result<(), Error> {
    if !EDITIONS.contains(&declared.edition()) {
        return Err(Error::Edition { file: file.name().to_owned() });
    }
    file.syntax = Some("proto3".to_owned());
    let features =
        Features::default().with(declared.options.as_ref().and_then(|options| options.features.as_ref()));
    for (message, declared) in file.message_type.iter_mut().zip(&declared.message_type) {
        lower_message(message, declared, features);
    }
    Ok(())
}

fn lower_message(message: &mut DescriptorProto, declared: &EncodedMessage, outer: Features) {
    let features = outer.with(declared.options.as_ref().and_then(|options| options.features.as_ref()));
    for (nested, declared) in message.nested_type.iter_mut().zip(&declared.nested_type) {
        lower_message(nested, declared, features);
    }
    let is_map_entry = message.options.as_ref().is_some_and(prost_types::MessageOptions::map_entry);
    if is_map_entry {
        // Map entries are the same in all versions of the language.
        return;
    }
    let map_entries: Vec<String> = message
        .nested_type
        .iter()
        .filter(|nested| nested.options.as_ref().is_some_and(prost_types::MessageOptions::map_entry))
        .map(|entry| format!(".{}", entry.name()))
        .collect();
    for (field, declared_field) in message.field.iter_mut().zip(&declared.field) {
        let oneof = field.oneof_index.and_then(|index| declared.oneof_decl.get(index as usize));
        let oneof_features = oneof.and_then(|oneof| oneof.options.as_ref()?.features.as_ref());
        let field_features = declared_field.options.as_ref().and_then(|options| options.features.as_ref());
        let features = features.with(oneof_features).with(field_features);
        let is_map = map_entries.iter().any(|entry| field.type_name().ends_with(entry));
        if field.r#type() == Type::Message && features.is_delimited && !is_map {
            field.set_type(Type::Group);
        }
        if field.label() == Label::Repeated {
            if is_packable(field.r#type()) {
                field.options.get_or_insert_default().packed = Some(features.is_packed);
            }
        } else if features.presence == Presence::LegacyRequired {
            field.set_label(Label::Required);
        } else if field.oneof_index.is_none() && features.presence == Presence::Explicit {
            field.proto3_optional = Some(true);
        }
    }
}

fn is_packable(field_type: Type) -> bool {
    !matches!(field_type, Type::String | Type::Bytes | Type::Message | Type::Group)
}

/// Features that affect generated code.
#[derive(Clone, Copy)]
struct Features {
    presence: Presence,
    is_packed: bool,
    is_delimited: bool,
}

#[derive(Clone, Copy, PartialEq)]
enum Presence {
    Explicit,
    Implicit,
    LegacyRequired,
}

impl Default for Features {
    fn default() -> Self {
        Features { presence: Presence::Explicit, is_packed: true, is_delimited: false }
    }
}

impl Features {
    /// Returns these features, overridden by `declared`.
    fn with(self, declared: Option<&FeatureSet>) -> Self {
        let Some(declared) = declared else { return self };
        Features {
            presence: match declared.field_presence {
                Some(1) => Presence::Explicit,
                Some(2) => Presence::Implicit,
                Some(3) => Presence::LegacyRequired,
                _ => self.presence,
            },
            is_packed: declared.repeated_field_encoding.map_or(self.is_packed, |encoding| encoding == 1),
            is_delimited: declared.message_encoding.map_or(self.is_delimited, |encoding| encoding == 2),
        }
    }
}

#[derive(Clone, PartialEq, Message)]
struct EncodedSet {
    #[prost(message, repeated, tag = "1")]
    file: Vec<EncodedFile>,
}

#[derive(Clone, PartialEq, Message)]
struct EncodedFile {
    #[prost(message, repeated, tag = "4")]
    message_type: Vec<EncodedMessage>,
    #[prost(message, optional, tag = "8")]
    options: Option<FileOptions>,
    #[prost(int32, optional, tag = "14")]
    edition: Option<i32>,
}

#[derive(Clone, PartialEq, Message)]
struct EncodedMessage {
    #[prost(message, repeated, tag = "2")]
    field: Vec<EncodedField>,
    #[prost(message, repeated, tag = "3")]
    nested_type: Vec<EncodedMessage>,
    #[prost(message, optional, tag = "7")]
    options: Option<MessageOptions>,
    #[prost(message, repeated, tag = "8")]
    oneof_decl: Vec<EncodedOneof>,
}

#[derive(Clone, PartialEq, Message)]
struct EncodedField {
    #[prost(message, optional, tag = "8")]
    options: Option<FieldOptions>,
}

#[derive(Clone, PartialEq, Message)]
struct EncodedOneof {
    #[prost(message, optional, tag = "2")]
    options: Option<OneofOptions>,
}

#[derive(Clone, PartialEq, Message)]
struct FileOptions {
    #[prost(message, optional, tag = "50")]
    features: Option<FeatureSet>,
}

#[derive(Clone, PartialEq, Message)]
struct MessageOptions {
    #[prost(message, optional, tag = "12")]
    features: Option<FeatureSet>,
}

#[derive(Clone, PartialEq, Message)]
struct FieldOptions {
    #[prost(message, optional, tag = "21")]
    features: Option<FeatureSet>,
}

#[derive(Clone, PartialEq, Message)]
struct OneofOptions {
    #[prost(message, optional, tag = "1")]
    features: Option<FeatureSet>,
}

#[derive(Clone, PartialEq, Message)]
struct FeatureSet {
    #[prost(int32, optional, tag = "1")]
    field_presence: Option<i32>,
    #[prost(int32, optional, tag = "3")]
    repeated_field_encoding: Option<i32>,
    #[prost(int32, optional, tag = "5")]
    message_encoding: Option<i32>,
}
