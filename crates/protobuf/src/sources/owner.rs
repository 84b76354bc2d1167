//! Declarations that have options.

use super::error::Position;
use super::ids::{EnumId, FieldId, FileId, MessageId, NodeId, ServiceId};
use super::pool::{Options, Pool};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Owner {
    File(FileId),
    Message(MessageId),
    Field(FieldId),
    Oneof(MessageId, u32),
    Range(MessageId, u32),
    Enum(EnumId),
    Value(EnumId, u32),
    Service(ServiceId),
    Method(ServiceId, u32),
}

/// Returns the declarations of a file, in the order in which protoc visits them.
pub(super) fn owners(pool: &Pool, file: FileId) -> Vec<Owner> {
    let mut owners = vec![Owner::File(file)];
    let declared = &pool[file];
    for &message in &declared.messages {
        of_message(pool, message, &mut owners);
    }
    declared.enums.iter().for_each(|&declared| of_enum(pool, declared, &mut owners));
    owners.extend(declared.extensions.iter().map(|&field| Owner::Field(field)));
    for &service in &declared.services {
        owners.push(Owner::Service(service));
        owners.extend((0..pool[service].methods.len()).map(|index| Owner::Method(service, index as u32)));
    }
    owners
}

fn of_message(pool: &Pool, message: MessageId, owners: &mut Vec<Owner>) {
    let declared = &pool[message];
    owners.push(Owner::Message(message));
    declared.enums.iter().for_each(|&declared| of_enum(pool, declared, owners));
    owners.extend((0..declared.oneofs.len()).map(|index| Owner::Oneof(message, index as u32)));
    owners.extend(declared.fields.iter().map(|&field| Owner::Field(field)));
    declared.messages.iter().for_each(|&nested| of_message(pool, nested, owners));
    owners.extend(declared.extensions.iter().map(|&field| Owner::Field(field)));
    owners.extend((0..declared.extension_ranges.len()).map(|index| Owner::Range(message, index as u32)));
}

fn of_enum(pool: &Pool, declared: EnumId, owners: &mut Vec<Owner>) {
    owners.push(Owner::Enum(declared));
    owners.extend((0..pool[declared].values.len()).map(|index| Owner::Value(declared, index as u32)));
}

impl Owner {
    pub(super) fn options(self, pool: &Pool) -> &Options {
        match self {
            Owner::File(file) => &pool[file].options,
            Owner::Message(message) => &pool[message].options,
            Owner::Field(field) => &pool[field].options,
            Owner::Oneof(message, index) => &pool[message].oneofs[index as usize].options,
            Owner::Range(message, index) => &pool[message].extension_ranges[index as usize].options,
            Owner::Enum(declared) => &pool[declared].options,
            Owner::Value(declared, index) => &pool[declared].values[index as usize].options,
            Owner::Service(service) => &pool[service].options,
            Owner::Method(service, index) => &pool[service].methods[index as usize].options,
        }
    }

    pub(super) fn options_mut(self, pool: &mut Pool) -> &mut Options {
        match self {
            Owner::File(file) => &mut pool[file].options,
            Owner::Message(message) => &mut pool[message].options,
            Owner::Field(field) => &mut pool[field].options,
            Owner::Oneof(message, index) => &mut pool[message].oneofs[index as usize].options,
            Owner::Range(message, index) => &mut pool[message].extension_ranges[index as usize].options,
            Owner::Enum(declared) => &mut pool[declared].options,
            Owner::Value(declared, index) => &mut pool[declared].values[index as usize].options,
            Owner::Service(service) => &mut pool[service].options,
            Owner::Method(service, index) => &mut pool[service].methods[index as usize].options,
        }
    }

    /// Returns the type of its options, in the package `google.protobuf`.
    pub(super) fn options_type(self) -> &'static str {
        match self {
            Owner::File(_) => "FileOptions",
            Owner::Message(_) => "MessageOptions",
            Owner::Field(_) => "FieldOptions",
            Owner::Oneof(..) => "OneofOptions",
            Owner::Range(..) => "ExtensionRangeOptions",
            Owner::Enum(_) => "EnumOptions",
            Owner::Value(..) => "EnumValueOptions",
            Owner::Service(_) => "ServiceOptions",
            Owner::Method(..) => "MethodOptions",
        }
    }

    /// Returns the number of `features` in its options.
    pub(super) fn features_number(self) -> i32 {
        match self {
            Owner::File(_) | Owner::Range(..) => 50,
            Owner::Message(_) => 12,
            Owner::Field(_) => 21,
            Owner::Oneof(..) => 1,
            Owner::Enum(_) => 7,
            Owner::Value(..) => 2,
            Owner::Service(_) => 34,
            Owner::Method(..) => 35,
        }
    }

    /// Returns its `OptionTargetType`, and its name in errors.
    pub(super) fn target(self) -> (u64, &'static str) {
        match self {
            Owner::File(_) => (1, "file"),
            Owner::Range(..) => (2, "extension range"),
            Owner::Message(_) => (3, "message"),
            Owner::Field(_) => (4, "field"),
            Owner::Oneof(..) => (5, "oneof"),
            Owner::Enum(_) => (6, "enum"),
            Owner::Value(..) => (7, "enum entry"),
            Owner::Service(_) => (8, "service"),
            Owner::Method(..) => (9, "method"),
        }
    }

    pub(super) fn name_at(self, pool: &Pool) -> Position {
        match self {
            Owner::File(file) => pool[file].package_at,
            Owner::Message(message) => pool[message].name_at,
            Owner::Field(field) => pool[field].at.name,
            Owner::Oneof(message, index) => pool[message].oneofs[index as usize].name_at,
            Owner::Range(message, index) => pool[message].extension_ranges[index as usize].range.at,
            Owner::Enum(declared) => pool[declared].name_at,
            Owner::Value(declared, index) => pool[declared].values[index as usize].name_at,
            Owner::Service(service) => pool[service].name_at,
            Owner::Method(service, index) => pool[service].methods[index as usize].name_at,
        }
    }

    /// Returns the innermost scope for the names of its options.
    pub(super) fn scope(self, pool: &Pool, package: NodeId) -> NodeId {
        let of_message =
            |message: Option<MessageId>| message.and_then(|message| pool[message].node).unwrap_or(package);
        match self {
            Owner::File(_) | Owner::Service(_) => package,
            Owner::Message(message) | Owner::Range(message, _) => of_message(pool[message].parent),
            Owner::Field(field) => of_message(pool[field].parent),
            Owner::Oneof(message, _) => of_message(Some(message)),
            Owner::Enum(declared) | Owner::Value(declared, _) => of_message(pool[declared].parent),
            Owner::Method(service, _) => pool[service].node.unwrap_or(package),
        }
    }
}
